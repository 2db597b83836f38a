package cpu

import (
	"errors"
	"math"
	goruntime "runtime"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// TestAllocShared checks that shared memory is zeroed, aligned, counted, and never reused.
func TestAllocShared(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 1, Tier: -1, MemoryLimit: 8 << 20})
	for _, n := range []int64{0, 1, 63, 64, 1000, 1 << 20} {
		old, err := d.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		dirt := make([]byte, n)
		for i := range dirt {
			dirt[i] = 0xff
		}
		if err := d.Write(old, ir.Uint8, 0, dirt); err != nil {
			t.Fatal(err)
		}
		d.Free(old)
		before := d.Stats().AllocBytes
		b, err := d.AllocShared(n)
		if err != nil {
			t.Fatal(err)
		}
		mem := d.Shared(b)
		if int64(len(mem)) != n || cap(mem) != len(mem) || mem == nil || b.Bytes() != n || uintptr(b.(*memory.Buffer).P)%64 != 0 || d.Stats().AllocBytes != before+n {
			t.Errorf("%d bytes: %d at %p, %d of them counted", n, len(mem), b.(*memory.Buffer).P, d.Stats().AllocBytes-before)
		}
		for i, x := range mem {
			if x != 0 {
				t.Fatalf("byte %d of %d is %#x", i, n, x)
			}
			mem[i] = 7
		}
		got := make([]byte, n)
		if err := d.Read(got, ir.Uint8, b, 0); err != nil || n > 0 && got[n-1] != 7 {
			t.Errorf("%d bytes: %v", n, err)
		}
		d.Free(b)
		d.Free(b)
		if s := d.Stats(); s.AllocBytes != before {
			t.Errorf("%d bytes: %d left", n, s.AllocBytes-before)
		}
		next, err := d.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 && next.(*memory.Buffer).P == unsafe.Pointer(&mem[0]) {
			t.Errorf("%d bytes were handed out again", n)
		}
		if d.Shared(next) != nil {
			t.Error("the pool's memory is shared")
		}
		d.Free(next)
	}
}

func TestAllocSharedRefused(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 1, Tier: -1, MemoryLimit: 1 << 20})
	defer fault.Reset()
	kept, err := d.Alloc(700 << 10)
	if err != nil {
		t.Fatal(err)
	}
	d.Free(kept) // makes room
	b, err := d.AllocShared(600 << 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{-1, 600 << 10, 1 << 50, math.MaxInt64} {
		if _, err := d.AllocShared(n); !errors.Is(err, runtime.ErrOutOfMemory) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := d.Alloc(600 << 10); !errors.Is(err, runtime.ErrOutOfMemory) {
		t.Errorf("beside shared memory: %v", err)
	}
	fault.Set(fault.Alloc, -1)
	if _, err := d.AllocShared(1); !errors.Is(err, runtime.ErrOutOfMemory) {
		t.Errorf("injected: %v", err)
	}
	fault.Reset()
	mem := d.Shared(b)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	mem[0] = 1 // still valid
	if _, err := d.AllocShared(1); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestRunOnShared checks that kernels (elementwise, rows, contractions) read and write Go's memory
// during garbage collections.
func TestRunOnShared(t *testing.T) {
	const n = 5000
	for _, c := range []runtime.Config{{Threads: 2, Tier: -1}, {Threads: 2, Compile: runtime.CompileWait}} {
		d := openTest(t, c)
		p, err := d.Build(reduction(ir.Sum, ir.Float32))
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan bool)
		go func() {
			for {
				select {
				case <-stop:
					return
				default:
					goruntime.GC()
				}
			}
		}()
		for turn := range 50 {
			in, err1 := d.AllocShared(n * 4)
			out, err2 := d.AllocShared(8)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			x := unsafe.Slice((*float32)(unsafe.Pointer(&d.Shared(in)[0])), n)
			for i := range x {
				x[i] = float32(turn % 8)
			}
			l := runtime.Launch{Prog: p, Rank: 1, Args: make([]runtime.Access, 3)}
			l.Dims[0] = n
			l.Args[0].Buf, l.Args[0].Stride[0] = in, 1
			l.Args[1].Buf, l.Args[2].Buf, l.Args[2].Offset = out, out, 1
			if err := d.Run([]runtime.Launch{l}); err != nil {
				t.Fatal(err)
			}
			if got := *(*float32)(unsafe.Pointer(&d.Shared(out)[4])); got != float32(turn%8*n) {
				t.Errorf("the sum is %v, want %v", got, turn%8*n)
			}
			if turn%2 == 0 {
				d.Free(in)
				d.Free(out)
			}
		}
		close(stop)
	}
}

// TestLend: the host reads and writes a buffer's memory in place, until it is freed.
func TestLend(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 1, Tier: -1})
	b, err := d.Alloc(8)
	if err != nil {
		t.Fatal(err)
	}
	mem := d.Lend(b)
	if len(mem) != 8 {
		t.Fatalf("%d bytes are lent", len(mem))
	}
	copy(mem, "abcdefgh")
	got := make([]byte, 4)
	if err := d.Read(got, ir.Float32, b, 1); err != nil || string(got) != "efgh" {
		t.Errorf("the device reads %q, %v", got, err)
	}
	d.Abandon(b)
	d.Free(b)
	if d.Lend(b) != nil {
		t.Error("a freed buffer is lent")
	}
	if d.Lend(nil) != nil {
		t.Error("no buffer is lent")
	}
	d.Abandon(nil)
}
