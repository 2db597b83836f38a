package fusion

import (
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// testCaps is a device with round figures, which never change, so golden files do not change.
func testCaps() *runtime.Caps {
	c := &runtime.Caps{
		Name: "test", Exact: true, Totals: true,
		MaxOperands: 16, MaxSlots: 64, MaxScalars: 64, MaxBody: 4096, MaxRowOps: 16, MaxBindings: 192,
		Bandwidth: 10e9, LaunchCost: 1e-6, OpCost: 10e-12,
	}
	for d := ir.Bool; d < ir.NumDTypes; d++ {
		c.ElemSize[d] = d.Size()
	}
	return c
}

func parseProgram(t testing.TB, text string) *ir.Graph {
	t.Helper()
	p, err := ir.ParseGraph(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// segmentOf makes the segment that a stream would cut from a program whose outputs are needed in
// memory and whose other results keep their handles (unless the program releases them).
func segmentOf(p *ir.Graph) *segment.Segment {
	s := &segment.Segment{}
	for _, in := range p.Inputs {
		s.Tensors = append(s.Tensors, segment.Tensor{DT: in.DT, Shape: in.Shape, Def: -1, Life: segment.LifeInput})
	}
	for i, n := range p.Nodes {
		if !n.HasResult() {
			if n.Op == ir.Release {
				if t := &s.Tensors[n.Args[0].ID]; t.Def < 0 {
					t.Life = segment.LifeInputDying
				} else {
					t.Life = segment.LifeDead
				}
			}
			continue
		}
		_ = i
		s.Out = append(s.Out, int32(len(s.Tensors)))
		s.Tensors = append(s.Tensors, segment.Tensor{DT: n.DT, Shape: n.Shape, Def: int32(len(s.Nodes)), Life: segment.LifeVirtual})
		s.Nodes = append(s.Nodes, n)
	}
	for _, sc := range p.Scalars {
		s.Scalars = append(s.Scalars, segment.Scalar{DT: sc.DT, Bits: sc.Bits})
	}
	for _, t := range p.Outputs {
		if s.Tensors[t].Def >= 0 {
			s.Tensors[t].Life = segment.LifeWrite
		}
	}
	return s
}

// Random programs are too small for the usual limits.
func init() { totalRows, totalRow = 1, 1 }
