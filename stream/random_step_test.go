package stream

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
)

// TestRandomSteps runs random programs in scopes that end anywhere, and as recordings of one or
// many parts, with random limits for steps and searches. It compares their results with the
// oracle's bits. No test runs beside it, because these limits are set for the whole process.
func TestRandomSteps(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 70
	}
	defer testhook.SetSteps(0, 0)
	defer testhook.SetPieces(false)
	parts, dropped := 0, 0
	for seed := range uint64(n) {
		c := progen.Config{Ops: 30, MaxElems: 1000, Groups: groups[seed%2]}
		if seed%10 == 9 {
			c.Ops, c.MaxElems = 400, 100
		}
		p := progen.New(31<<32+seed, c)
		got, err := runSteps(p, seed)
		if err != nil {
			small := progen.Shrink(p, func(q *ir.Graph) bool { _, err := runSteps(q, seed); return err != nil })
			_, last := runSteps(small, seed)
			t.Fatalf("seed %d: %v\nshrunk to (%v):\n%v", seed, err, last, small)
		}
		parts, dropped = parts+got.parts, dropped+got.dropped
	}
	if parts < 2*n || dropped < n/4 {
		t.Errorf("%d recordings had %d parts, and %d results that no later part reads", n, parts, dropped)
	}
}

// randomStep is a random program on a device.
type randomStep struct {
	d      *Device
	p      *ir.Graph
	inputs [][]byte
	want   [][]byte
	rnd    *rand.Rand
	last   []int // index of the last node that uses each tensor, len(p.Nodes) for outputs

	parts, dropped int
}

func runSteps(p *ir.Graph, seed uint64) (*randomStep, error) {
	x := &randomStep{p: p, inputs: progen.Inputs(p, seed), rnd: rand.New(rand.NewPCG(seed, 17))}
	var err error
	if x.want, err = ir.EvalGraph(p, x.inputs); err != nil {
		return x, nil
	}
	x.last = make([]int, len(p.Types()))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for _, a := range n.Args[:n.NArgs] {
			if !a.Scalar {
				x.last[a.ID] = i
			}
		}
	}
	for _, id := range p.Outputs {
		x.last[id] = len(p.Nodes)
	}
	o := device.Options{Device: "ref", Fusion: device.FusionMode(x.rnd.IntN(3)), QueueCap: 5 + x.rnd.IntN(60)}
	if x.rnd.IntN(6) == 0 {
		o.PinnedLimit = 1
	}
	o.Check = x.rnd.IntN(4) == 0
	o.Explore = device.ExploreMode(x.rnd.IntN(2))
	o.Report = seed%2 == 0                            // now and then, launches are timed one by one
	testhook.SetSteps(x.rnd.IntN(60), x.rnd.IntN(20)) // 0 sets no limit
	testhook.SetPieces(x.rnd.IntN(2) == 0)
	if x.d, err = Open(o); err != nil {
		return x, err
	}
	defer x.d.Close()
	x.d.plans.Quick = 1 + x.rnd.IntN(planstore.QuickEffort)
	for turn := range 3 {
		if err := x.scoped(); err != nil {
			return x, fmt.Errorf("turn %d, options %+v: %w", turn, o, err)
		}
	}
	if err := x.recorded(); err != nil {
		return x, fmt.Errorf("recorded, options %+v: %w", o, err)
	}
	if err := x.d.Wait(); err != nil {
		return x, err
	}
	if err := reportFits(x.d, 0); err != nil {
		return x, err
	}
	if s := x.d.Stats(); s.LiveBytes != 0 || s.PinnedBytes != 0 {
		return x, fmt.Errorf("%d bytes live, %d pinned after everything was released, options %+v", s.LiveBytes, s.PinnedBytes, o)
	}
	return x, nil
}

// record records node i with operands from vals. It returns false if the node is a mark.
func (x *randomStep) record(i int, p Place, vals []*Value) (*Value, bool) {
	n := &x.p.Nodes[i]
	switch n.Op {
	case ir.Release:
		Release(vals[n.Args[0].ID])
		return nil, false
	case ir.Keep:
		return nil, false
	}
	var args [3]Arg
	for k, a := range n.Args[:n.NArgs] {
		if a.Scalar {
			args[k].Bits = x.p.Scalars[a.ID].Bits
		} else {
			args[k].V = vals[a.ID]
		}
	}
	v := new(Value)
	recordNode(v, p, n, args[:n.NArgs])
	return v, true
}

func (x *randomStep) check(i int, v *Value) error {
	got := make([]byte, len(x.want[i]))
	if err := Read(v, got); err != nil {
		return fmt.Errorf("output %d: %w", i, err)
	}
	if err := sameBits(v.DType(), got, x.want[i]); err != nil {
		return fmt.Errorf("output %d (%%%d): %w", i, x.p.Outputs[i], err)
	}
	return nil
}

// scoped runs the program in a series of scopes. Each scope keeps the tensors that are used
// later; the next scope may take over one of them.
func (x *randomStep) scoped() error {
	s := x.d.Default()
	if x.rnd.IntN(2) == 0 {
		s = x.d.NewStream()
	}
	sc := s.OpenScope()
	var vals, others []*Value
	for i, in := range x.p.Inputs {
		v := new(Value)
		p := Place{S: s}
		if x.rnd.IntN(2) == 0 {
			p.Scope = sc
		}
		FromHost(v, p, in.DT, in.Shape, x.inputs[i])
		vals = append(vals, v)
	}
	for i := range x.p.Nodes {
		v, ok := x.record(i, Place{S: s, Scope: sc}, vals)
		if !ok {
			continue
		}
		vals = append(vals, v)
		switch x.rnd.IntN(20) {
		case 0:
			for id, v := range vals {
				if x.last[id] > i {
					sc.Keep(v)
				}
			}
			sc.Close()
			sc = s.OpenScope()
			if id := x.rnd.IntN(len(vals)); x.last[id] > i && vals[id].Err() == nil {
				u := new(Value)
				To(u, Place{S: s, Scope: sc}, vals[id])
				others = append(others, vals[id])
				vals[id] = u
			}
		case 1: // like the update of a weight
			u := new(Value)
			if old := vals[x.rnd.IntN(len(vals))]; x.rnd.IntN(2) == 0 && old.Err() == nil {
				Set(u, old)
			}
			Set(u, v)
			if x.rnd.IntN(2) == 0 {
				u, vals[len(vals)-1] = v, u
			}
			others = append(others, u)
		case 2:
			if err := Flush(v); err != nil {
				return err
			}
		}
	}
	for i, id := range x.p.Outputs {
		sc.Keep(vals[id])
		if i%2 == 0 {
			continue
		}
		if err := x.check(i, vals[id]); err != nil {
			return err
		}
	}
	sc.Close()
	for i, id := range x.p.Outputs {
		if err := x.check(i, vals[id]); err != nil {
			return err
		}
	}
	for _, v := range append(vals, others...) {
		Release(v)
	}
	return s.Err()
}

// recorded runs the program as a Recording, and then plays the tape.
func (x *randomStep) recorded() error {
	s := x.d.NewStream()
	var args []*Value
	for i, in := range x.p.Inputs {
		v := new(Value)
		FromHost(v, Place{S: s}, in.DT, in.Shape, x.inputs[i])
		args = append(args, v)
	}
	sc := s.OpenScope()
	vals := within(s, sc, args)
	taping := s.StartTape(vals)
	for i := range x.p.Nodes {
		if v, ok := x.record(i, Place{S: s, Scope: sc}, vals); ok {
			if x.rnd.IntN(12) == 0 {
				sc.Keep(v) // the handle is then dropped
			}
			vals = append(vals, v)
		}
	}
	var results []*Value
	for _, id := range x.p.Outputs {
		sc.Keep(vals[id])
		results = append(results, vals[id])
	}
	sc.Close()
	tape := taping.End(results)
	if tape == nil {
		for _, v := range append(vals, args...) {
			Release(v)
		}
		return nil
	}
	defer tape.Release()
	x.parts = len(tape.parts)
	for _, p := range tape.parts {
		x.dropped += p.unread
	}
	for turn := range 4 {
		for i, v := range results {
			if err := x.check(i, v); err != nil {
				return fmt.Errorf("run %d: %w", turn, err)
			}
		}
		if turn == 0 {
			for _, v := range vals {
				Release(v)
			}
		}
		for _, v := range results {
			Release(v)
		}
		if turn == 3 {
			break
		}
		results = nil
		for range x.p.Outputs {
			results = append(results, new(Value))
		}
		if done, err := tape.Play(s, args, nil, results, true); err != nil || !done {
			return fmt.Errorf("run %d: played %v: %w", turn+1, done, err)
		}
	}
	for _, v := range args {
		Release(v)
	}
	return s.Err()
}
