package cpu

import (
	"errors"
	"sync"
	"testing"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

func TestSizeClass(t *testing.T) {
	for n, want := range map[int64]int64{0: 64, 1: 64, 64: 64, 65: 128, 257: 320, 1000: 1024, 1025: 1280, 4 << 20: 4 << 20, 4<<20 + 1: 6 << 20, 134 << 20: 144 << 20} {
		if got := sizeClass(n); got != want {
			t.Errorf("sizeClass(%d) = %d, want %d", n, got, want)
		}
	}
	for n := int64(1); n < 1<<30; n = n*9/7 + 1 {
		if c := sizeClass(n); c < n || c > n+n/2+64 && n > 64 && n < pageAligned || c%64 != 0 || sizeClass(c) != c {
			t.Fatalf("sizeClass(%d) = %d", n, c)
		}
	}
}

// TestPeak checks that the peak counts bytes that are live at the same time, not in turn.
func TestPeak(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 1, Tier: -1})
	take := func() runtime.Buffer {
		t.Helper()
		b, err := d.Alloc(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a := take()
	d.Free(take())
	b := take()
	d.Free(b)
	if s := d.Stats(); s.PeakBytes != 2<<20 || s.AllocBytes != 1<<20 {
		t.Errorf("peak %d with %d live", s.PeakBytes, s.AllocBytes)
	}
	d.ResetPeak()
	if s := d.Stats(); s.PeakBytes != 1<<20 {
		t.Errorf("peak %d after the reset, want what is live", s.PeakBytes)
	}
	d.Free(a)
	if s := d.Stats(); s.PeakBytes != 1<<20 || s.AllocBytes != 0 {
		t.Errorf("peak %d with %d live", s.PeakBytes, s.AllocBytes)
	}
}

func TestPool(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 1, Tier: -1, MemoryLimit: 64 << 20})
	alloc := func(n int64) runtime.Buffer {
		t.Helper()
		b, err := d.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		if p := uintptr(b.(*buffer).p); p%64 != 0 {
			t.Errorf("%#x is not aligned", p)
		}
		return b
	}
	a := alloc(10 << 20)
	d.Free(a)
	d.Free(a) // a second Free has no effect
	b := alloc(10<<20 - 5)
	if s := d.Stats(); s.PoolHits != 1 || s.Allocs != 2 || s.PoolBytes != 0 || s.AllocBytes != 10<<20 {
		t.Errorf("%+v", s)
	}
	// Pooled blocks are freed to make room for a request.
	c := alloc(30 << 20)
	d.Free(c)
	alloc(50 << 20)
	for _, n := range []int64{50 << 20, 1 << 62, -1} {
		if _, err := d.Alloc(n); !errors.Is(err, runtime.ErrOutOfMemory) {
			t.Errorf("Alloc(%d): %v", n, err)
		}
	}
	fault.Set(fault.Alloc, 1)
	defer fault.Reset()
	if _, err := d.Alloc(8); !errors.Is(err, runtime.ErrOutOfMemory) {
		t.Errorf("injected: %v", err)
	}
	d.Free(b)
	if err := d.Write(b, ir.Float32, 0, make([]byte, 4)); err == nil {
		t.Error("Write to a freed buffer")
	}
}

// TestPoolCap checks that the pool keeps freed blocks up to half the limit, smaller ones first,
// and forgets sizes without blocks.
func TestPoolCap(t *testing.T) {
	const limit = 64 << 20
	d := openTest(t, runtime.Config{Threads: 1, Tier: -1, MemoryLimit: limit})
	var all []runtime.Buffer
	for _, n := range []int64{8 << 20, 16 << 20, 20 << 20, 1 << 10, 12<<20 + 1} { // the last one fits by its bytes only, not by its class
		b, err := d.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	for i, b := range all {
		d.Free(b)
		if s := d.Stats(); s.PoolBytes > limit/2 {
			t.Errorf("%d bytes are kept after %d buffers were freed, the cap is %d", s.PoolBytes, i+1, limit/2)
		}
	}
	if s := d.Stats(); s.PoolBytes < limit/4 || s.AllocBytes != 0 {
		t.Errorf("%d bytes are kept in the end, %d live", s.PoolBytes, s.AllocBytes)
	}
	d = openTest(t, runtime.Config{Threads: 1, Tier: -1, MemoryLimit: limit - 1<<20})
	if _, err := d.Alloc(40 << 20); err != nil {
		t.Fatal(err)
	}
	for i := range int64(100) { // all sizes differ, and none is a class that fits
		b, err := d.Alloc(23<<20 - i*4096)
		if err != nil {
			t.Fatal(err)
		}
		d.Free(b)
	}
	d.mem.mu.Lock()
	defer d.mem.mu.Unlock()
	if n := len(d.mem.free); n > 20 {
		t.Errorf("%d sizes are remembered", n)
	}
}

func TestNoLimit(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 1, Tier: -1})
	if _, err := d.Alloc(1 << 50); !errors.Is(err, runtime.ErrOutOfMemory) {
		t.Errorf("a petabyte: %v", err)
	}
}

func TestTransferBounds(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 2, Tier: -1})
	b, err := d.Alloc(40)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(b, ir.Int64, 4, []byte{1, 2, 3, 4, 5, 6, 7, 8}); err != nil {
		t.Error(err)
	}
	got := make([]byte, 4)
	if err := d.Read(got, ir.Int32, b, 8); err != nil || got[3] != 4 {
		t.Errorf("%v, %v", got, err)
	}
	for _, off := range []int64{-1, 5, 1 << 60} {
		if d.Write(b, ir.Int64, off, make([]byte, 8)) == nil || d.Read(make([]byte, 8), ir.Int64, b, off) == nil {
			t.Errorf("element %d of 5 exists", off)
		}
	}
}

// TestHammer frees, allocates, copies and runs on many goroutines.
func TestHammer(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 2, Tier: -1})
	k := reduction(ir.Sum, ir.Float32)
	p, err := d.Build(k)
	if err != nil {
		t.Fatal(err)
	}
	const n = 3000
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 30 {
				size := int64(n * (1 + (g+i)%3))
				b, err1 := d.Alloc(size * 4)
				out, err2 := d.Alloc(8)
				data := make([]byte, size*4)
				for j := range size {
					data[4*j+2], data[4*j+3] = 0x80, 0x3f // 1
				}
				err3 := d.Write(b, ir.Float32, 0, data)
				l := runtime.Launch{Prog: p, Rank: 1, Args: make([]runtime.Access, 3)}
				l.Dims[0] = size
				l.Args[0].Buf, l.Args[0].Stride[0] = b, 1
				l.Args[1].Buf, l.Args[2].Buf, l.Args[2].Offset = out, out, 1
				err4 := d.Run([]runtime.Launch{l})
				got := make([]byte, 4)
				err5 := d.Read(got, ir.Float32, out, 1)
				if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
					t.Error(err)
				}
				bits := uint32(got[0]) | uint32(got[1])<<8 | uint32(got[2])<<16 | uint32(got[3])<<24
				if want := map[int64]uint32{n: 0x453b8000, 2 * n: 0x45bb8000, 3 * n: 0x460ca000}[size]; bits != want {
					t.Errorf("sum of %d ones is %#x, want %#x", size, bits, want)
				}
				d.Free(b)
				d.Free(out)
			}
		})
	}
	wg.Wait()
}
