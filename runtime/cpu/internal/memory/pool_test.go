package memory

import (
	"errors"
	"testing"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// testPool is a pool of a test.
type testPool struct {
	*Pool
	t *testing.T
}

func openPool(t *testing.T, limit int64) testPool {
	m := New(limit)
	t.Cleanup(m.Close)
	return testPool{m, t}
}

// take allocates, which must not fail.
func (p testPool) take(n int64) *Buffer {
	p.t.Helper()
	b, err := p.Alloc(n)
	if err != nil {
		p.t.Fatal(err)
	}
	return b.(*Buffer)
}

func (p testPool) now() (s runtime.Stats) {
	p.Stats(&s)
	return s
}

// TestSizeClass checks that sizes are rounded up to a few classes, by little.
func TestSizeClass(t *testing.T) {
	for n, want := range map[int64]int64{0: 64, 1: 64, 64: 64, 65: 128, 257: 320, 1000: 1024, 1025: 1280, 4 << 20: 4 << 20, 4<<20 + 1: 6 << 20, 134 << 20: 144 << 20} {
		if got := SizeClass(n); got != want {
			t.Errorf("sizeClass(%d) = %d, want %d", n, got, want)
		}
	}
	for n := int64(1); n < 1<<30; n = n*9/7 + 1 {
		if c := SizeClass(n); c < n || c > n+n/2+64 && n > 64 && n < pageAligned || c%64 != 0 || SizeClass(c) != c {
			t.Fatalf("sizeClass(%d) = %d", n, c)
		}
	}
}

// TestPeak checks that the peak counts bytes that are live at the same time, not in turn.
func TestPeak(t *testing.T) {
	d := openPool(t, 0)
	take := func() *Buffer { return d.take(1 << 20) }
	a := take()
	d.Free(take())
	b := take()
	d.Free(b)
	if s := d.now(); s.PeakBytes != 2<<20 || s.AllocBytes != 1<<20 {
		t.Errorf("peak %d with %d live", s.PeakBytes, s.AllocBytes)
	}
	d.ResetPeak()
	if s := d.now(); s.PeakBytes != 1<<20 {
		t.Errorf("peak %d after the reset, want what is live", s.PeakBytes)
	}
	d.Free(a)
	if s := d.now(); s.PeakBytes != 1<<20 || s.AllocBytes != 0 {
		t.Errorf("peak %d with %d live", s.PeakBytes, s.AllocBytes)
	}
}

func TestPool(t *testing.T) {
	d := openPool(t, 64<<20)
	alloc := func(n int64) *Buffer {
		t.Helper()
		b := d.take(n)
		if p := uintptr(b.P); p%64 != 0 {
			t.Errorf("%#x is not aligned", p)
		}
		return b
	}
	a := alloc(10 << 20)
	d.Free(a)
	d.Free(a) // a second Free has no effect
	b := alloc(10<<20 - 5)
	if s := d.now(); s.PoolHits != 1 || s.Allocs != 2 || s.PoolBytes != 0 || s.AllocBytes != 10<<20 {
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
	if _, ok := b.Part(0, 4, 4); ok || !b.Freed() {
		t.Error("a part of a freed buffer")
	}
}

// TestPoolCap checks that the pool keeps freed blocks up to half the limit, smaller ones first,
// and forgets sizes without blocks.
func TestPoolCap(t *testing.T) {
	const limit = 64 << 20
	d := openPool(t, limit)
	var all []*Buffer
	for _, n := range []int64{8 << 20, 16 << 20, 20 << 20, 1 << 10, 12<<20 + 1} { // the last one fits by its bytes only, not by its class
		all = append(all, d.take(n))
	}
	for i, b := range all {
		d.Free(b)
		if s := d.now(); s.PoolBytes > limit/2 {
			t.Errorf("%d bytes are kept after %d buffers were freed, the cap is %d", s.PoolBytes, i+1, limit/2)
		}
	}
	if s := d.now(); s.PoolBytes < limit/4 || s.AllocBytes != 0 {
		t.Errorf("%d bytes are kept in the end, %d live", s.PoolBytes, s.AllocBytes)
	}
	d = openPool(t, limit-1<<20)
	d.take(40 << 20)
	for i := range int64(100) { // all sizes differ, and none is a class that fits
		d.Free(d.take(23<<20 - i*4096))
	}
	if n := len(d.free); n > 20 {
		t.Errorf("%d sizes are remembered", n)
	}
}

func TestNoLimit(t *testing.T) {
	d := openPool(t, 0)
	if _, err := d.Alloc(1 << 50); !errors.Is(err, runtime.ErrOutOfMemory) {
		t.Errorf("a petabyte: %v", err)
	}
}

// TestAbandon: the memory of an abandoned buffer is neither reused nor unmapped, and counts as live.
func TestAbandon(t *testing.T) {
	for _, n := range []int64{256, 5 << 20} { // a part of a region, and a region of its own
		m := New(0)
		d := testPool{m, t}
		other, b := d.take(n), d.take(n)
		mem, ok := b.Part(0, 1, n)
		if !ok {
			t.Fatal("the buffer has no memory")
		}
		d.Abandon(b)
		mem[n-1] = 1
		d.Free(b)
		d.Free(b)
		d.Free(other)
		if next := d.take(n); next.P == b.P {
			t.Error("abandoned memory is used again")
		}
		if s := d.now(); s.AllocBytes != 2*SizeClass(n) {
			t.Errorf("%d bytes are live", s.AllocBytes)
		}
		m.Close()
		if mem[n-1]++; mem[n-1] != 2 { // faults if it is unmapped
			t.Error("abandoned memory was changed")
		}
	}
}
