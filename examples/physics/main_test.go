package main

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

// TestHeat: what was a sine stays one, and falls as the equation says: here of the whole,
// nothing gets hotter, and the plate stays symmetric to the last bit.
func TestHeat(t *testing.T) {
	const size = 33
	early, late := heat(size, 10), heat(size, 300)
	for _, p := range []*millrace.Tensor{early, late} {
		if same, err := millrace.AllClose(p, p.T(), 1e-5, 1e-5); err != nil || !same {
			t.Errorf("not symmetric: %v", err)
		}
		most, err := millrace.Item[float32](p.Max())
		least, err2 := millrace.Item[float32](p.Min())
		if err != nil || err2 != nil || most > 100 || least < 0 {
			t.Errorf("from %v to %v degrees: %v, %v", least, most, err, err2)
		}
	}
	a, err := millrace.Item[float32](early.Mean())
	if err != nil {
		t.Fatal(err)
	}
	b, err := millrace.Item[float32](late.Mean())
	if err != nil || b >= a || b < 0.5 {
		t.Errorf("%v degrees on average, then %v: %v", a, b, err)
	}
}

// TestBodies: energy and momentum stay what they are.
func TestBodies(t *testing.T) {
	w := newWorld(40)
	item := func(x *millrace.Tensor) float64 {
		t.Helper()
		v, err := millrace.Item[float64](x)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := item(w.energy())
	for range 100 {
		w.step(1e-3)
	}
	if after := item(w.energy()); math.Abs(after-before) > 1e-4*math.Abs(before) {
		t.Errorf("the energy was %v and is %v", before, after)
	}
	if drift := item(w.move.Sum(0).Abs().Max()); drift > 1e-12 {
		t.Errorf("all together they move by %v", drift)
	}
}
