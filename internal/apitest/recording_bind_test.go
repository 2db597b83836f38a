package apitest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/progen"
	"github.com/millrace-go/millrace/ir"
)

// Random programs as bound recordings give the oracle's bits, run after run, whatever is
// written into their arguments, and whatever others hold of arguments and results keeps
// what it was. Small ones of elementwise ops are one call where there is machine code.
func TestRandomBoundRecordings(t *testing.T) {
	specs := append([]string{"ref", "cpu:compile=native,threads=1", "ref:queue=3", "cpu:compile=native,queue=2", "cpu:compile=native,fusion=off"}, specs...)
	devices := make([]*millrace.Device, len(specs))
	for i, s := range specs {
		devices[i] = openSpec(t, s)
	}
	n := count(t, "PROGRAMS", programs)
	bound := 0
	for seed := range uint64(n) {
		c := progen.Config{MaxElems: []int{8, 40, 1000}[seed%3], Groups: []progen.Group{0, rowGroups}[seed/3%2]}
		if i := seed / 2 % 3; i < 2 { // what may be one call
			c.MaxElems, c.Groups = []int{4, 40}[i], 0
			c.Allow = func(op ir.Op, _, _ ir.DType) bool { return op.Class() != ir.ClassReduce }
			if c.DTypes = ir.SetOf(ir.Float32, ir.Float64); i == 0 {
				c.DTypes = ir.SetOf(ir.Float64)
			}
		}
		prog := progen.New(42<<32+seed, c)
		i := int(seed) % len(specs)
		err := boundRuns(devices[i], prog, seed)
		if err == nil {
			bound++
			continue
		}
		if errors.Is(err, millrace.ErrUnsupported) {
			continue
		}
		small := progen.Shrink(prog, func(p *ir.Graph) bool {
			d, err := millrace.Open(specs[i])
			if err != nil {
				return false
			}
			defer d.Close()
			err = boundRuns(d, p, seed)
			return err != nil && !errors.Is(err, millrace.ErrUnsupported)
		})
		t.Errorf("seed %d on %s: %v\nshrunk: %v", seed, specs[i], err, small)
	}
	if bound < n*9/10 {
		t.Errorf("%d of %d programs were bound", bound, n)
	}
	runs, calls := int64(0), int64(0)
	for _, d := range devices {
		s := d.Stats()
		runs, calls = runs+s.BoundRuns, calls+s.BoundCalls
	}
	if runs < int64(8*n) {
		t.Errorf("%d runs of %d programs", runs, n)
	}
	if calls < runs/8 {
		t.Errorf("%d of %d runs were one call", calls, runs)
	}
}

// boundRuns binds a program and runs it some times.
func boundRuns(dev *millrace.Device, prog *ir.Graph, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 6))
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		r := NewRunner(sc, prog, nil)
		r.Tensors = slices.Clone(in)
		for i := range prog.Nodes {
			r.Step(i)
		}
		var out []*millrace.Tensor
		for _, id := range prog.Outputs {
			out = append(out, r.Tensors[id])
		}
		return append(out, out[0]), nil // one of them twice
	})
	defer rec.Release()
	s := dev.NewStream()
	inputs := progen.Inputs(prog, seed)
	in := make([]*millrace.Tensor, len(inputs))
	for i, data := range inputs {
		in[i] = FromBytes([]millrace.Place{dev, s, dev.NewStream()}[rng.IntN(3)], prog.Inputs[i], data)
	}
	ids := append(slices.Clone(prog.Outputs), prog.Outputs[0])
	types := prog.Types()
	out := make([]*millrace.Tensor, len(ids))
	for i, id := range ids {
		if rng.IntN(2) == 0 {
			out[i] = FromBytes(s, types[id], make([]byte, types[id].Shape.Elems()*types[id].DT.Size()))
		}
	}
	b, err := rec.Bind(s, in, out)
	if err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	defer b.Close()
	type kept struct {
		t    *millrace.Tensor
		want ir.Dense
	}
	var held []kept
	for run := range 8 {
		if run > 0 {
			next := progen.Inputs(prog, seed+uint64(run))
			for i := range in {
				if rng.IntN(3) == 0 {
					continue
				}
				if inputs[i] = next[i]; prog.Inputs[i].DT == ir.Float32 && rng.IntN(3) > 0 {
					err = millrace.SetArgument(b, i, float32s(next[i])...)
				} else {
					in[i].Set(FromBytes(s, prog.Inputs[i], next[i]))
					err = in[i].Err()
				}
				if err != nil {
					return fmt.Errorf("run %d, argument %d: %w", run, i, err)
				}
			}
		}
		want, err := ir.EvalTensors(prog, inputs)
		if err != nil {
			return fmt.Errorf("oracle: %w", err)
		}
		if run%3 == 2 {
			err = b.RunN(1 + rng.IntN(100))
		} else {
			err = b.Run()
		}
		if err != nil {
			return fmt.Errorf("run %d: %w", run, err)
		}
		for i, id := range ids {
			if err := compare(b.Results()[i], want[id]); err != nil {
				return fmt.Errorf("run %d, result %d: %w", run, i, err)
			}
		}
		for i, t := range in {
			if err := compare(t, want[i]); err != nil {
				return fmt.Errorf("run %d, argument %d: %w", run, i, err)
			}
		}
		for _, k := range held {
			if err := compare(k.t, k.want); err != nil {
				return fmt.Errorf("run %d, what others have: %w", run, err)
			}
		}
		if rng.IntN(4) > 0 {
			continue
		}
		i := rng.IntN(len(ids))
		x, w := b.Results()[i], want[ids[i]]
		switch rng.IntN(4) {
		case 0: // a view
			held = append(held, kept{x.Reshape(x.Shape()...), w})
		case 1: // on another stream
			held = append(held, kept{x.To(dev.NewStream()), w})
		case 2: // another handle
			y := FromBytes(s, types[ids[i]], make([]byte, len(w.Data)))
			y.Set(x)
			held = append(held, kept{y, w})
		case 3:
			for _, k := range held {
				k.t.Release()
			}
			held = nil
		}
	}
	return nil
}

func float32s(data []byte) []float32 {
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v
}
