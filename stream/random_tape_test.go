package stream

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// TestRandomTapes runs random programs repeatedly as recordings that read and set outside
// handles: bound or not, on two streams, with or without giving arguments away, with values that
// other handles hold, and with failing launches. Results and held values have the oracle's bits,
// and no memory remains in use.
func TestRandomTapes(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 70
	}
	defer testhook.SetSteps(0, 0)
	defer fault.Reset()
	replays, sets, tapes := 0, 0, 0
	for seed := range uint64(n) {
		c := progen.Config{Ops: 30, MaxElems: 1000, Groups: groups[seed%2]}
		p := progen.New(32<<32+seed, c)
		got, err := runTape(p, seed, nil)
		if err != nil {
			small := progen.Shrink(p, func(q *ir.Graph) bool { _, err := runTape(q, seed, nil); return err != nil })
			_, last := runTape(small, seed, nil)
			t.Fatalf("seed %d: %v\nshrunk to (%v):\n%v", seed, err, last, small)
		}
		replays, sets, tapes = replays+got.replays, sets+len(got.sets), tapes+got.tapes
	}
	if replays < 2*n || sets < n/2 || tapes < n/2 {
		t.Errorf("%d programs gave %d tapes, which set %d handles and ran bound %d times", n, tapes, sets, replays)
	}
}

// randomTape is a random program as a recording.
type randomTape struct {
	*randomStep
	outside map[int]*Value // inputs that are not arguments
	sets    map[int]int    // the output to which each of some outside inputs is set
	held    []heldValue    // values that other handles hold
	loose   []*Value       // values that the function made from outside tensors and did not release

	copies *copies // some results are copied by host ops; nil: none are

	replays, tapes int
}

type heldValue struct {
	v    *Value
	want []byte
}

func runTape(p *ir.Graph, seed uint64, c *copies) (*randomTape, error) {
	x := &randomTape{randomStep: &randomStep{p: p, inputs: progen.Inputs(p, seed), rnd: rand.New(rand.NewPCG(seed, 18))},
		outside: map[int]*Value{}, sets: map[int]int{}, copies: c}
	var err error
	if x.want, err = ir.EvalGraph(p, x.inputs); err != nil {
		return x, nil
	}
	o := device.Options{Device: "ref", Fusion: device.FusionMode(x.rnd.IntN(3)), QueueCap: 5 + x.rnd.IntN(60)}
	if x.rnd.IntN(6) == 0 {
		o.PinnedLimit = 1 + x.rnd.Int64N(5000)
	}
	if o.Explore = device.ExploreMode(x.rnd.IntN(2)); x.rnd.IntN(3) == 0 { // the CPU device prepares lists of launches
		o.Device, o.Compile, o.Threads = "cpu", runtime.CompileOff, 1+x.rnd.IntN(2)
	}
	o.Report = seed%2 == 0                            // now and then, launches are timed one by one
	testhook.SetSteps(x.rnd.IntN(60), x.rnd.IntN(20)) // 0 sets no limit
	if x.d, err = Open(o); err != nil {
		return x, err
	}
	defer x.d.Close()
	if c != nil {
		c.lane = x.d.NewHostLane()
	}
	if err := x.run(); err != nil {
		return x, fmt.Errorf("options %+v, sets %v: %w", o, x.sets, err)
	}
	if c != nil {
		c.lane.lane.Queued().Wait()
	}
	if err := x.d.Wait(); err != nil {
		return x, err
	}
	hostOps := 0
	if c != nil {
		hostOps = int(c.ran.Load())
	}
	if err := reportFits(x.d, hostOps); err != nil {
		return x, err
	}
	s := x.d.Stats()
	x.replays = int(s.Replays)
	if s.LiveBytes != 0 || s.PinnedBytes != 0 {
		return x, fmt.Errorf("%d bytes live, %d pinned after everything was released, options %+v, sets %v", s.LiveBytes, s.PinnedBytes, o, x.sets)
	}
	return x, nil
}

// host makes a value of the present elements of input i.
func (x *randomTape) host(s *Stream, i int) *Value {
	v := new(Value)
	FromHost(v, Place{S: s}, x.p.Inputs[i].DT, x.p.Inputs[i].Shape, x.inputs[i])
	return v
}

// choose picks the inputs that are outside handles, and the outputs to which they are set.
func (x *randomTape) choose(s *Stream) {
	types := x.p.Types()
	taken := map[int]bool{}
	for i, in := range x.p.Inputs {
		if x.rnd.IntN(2) == 0 {
			continue
		}
		x.outside[i] = x.host(s, i)
		for j, id := range x.p.Outputs {
			if t := types[id]; t.DT == in.DT && t.Shape.Equal(in.Shape) && !taken[j] && id >= len(x.p.Inputs) && x.rnd.IntN(3) > 0 {
				x.sets[i], taken[j] = j, true
				break
			}
		}
	}
}

// record is the recorded function.
func (x *randomTape) record(s *Stream, sc *Scope, args []*Value) (results []*Value) {
	var vals []*Value
	for i := range x.p.Inputs {
		if h := x.outside[i]; h != nil {
			vals = append(vals, h)
			continue
		}
		vals, args = append(vals, args[0]), args[1:]
	}
	for i := range x.p.Nodes {
		if n := &x.p.Nodes[i]; n.Op == ir.Release && int(n.Args[0].ID) < len(x.p.Inputs) {
			continue
		}
		if v, ok := x.randomStep.record(i, Place{S: s, Scope: sc}, vals); ok {
			if x.copies != nil && x.rnd.IntN(6) == 0 {
				v = x.copies.of(v)
			}
			vals = append(vals, v)
			if v.owner() == nil && !slices.Contains(x.p.Outputs, len(vals)-1) {
				x.loose = append(x.loose, v)
			}
		}
	}
	for _, id := range x.p.Outputs {
		if int(id) < len(x.p.Inputs) { // an input needs a handle of its own
			v := new(Value)
			To(v, Place{S: s}, vals[id])
			results = append(results, v)
			continue
		}
		sc.Keep(vals[id])
		results = append(results, vals[id])
	}
	for i := range x.p.Inputs {
		if j, is := x.sets[i]; is {
			Set(x.outside[i], results[j])
		}
	}
	return results
}

// next computes the inputs and the expected outputs of the next run.
func (x *randomTape) next() (err error) {
	x.inputs = slices.Clone(x.inputs)
	for i, j := range x.sets {
		x.inputs[i] = x.want[j]
	}
	x.want, err = ir.EvalGraph(x.p, x.inputs)
	return err
}

func (x *randomTape) run() error {
	streams := []*Stream{x.d.NewStream(), x.d.NewStream()}
	s := streams[0]
	x.choose(s)
	var tape *Tape
	defer func() {
		if tape != nil {
			tape.Release()
		}
		for _, h := range x.held {
			Release(h.v)
		}
		for _, v := range x.outside {
			Release(v)
		}
	}()
	for turn := range 12 {
		var args []*Value
		var gives []bool
		for i := range x.p.Inputs {
			if x.outside[i] == nil {
				args, gives = append(args, x.host(s, i)), append(gives, x.rnd.IntN(2) == 0)
			}
		}
		for i := range x.p.Inputs { // other handles may name the value
			if h := x.outside[i]; h != nil && x.rnd.IntN(6) == 0 {
				v := new(Value)
				To(v, Place{S: streams[x.rnd.IntN(2)]}, h)
				x.held = append(x.held, heldValue{v, x.inputs[i]})
			}
		}
		var results []*Value
		if tape == nil {
			var err error
			if tape, results, err = x.tape(s, args); tape == nil {
				for _, v := range append(results, args...) {
					Release(v)
				}
				return err
			}
			x.tapes++
		} else {
			for range x.p.Outputs {
				results = append(results, new(Value))
			}
			if x.rnd.IntN(3) == 0 {
				fault.SetAfter(fault.Launch, x.rnd.IntN(12), 1)
			}
			on := streams[min(1, x.rnd.IntN(5)/4)]
			done, err := tape.Play(on, args, gives, results, x.rnd.IntN(2) == 0)
			x.d.drain()
			fault.Reset()
			if err != nil || !done && len(x.sets) == 0 {
				return fmt.Errorf("turn %d: played %v: %w", turn, done, err)
			}
			if !done { // a handle was set to a view
				for _, v := range args {
					Release(v)
				}
				return nil
			}
		}
		for i, v := range results {
			if err := x.check(i, v); err != nil {
				return fmt.Errorf("turn %d: %w", turn, err)
			}
			if x.rnd.IntN(8) == 0 {
				x.held = append(x.held, heldValue{v, x.want[i]})
			} else {
				Release(v)
			}
		}
		for _, v := range args {
			Release(v)
		}
		for i, h := range x.held {
			got := make([]byte, len(h.want))
			if err := Read(h.v, got); err != nil {
				return fmt.Errorf("turn %d: %d of what is held: %w", turn, i, err)
			}
			if err := sameBits(h.v.DType(), got, h.want); err != nil {
				return fmt.Errorf("turn %d: %d of what is held: %w", turn, i, err)
			}
		}
		if len(x.held) > 4 {
			Release(x.held[0].v)
			x.held = x.held[1:]
		}
		if err := x.next(); err != nil {
			return nil // an index is out of range now
		}
		if turn == 3 {
			x.d.plans.Search.Wait()
		}
	}
	return nil
}

// tape records the program once. The tape is nil if the recording cannot be run again.
func (x *randomTape) tape(s *Stream, args []*Value) (*Tape, []*Value, error) {
	sc := s.OpenScope()
	in := within(s, sc, args)
	taping := s.StartTape(in)
	results := x.record(s, sc, in)
	sc.Close()
	tape := taping.End(results)
	for _, v := range x.loose {
		Release(v)
	}
	return tape, results, s.Err()
}
