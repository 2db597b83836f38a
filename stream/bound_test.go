package stream

import (
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/ir"
)

// tapeOf records on a tape what f does with the values of a stream.
func tapeOf(t *testing.T, s *Stream, args []*Value, f func(in []*Value) []*Value) *Tape {
	t.Helper()
	sc := s.OpenScope()
	in := within(s, sc, args)
	taping := s.StartTape(in)
	out := f(in)
	for _, v := range out {
		sc.Keep(v)
	}
	sc.Close()
	tape := taping.End(out)
	if tape == nil {
		t.Fatal("it cannot be run again")
	}
	for _, v := range out {
		Release(v)
	}
	return tape
}

// within returns handles in a scope that name the values of args.
func within(s *Stream, sc *Scope, args []*Value) (in []*Value) {
	for _, a := range args {
		v := new(Value)
		To(v, Place{S: s, Scope: sc}, a)
		in = append(in, v)
	}
	return in
}

// play runs a tape and returns its results.
func play(t *testing.T, tape *Tape, s *Stream, args ...*Value) ([]*Value, error) {
	t.Helper()
	out := make([]*Value, tape.Results())
	for i := range out {
		out[i] = new(Value)
	}
	done, err := tape.Play(s, args, nil, out, true)
	if !done {
		t.Fatal("the tape does not fit")
	}
	return out, err
}

// between records ops that need memory for an intermediate result.
func between(e *env, x *Value) *Value {
	sorted := func(x *Value, axis int) *Value {
		y := new(Value)
		Record(y, Place{}, ir.Sort, ir.Invalid, nil, &ir.Attr{Axes: []int{axis}}, []Arg{t1(x)})
		return y
	}
	y := sorted(x, 0)
	return e.op(ir.Add, t1(e.op(ir.Add, t1(sorted(sorted(y, 1), 0)), t1(y))), t1(x))
}

// bound returns a tape that was played, and its Bound, claimed for a run on the stream.
func bound(t *testing.T, e *env, s *Stream) (*Tape, *exec.Bound) {
	t.Helper()
	x := e.host(Place{S: s}, ir.Shape{2, 2}, 4, 3, 1, 2)
	tape := tapeOf(t, s, []*Value{x}, func(in []*Value) []*Value { return []*Value{between(e, in[0])} })
	for range 2 { // the second play finds the plans
		if _, err := play(t, tape, s, x); err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.sketch(tape, false)
	if b == nil || b.Bytes == 0 {
		t.Fatal("it was not bound, or nothing lies between")
	}
	return tape, b
}

// A new Bound is claimed before others can see it, because they may lack memory and take its
// memory.
func TestBoundIsClaimedBeforeOthersSeeIt(t *testing.T) {
	e := open(t)
	tape, b := bound(t, e, e.d.NewStream())
	defer tape.Release()
	e.d.kept.yield()
	if !b.Holds() {
		t.Error("the memory of a run that is about to be was taken")
	}
	b.Unclaim()
	b.Drop()
}

// If another lane fails to claim a Bound whose run then ends, the Bound stays usable.
func TestBoundOutlivesItsRuns(t *testing.T) {
	e := open(t)
	tape, b := bound(t, e, e.d.NewStream())
	defer tape.Release()
	other := e.d.NewStream()
	if b.Claim(other.lane) {
		t.Fatal("two lanes run in one memory")
	}
	b.Unclaim()
	if b.Over() {
		t.Error("it is over, though nothing is wrong with it")
	}
	if !b.Claim(other.lane) {
		t.Error("it is not free when its run has ended")
	}
	e.d.kept.yield()
	b.Drop()
	if b.Over() || !b.Holds() {
		t.Error("it is over while it runs")
	}
	b.Unclaim()
	if !b.Over() || b.Holds() {
		t.Error("it is not over when its last run has ended")
	}
}

// Two tapes that take each other's memory do not do so in every run.
func TestBoundsThatTakeTurns(t *testing.T) {
	e := open(t, func(o *device.Options) { o.Device, o.PinnedLimit = "null", 20 })
	s := e.d.NewStream()
	x := e.host(Place{S: s}, ir.Shape{2, 2}, 4, 3, 1, 2)
	var tapes [2]*Tape
	for i := range tapes {
		tapes[i] = tapeOf(t, s, []*Value{x}, func(in []*Value) []*Value { return []*Value{between(e, in[0])} })
		defer tapes[i].Release()
	}
	made := map[*exec.Bound]bool{}
	const turns = 200
	for range turns {
		for _, tape := range tapes {
			out, err := play(t, tape, s, x)
			if err != nil {
				t.Fatal(err)
			}
			Release(out[0])
			for _, b := range tape.bounds.list {
				if made[b] = true; b.Bytes < 11 {
					t.Fatalf("there is room for two of %d bytes", b.Bytes)
				}
			}
		}
	}
	if n := len(made); n < 2 || n > turns/4 {
		t.Errorf("in %d runs of two tapes they were bound %d times", turns, n)
	}
	if n := e.d.Stats().Replays; n < turns/2 {
		t.Errorf("%d replays", n)
	}
}
