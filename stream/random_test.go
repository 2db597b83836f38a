package stream

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/internal/progen"
	"github.com/millrace-go/millrace/ir"
)

// TestRandomPrograms runs random programs on the reference device under random
// options, with reads, syncs, scopes and streams thrown in at random, and
// compares every output with the oracle's bits. Programs are run twice on one
// device, so that the second run takes the plans of the first.
func TestRandomPrograms(t *testing.T) {
	n := 150
	if testing.Short() {
		n = 60
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			p := progen.New(uint64(seed), progen.Config{})
			if err := runRandom(p, uint64(seed)); err != nil {
				small := progen.Shrink(p, func(q *ir.Program) bool { return runRandom(q, uint64(seed)) != nil })
				t.Fatalf("%v\nshrunk to (%v):\n%v", err, runRandom(small, uint64(seed)), small)
			}
		})
	}
}

// runRandom runs p as a program would: handles, operands from anywhere.
func runRandom(p *ir.Program, seed uint64) error {
	inputs := progen.Inputs(p, seed)
	want, err := ir.EvalProgram(p, inputs)
	if err != nil {
		return nil // an error at record time is other tests' matter
	}
	rnd := rand.New(rand.NewPCG(seed, 7))
	o := Options{Device: "ref", Fusion: FusionMode(rnd.IntN(3))}
	if rnd.IntN(3) == 0 {
		o.QueueCap = 1 + rnd.IntN(12)
	}
	if rnd.IntN(4) == 0 {
		o.PinnedLimit = 1
	}
	o.Check = rnd.IntN(3) == 0
	d, err := Open(o)
	if err != nil {
		return err
	}
	defer d.Close()
	for turn := range 2 {
		if err := runOnce(d, p, inputs, want, rnd); err != nil {
			return fmt.Errorf("turn %d, options %+v: %w", turn, o, err)
		}
	}
	if live := d.Stats().LiveBytes; live != 0 {
		return fmt.Errorf("%d bytes live after everything was released, options %+v", live, o)
	}
	if pinned := d.Stats().PinnedBytes; pinned != 0 {
		return fmt.Errorf("%d bytes pinned after everything was released, options %+v", pinned, o)
	}
	return nil
}

func runOnce(d *Device, p *ir.Program, inputs [][]byte, want [][]byte, rnd *rand.Rand) error {
	streams := []*Stream{d.Default()}
	if rnd.IntN(2) == 0 {
		streams = append(streams, d.NewStream(), d.NewStream())
	}
	any := func() *Stream { return streams[rnd.IntN(len(streams))] }
	var scope *Scope
	if rnd.IntN(2) == 0 {
		scope = d.Default().OpenScope()
	}
	vals := make([]*Value, 0, len(p.Inputs)+len(p.Nodes))
	gone := map[int]bool{}
	for i, in := range p.Inputs {
		v := new(Value)
		pl := Place{S: any()}
		if scope != nil && rnd.IntN(2) == 0 {
			pl.Scope = scope
		}
		FromHost(v, pl, in.DT, in.Shape, inputs[i])
		vals = append(vals, v)
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op == ir.Release {
			Release(vals[n.Args[0].ID])
			gone[int(n.Args[0].ID)] = true
			continue
		}
		if n.Op == ir.Keep {
			continue
		}
		var args [3]Arg
		for k, a := range n.Args[:n.NArgs] {
			if a.Scalar {
				args[k].Bits = p.Scalars[a.ID].Bits
			} else {
				args[k].V = vals[a.ID]
			}
		}
		v := new(Value)
		Record(v, Place{S: any()}, n.Op, n.DT, n.Shape, n.Attr, args[:n.NArgs])
		vals = append(vals, v)
		switch rnd.IntN(24) {
		case 0:
			if err := any().Sync(context.Background()); err != nil {
				return fmt.Errorf("sync: %w", err)
			}
		case 1:
			k := rnd.IntN(len(vals))
			if !gone[k] {
				if err := Flush(vals[k]); err != nil {
					return fmt.Errorf("flush of %%%d: %w", k, err)
				}
			}
		case 2: // another handle takes a value over; the old one follows it
			u := new(Value)
			Set(u, v)
			if rnd.IntN(2) == 0 {
				vals[len(vals)-1] = u
			}
			defer Release(u)
		}
	}
	for i, id := range p.Outputs {
		v := vals[id]
		if v.Shape().Elems()*v.DType().Size() != len(want[i]) {
			return fmt.Errorf("output %d is %v of %v", i, v.Shape(), v.DType())
		}
		got := make([]byte, len(want[i]))
		if err := Read(v, got); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
		if err := sameBits(v.DType(), got, want[i]); err != nil {
			return fmt.Errorf("output %d (%%%d): %w", i, id, err)
		}
	}
	if scope != nil {
		scope.Close()
	}
	for _, v := range vals {
		Release(v)
	}
	return d.Default().Err()
}

// sameBits compares elements; any NaN equals any NaN.
func sameBits(dt ir.DType, got, want []byte) error {
	size := dt.Size()
	for i := 0; i < len(want); i += size {
		g, w := got[i:i+size], want[i:i+size]
		if string(g) == string(w) || isNaN(dt, g) && isNaN(dt, w) {
			continue
		}
		return fmt.Errorf("element %d is % x, want % x (%v)", i/size, g, w, dt)
	}
	return nil
}

func isNaN(dt ir.DType, b []byte) bool {
	switch dt {
	case ir.Float32:
		f := math.Float32frombits(binary.NativeEndian.Uint32(b))
		return f != f
	case ir.Float64:
		return math.IsNaN(math.Float64frombits(binary.NativeEndian.Uint64(b)))
	}
	return false
}
