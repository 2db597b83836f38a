package apitest

import (
	"context"
	"testing"

	"github.com/millrace-go/millrace"
)

// limited opens a device with a memory limit and returns the largest observed use.
func limited(t *testing.T, limit int64) (*millrace.Device, func() int64) {
	t.Helper()
	dev := open(t, millrace.Options{MemoryLimit: limit, Compile: millrace.CompileOff, Tune: millrace.TuneOff}) // its trials would take memory too
	var most int64
	return dev, func() int64 {
		s := dev.Stats()
		most = max(most, s.Runtime.AllocBytes)
		return most
	}
}

// TestLoopStaysWithinLimit: a loop that never reads and never releases stays within MemoryLimit:
// memory held only by garbage is found.
func TestLoopStaysWithinLimit(t *testing.T) {
	const limit = 16 << 20
	dev, most := limited(t, limit)
	s := dev.DefaultStream()
	for i := range 400 {
		x := millrace.FromSliceOn(s, make([]float32, 1<<18)) // 1 MiB
		x.AddScalar(float64(i)).Mul(x).Sum(0)
		y := millrace.UniformOn(s, millrace.Float32, uint64(i), 1<<18)
		y.Exp()
		if m := most(); m > limit {
			t.Fatalf("step %d: %d bytes held, limit %d", i, m, limit)
		}
	}
	if err := s.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if st := dev.Stats(); st.Runtime.AllocBytes > limit {
		t.Errorf("%d bytes held at the end, limit %d", st.Runtime.AllocBytes, limit)
	}
}

// TestRecipesStayBounded: a running mean that is never read must not keep every step's operands
// alive.
func TestRecipesStayBounded(t *testing.T) {
	const limit = 32 << 20
	dev, most := limited(t, limit)
	avg := millrace.ZerosOn(dev, millrace.Float32, 1<<18)
	for i := range 300 {
		g := millrace.FromSliceOn(dev, make([]float32, 1<<18))
		avg = avg.MulScalar(0.5).Add(g.AddScalar(1))
		if m := most(); m > limit {
			t.Fatalf("step %d: %d bytes held, limit %d", i, m, limit)
		}
	}
	if err := wantAll(avg, 1<<18, 2); err != nil {
		t.Error(err)
	}
}

// TestScopeReusesMemory: in a scope every step's memory is freed at once: after the first steps
// nothing new is allocated, and no collection is forced.
func TestScopeReusesMemory(t *testing.T) {
	dev, _ := limited(t, 64<<20)
	w := millrace.OnesOn(dev, millrace.Float32, 1<<16)
	step := func() {
		err := dev.Scope(func(sc *millrace.Scope) error {
			x := millrace.FullOn(sc, millrace.Float32, 2, 1<<16)
			return wantAll(x.Mul(w).AddScalar(1), 1<<16, 3)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		step()
	}
	before := dev.Stats()
	for range 50 {
		step()
	}
	after := dev.Stats()
	if n := after.Collections - before.Collections; n != 0 {
		t.Errorf("%d collections", n)
	}
	if misses := (after.Runtime.Allocs - before.Runtime.Allocs) - (after.Runtime.PoolHits - before.Runtime.PoolHits); misses != 0 {
		t.Errorf("%d allocations were no pool hits", misses)
	}
	if after.LiveBytes > before.LiveBytes {
		t.Errorf("live bytes grew from %d to %d", before.LiveBytes, after.LiveBytes)
	}
}

// TestSetLoopIsBounded: a training loop that sets its weights holds two generations at most.
func TestSetLoopIsBounded(t *testing.T) {
	const limit = 8 << 20
	dev, most := limited(t, limit)
	w := millrace.ZerosOn(dev, millrace.Float32, 1<<18) // 1 MiB
	for range 500 {
		w.Set(w.AddScalar(1))
		if m := most(); m > limit {
			t.Fatalf("%d bytes held, limit %d", m, limit)
		}
	}
	if err := wantAll(w, 1<<18, 500); err != nil {
		t.Error(err)
	}
}

// TestNothingLeaks: after everything is released the device holds nothing.
func TestNothingLeaks(t *testing.T) {
	dev := open(t, millrace.Options{Compile: millrace.CompileOff})
	var all []*millrace.Tensor
	x := millrace.FromSliceOn(dev, make([]float32, 1000))
	y := x.AddScalar(1)
	z := y.Mul(y)
	head := z.Slice(millrace.R(0, 10))
	grid := y.Reshape(10, 100)
	all = append(all, x, y, z, head, head.T(), grid, grid.T())
	for _, t2 := range all {
		if err := t2.Eval(); err != nil {
			t.Fatal(err)
		}
	}
	v := y.Exp() // virtual: read and not written
	w := v.Sum()
	if _, err := millrace.Item[float32](w); err != nil {
		t.Fatal(err)
	}
	for _, t2 := range append(all, v, w) {
		t2.Release()
	}
	if err := dev.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := dev.Stats(); s.LiveBytes != 0 || s.PinnedBytes != 0 || s.Runtime.AllocBytes != 0 {
		t.Errorf("live %d, pinned %d, allocated %d bytes after everything was released", s.LiveBytes, s.PinnedBytes, s.Runtime.AllocBytes)
	}
}
