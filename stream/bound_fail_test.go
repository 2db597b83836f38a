package stream

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// A run without memory for its results, bound or not, is an error. Its results can be released,
// and the next run is right.
func TestBoundLacksMemory(t *testing.T) {
	defer testhook.SetSteps(0, 0)
	defer fault.Reset()
	testhook.SetSteps(8, 0)
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

// trainer runs training steps as a tape.
type trainer struct {
	*stepper
	tape *Tape
	in   []*Value
}

func newTrainer(t *testing.T, p progen.Step, change ...func(*device.Options)) *trainer {
	x := &trainer{stepper: newStepper(open(t, change...), p)}
	for i := range p.Data {
		v := new(Value)
		FromHost(v, Place{S: x.s}, p.Inputs[i].DT, p.Inputs[i].Shape, x.data[i])
		x.in = append(x.in, v)
	}
	x.tape = tapeOf(t, x.s, x.in, func(in []*Value) []*Value {
		vals := append(append([]*Value(nil), in...), x.params...)
		for i := range p.Nodes {
			n := &p.Nodes[i]
			v := new(Value)
			recordNode(v, Place{S: x.s}, n, argsOf(p.Graph, n, vals))
			vals = append(vals, v)
		}
		for i, id := range p.Outputs[1:] {
			Set(x.params[i], vals[id])
		}
		return []*Value{vals[p.Outputs[0]]}
	})
	return x
}

// run plays one step and returns its results.
func (x *trainer) run(wait bool) ([]*Value, error) {
	out := []*Value{new(Value)}
	done, err := x.tape.Play(x.s, x.in, nil, out, wait)
	if !done {
		x.e.t.Fatal("the tape does not fit")
	}
	return out, err
}

func (x *trainer) bytes(v *Value) string {
	x.e.t.Helper()
	data := make([]byte, v.Shape().Elems()*v.DType().Size())
	if err := Read(v, data); err != nil {
		x.e.t.Fatal(err)
	}
	return string(data)
}

// If a launch of a bound step fails, the engine computes the failed part op by op, whichever
// launch it is. Loss and weights have the same bits as without the failure.
func TestBoundLaunchesFail(t *testing.T) {
	defer testhook.SetSteps(0, 0)
	defer fault.Reset()
	for name, p := range map[string]progen.Step{"chain": progen.Chain(6, 10), "transformer": progen.Transformer(1, 2, 4, 4)} {
		for _, step := range []int{0, 40} {
			if name == "transformer" && step > 0 {
				continue // a step would end between a weight's transpose and its Set
			}
			testhook.SetSteps(step, 0)
			short := func(o *device.Options) { o.QueueCap = 8 }
			good, bad := newTrainer(t, p, short), newTrainer(t, p, short)
			rnd := rand.New(rand.NewPCG(5, uint64(step)))
			launches := int(good.e.d.Stats().Runtime.Launches)
			for turn := range 20 {
				want, err := good.run(true)
				if err != nil {
					t.Fatal(err)
				}
				var others []*Value
				if rnd.IntN(3) == 0 { // values that another handle names are not overwritten
					v := new(Value)
					To(v, Place{S: bad.s}, bad.params[rnd.IntN(len(bad.params))])
					others = append(others, v)
				}
				if turn%2 == 1 {
					fault.SetAfter(fault.Launch, rnd.IntN(launches), 1)
				}
				got, err := bad.run(rnd.IntN(2) == 0)
				if err == nil {
					Flush(got[0])
				}
				bad.e.d.drain()
				fault.Reset()
				if err != nil {
					t.Fatalf("%s, %d ops at most, turn %d: %v", name, step, turn, err)
				}
				for i, v := range append(got, bad.params...) {
					if bad.bytes(v) != good.bytes(append(want, good.params...)[i]) {
						t.Fatalf("%s, %d ops at most, turn %d: %d of loss and weights differs", name, step, turn, i)
					}
				}
				for _, v := range append(append(got, want...), others...) {
					Release(v)
				}
			}
			s := bad.e.d.Stats()
			if len(bad.tape.parts) > 1 != (step > 0) || s.Replays < 10 || s.Fallbacks < 5 {
				t.Errorf("%s, %d ops at most: %d parts, %d replays, %d of them made up for", name, step, len(bad.tape.parts), s.Replays, s.Fallbacks)
			}
		}
	}
}

// Results that do not depend on the failed op are right, even if their memory held a result that
// does depend on it.
func TestBoundFaultsStayWhereTheyAre(t *testing.T) {
	defer testhook.SetSteps(0, 0)
	testhook.SetSteps(8, 0)
	e := open(t, func(o *device.Options) { o.QueueCap = 8 })
	s := e.d.NewStream()
	table := e.host(Place{S: s}, ir.Shape{3}, 1, 2, 3)
	g := e.host(Place{S: s}, ir.Shape{2}, 3, 4)
	index := func(at byte) *Value {
		v := new(Value)
		FromHost(v, Place{S: s}, ir.Int32, ir.Shape{2}, []byte{0, 0, 0, 0, at, 0, 0, 0})
		return v
	}
	good := index(1)
	tape := tapeOf(t, s, []*Value{good, g}, func(in []*Value) []*Value {
		x := new(Value)
		Record(x, Place{}, ir.Gather, ir.Invalid, nil, &ir.Attr{Axes: []int{0}, Mode: ir.IndexError}, []Arg{t1(table), t1(in[0])})
		for range 16 {
			x = add(e, mul(e, x, 2), -1)
		}
		y := in[1]
		for range 32 {
			y = mul(e, add(e, y, 1), 0.5)
		}
		return []*Value{x, y, in[1]}
	})
	defer tape.Release()
	if len(tape.parts) < 4 {
		t.Fatalf("%d parts", len(tape.parts))
	}
	var want []float32
	for turn, idx := range []*Value{good, good, good, index(9), index(9), good, good} {
		out := []*Value{new(Value), new(Value), new(Value)}
		was := e.d.Stats().Replays
		if done, err := tape.Play(s, []*Value{idx, g}, nil, out, false); err != nil || !done {
			t.Fatal(done, err)
		}
		if turn == 3 && e.d.Stats().Replays == was {
			t.Fatal("what fails is no replay")
		}
		if _, err := e.read(out[0]); (err != nil) != (turn == 3 || turn == 4) {
			t.Errorf("turn %d: what depends on the index: %v", turn, err)
		}
		if got, err := e.read(out[1]); turn == 0 {
			want = got
		} else if err != nil {
			t.Errorf("turn %d: what does not depend on the index: %v", turn, err)
		} else {
			e.want(out[1], want...)
		}
	}
}

// broken is a device whose runs fail on demand, without telling which launch failed.
type broken struct {
	*refdev.Device
	now bool
}

func (d *broken) Run(ls []runtime.Launch) error {
	if d.now {
		return errors.New("broken")
	}
	return d.Device.Run(ls)
}

// If it is unknown which launches ran, the results of the run are lost, and its operands are not.
func TestBoundFailsOutright(t *testing.T) {
	drv := &broken{Device: refdev.New(runtime.Config{})}
	d, err := OpenOn(drv, device.Options{Explore: device.ExploreWait})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	e := &env{t, d}
	s := d.NewStream()
	x := e.host(Place{S: s}, ir.Shape{2, 2}, 1, 2, 3, 4)
	w := e.host(Place{S: s}, ir.Shape{2, 2}, 5, 6, 7, 8)
	turned := func(v *Value) *Value {
		to := new(Value)
		Record(to, Place{}, ir.Permute, ir.Invalid, nil, &ir.Attr{Axes: []int{1, 0}}, []Arg{t1(v)})
		return to
	}
	tape := tapeOf(t, s, []*Value{x}, func(in []*Value) []*Value {
		return []*Value{turned(in[0]), turned(w), e.op(ir.Add, t1(in[0]), t1(w))}
	})
	defer tape.Release()
	for turn := range 8 {
		was := d.Stats().Replays
		drv.now = turn == 4
		out, err := play(t, tape, s, x)
		if (err != nil) != drv.now {
			t.Fatalf("turn %d: %v", turn, err)
		}
		if drv.now && d.Stats().Replays == was {
			t.Error("what failed is no replay")
		}
		drv.now = false
		e.want(x, 1, 2, 3, 4)
		e.want(w, 5, 6, 7, 8)
		if err == nil {
			e.want(out[0], 1, 3, 2, 4)
			e.want(out[1], 5, 7, 6, 8)
			e.want(out[2], 6, 8, 10, 12)
		}
		for _, v := range out {
			Release(v)
		}
	}
}
