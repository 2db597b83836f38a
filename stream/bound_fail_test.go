package stream

import (
	"errors"
	"testing"

	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/force"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// A run that has no memory for what it writes, bound or not, is an error; its results can
// be given up, and the next run is right.
func TestBoundLacksMemory(t *testing.T) {
	defer force.SetSteps(0, 0)
	defer fault.Reset()
	force.SetSteps(8, 0)
	e := open(t, func(o *device.Options) { o.QueueCap = 8 })
	s := e.d.NewStream()
	x := e.host(Place{S: s}, ir.Shape{2, 2}, 4, 3, 1, 2)
	w := e.host(Place{S: s}, ir.Shape{2, 2}, 1, 1, 1, 1)
	tape := tapeOf(t, s, []*Value{x}, func(in []*Value) []*Value {
		y := between(e, in[0])
		first := between(e, y)
		y = between(e, first)
		Set(w, e.op(ir.Add, t1(w), t1(y)))
		return []*Value{first, between(e, y)}
	})
	defer tape.Release()
	if len(tape.parts) < 2 {
		t.Fatalf("%d parts", len(tape.parts))
	}
	var want [2][]float32
	for range 4 {
		out, err := play(t, tape, s, x)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range out {
			if want[i], err = e.read(v); err != nil {
				t.Fatal(err)
			}
			Release(v)
		}
	}
	before := e.d.Stats()
	if before.Replays == 0 {
		t.Fatal("it was not bound")
	}
	failed := 0
	for after := range 40 {
		fault.SetAfter(fault.Alloc, after, -1)
		out, err := play(t, tape, s, x)
		fault.Reset()
		for _, v := range out {
			Release(v)
		}
		if err != nil {
			if failed++; !errors.Is(err, runtime.ErrOutOfMemory) {
				t.Fatal(err)
			}
			fresh := e.host(Place{S: s}, ir.Shape{2, 2}, 1, 1, 1, 1)
			Set(w, fresh)
			Release(fresh)
		}
		if out, err = play(t, tape, s, x); err != nil {
			t.Fatal(err)
		}
		for i, v := range out {
			e.want(v, want[i]...)
			Release(v)
		}
	}
	if failed < 3 {
		t.Errorf("%d runs failed", failed)
	}
	if now := e.d.Stats().LiveBytes; now > before.LiveBytes {
		t.Errorf("%d bytes live, before %d", now, before.LiveBytes)
	}
}
