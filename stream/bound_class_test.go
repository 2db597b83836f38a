package stream

import (
	"slices"
	"testing"

	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/ir"
)

// A tape stays bound where plans of other sizes come before its own.
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
