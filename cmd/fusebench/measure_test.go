package main

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// A fakeClock advances only when a contestant runs.
type fakeClock struct{ at time.Time }

func (f *fakeClock) now() time.Time { return f.at }

func (f *fakeClock) takes(name string, d time.Duration) *contestant {
	return &contestant{name: name, run: func() (time.Duration, error) {
		f.at = f.at.Add(d)
		return d, nil
	}}
}

func TestInterleaveGivesAllRuns(t *testing.T) {
	var f fakeClock
	a, b := f.takes("a", time.Second), f.takes("b", 2*time.Second)
	var order []string
	interleave(f.now, time.Hour, 4, []*contestant{a, b}, func(_ int, c *contestant) { order = append(order, c.name) })
	if len(a.times) != 4 || len(b.times) != 4 {
		t.Fatalf("%d and %d runs, want 4 each", len(a.times), len(b.times))
	}
	if want := []string{"a", "b", "b", "a", "a", "b", "b", "a"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v: rounds must rotate", order, want)
	}
}

func TestInterleaveKeepsBudget(t *testing.T) {
	var f fakeClock
	start := f.at
	cheap, costly := f.takes("cheap", time.Second), f.takes("costly", 10*time.Second)
	base := f.takes("base", time.Second)
	base.base = true
	interleave(f.now, 70*time.Second, 15, []*contestant{base, cheap, costly}, nil)
	if len(costly.times) != 5 {
		t.Errorf("costly ran %d times, want the 5 rounds that fit", len(costly.times))
	}
	if len(cheap.times) <= len(costly.times) || len(base.times) != len(cheap.times) {
		t.Errorf("cheap ran %d times and base %d; the cheap must go on when the costly is out", len(cheap.times), len(base.times))
	}
	if spent := f.at.Sub(start); spent > 70*time.Second {
		t.Errorf("took %v of 70 s", spent)
	}
}

func TestInterleaveMinimum(t *testing.T) {
	var f fakeClock
	a := f.takes("a", time.Hour)
	interleave(f.now, time.Second, 15, []*contestant{a}, nil)
	if len(a.times) != minRuns {
		t.Errorf("%d runs, want %d whatever the budget", len(a.times), minRuns)
	}
}

func TestInterleaveCostly(t *testing.T) {
	var f fakeClock
	a, b := f.takes("a", time.Hour), f.takes("b", time.Second)
	a.costly = true
	interleave(f.now, 2*time.Second, 15, []*contestant{a, b}, nil)
	if len(a.times) != 1 || len(b.times) != minRuns {
		t.Errorf("%d costly and %d cheap runs, want 1 and %d", len(a.times), len(b.times), minRuns)
	}
}

func TestInterleaveFailure(t *testing.T) {
	var f fakeClock
	bad := &contestant{name: "bad", run: func() (time.Duration, error) { return 0, errors.New("broken") }}
	good := f.takes("good", time.Second)
	interleave(f.now, time.Hour, 5, []*contestant{bad, good}, nil)
	if bad.err == nil || len(bad.times) != 0 || len(good.times) != 5 {
		t.Errorf("bad: %v, %d runs; good: %d runs", bad.err, len(bad.times), len(good.times))
	}
}

func TestInterleaveStopsWithOnlyBase(t *testing.T) {
	var f fakeClock
	base := f.takes("base", time.Second)
	base.base = true
	interleave(f.now, time.Hour, 5, []*contestant{base}, nil)
	if len(base.times) != 0 {
		t.Error("nothing to compare with, and base ran")
	}
}

// TestInterleaveRetires checks that a base contestant retires with its users.
func TestInterleaveRetires(t *testing.T) {
	var f fakeClock
	costly, cheap := f.takes("costly", 10*time.Second), f.takes("cheap", time.Second)
	of := func(user *contestant) *contestant {
		c := f.takes("base", time.Second)
		c.base, c.users = true, []*contestant{user}
		return c
	}
	baseCostly, baseCheap := of(costly), of(cheap)
	interleave(f.now, 60*time.Second, 15, []*contestant{baseCostly, baseCheap, cheap, costly}, nil)
	if len(baseCostly.times) != len(costly.times) || len(baseCheap.times) != len(cheap.times) || len(cheap.times) <= len(costly.times) {
		t.Errorf("%d and %d runs, their bases %d and %d", len(costly.times), len(cheap.times), len(baseCostly.times), len(baseCheap.times))
	}
}

func TestPairs(t *testing.T) {
	a := &contestant{rounds: []int{0, 1, 3}, times: []float64{1, 2, 4}}
	b := &contestant{rounds: []int{1, 2, 3, 4}, times: []float64{20, 30, 40, 50}}
	as, bs := pairs(a, b)
	if !slices.Equal(as, []float64{2, 4}) || !slices.Equal(bs, []float64{20, 40}) {
		t.Errorf("got %v, %v", as, bs)
	}
}

func TestFaster(t *testing.T) {
	slow := &contestant{times: []float64{2, 2}}
	quick := &contestant{times: []float64{1, 9, 1}}
	none := &contestant{}
	if faster(slow, quick) != quick || faster(quick, slow) != quick || faster(nil, slow) != slow || faster(slow, none) != slow || faster(none, slow) != slow {
		t.Error("faster must compare medians and skip who never ran")
	}
}
