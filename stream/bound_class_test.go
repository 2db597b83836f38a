package stream

import (
	"slices"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/ir"
)

// A tape stays bound if the plan list has plans for other sizes before the tape's own plan.
func TestBoundOfOtherClasses(t *testing.T) {
	e := open(t, func(o *device.Options) { o.Device, o.Explore = "null", device.ExploreWait })
	s := e.d.NewStream()
	const d = 8
	w := e.host(Place{S: s}, ir.Shape{d}, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, -0.8)
	var xs []*Value
	var tapes []*Tape
	for _, rows := range []int{few, many, few, many} {
		x := e.host(Place{S: s}, ir.Shape{rows, d}, slices.Repeat([]float32{1, 2, 0.3, 4}, rows*d/4)...)
		xs = append(xs, x)
		tapes = append(tapes, tapeOf(t, s, []*Value{x}, func(in []*Value) []*Value {
			return []*Value{e.op(ir.Add, t1(in[0]), t1(e.op(ir.Erf, t1(w))))}
		}))
	}
	const turns = 10
	for i, tape := range tapes {
		defer tape.Release()
		was := e.d.Stats()
		for range turns {
			out, err := play(t, tape, s, xs[i])
			if err != nil {
				t.Fatal(err)
			}
			Release(out[0])
		}
		if n := e.d.Stats().Replays - was.Replays; n < turns-3 {
			t.Errorf("tape %d: %d of %d runs are replays", i, n, turns)
		}
	}
}

// A plan with a guard served once, because two scalars were equal by chance. Other plans of the
// same form are still found at once, and tapes that run by these plans can be bound.
func TestBoundBehindAChance(t *testing.T) {
	e := open(t, func(o *device.Options) { o.Device = "null" })
	s := e.d.NewStream()
	x := e.host(Place{S: s}, ir.Shape{8}, make([]float32, 8)...)
	of := func(a, b float32) *Tape {
		return tapeOf(t, s, []*Value{x}, func(in []*Value) []*Value {
			return []*Value{e.op(ir.Add, t1(mul(e, in[0], a)), t1(mul(e, in[0], b)))}
		})
	}
	of(2, 2).Release()
	tape := of(2, 3)
	defer tape.Release()
	if n := e.d.Stats().Explorations; n != 2 {
		t.Fatalf("%d explorations", n)
	}
	const turns = 6
	for range turns {
		out, err := play(t, tape, s, x)
		if err != nil {
			t.Fatal(err)
		}
		Release(out[0])
	}
	if n := e.d.Stats().Replays; n < turns-2 {
		t.Errorf("%d of %d runs are replays", n, turns)
	}
}
