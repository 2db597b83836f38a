package plans

import (
	"slices"
	"sync/atomic"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/segment"
)

// Memo keeps the layout of the shapes a plan ran with last: a hot segment
// usually comes back with the same ones.
type Memo struct {
	Inputs []int32 // relative ids of operands
	Nodes  []int32 // nodes whose shapes do not follow from their operands
	Last   atomic.Pointer[Geometry]
}

// Geometry is one set of shapes and what follows from it. Immutable. Records of
// segments that ran with it share its copy of their nodes.
type Geometry struct {
	Seg    segment.Segment // without scalars
	Shapes []ir.Shape      // of Memo.Inputs, then of Memo.Nodes
	Attrs  []*ir.Attr      // of Memo.Nodes
	Views  []*fusion.View
	Layout *fusion.Layout
	Tuned  atomic.Pointer[autotune.Tuned] // nil until it runs
}

func (m *Memo) init(seg *segment.Segment) {
	for id := range seg.Tensors {
		if seg.Tensors[id].Def < 0 {
			m.Inputs = append(m.Inputs, int32(id))
		}
	}
	for n := range seg.Nodes {
		switch seg.Nodes[n].Op.Class() {
		case ir.ClassView, ir.ClassCreate, ir.ClassMove:
			m.Nodes = append(m.Nodes, int32(n))
		}
	}
}

// Fits reports that a segment, with its operands in mem, is laid out as a geometry says.
func (m *Memo) Fits(g *Geometry, seg *segment.Segment, mem []*memory.Storage) bool {
	for i, id := range m.Inputs {
		if !seg.Tensors[id].Shape.Equal(g.Shapes[i]) || !SameView(mem[id].View, g.Views[i]) {
			return false
		}
	}
	for i, n := range m.Nodes {
		if node := &seg.Nodes[n]; !node.Shape.Equal(g.Shapes[len(m.Inputs)+i]) || !SameAttr(node.Attr, g.Attrs[i]) {
			return false
		}
	}
	return true
}

// SameView reports layouts that are equal and strided.
func SameView(a, b *fusion.View) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && a.Offset == b.Offset && slices.Equal(a.Stride, b.Stride) &&
		len(a.Stages) == 0 && len(b.Stages) == 0
}

// SameAttr compares what of an attribute is not part of the relative form.
func SameAttr(a, b *ir.Attr) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && slices.Equal(a.Start, b.Start) && slices.Equal(a.Step, b.Step)
}

// LastRead is the last step that reads a tensor's memory; -1 for none.
func (e *Known) LastRead(t int) int {
	if u := e.Plan.Uses(); t < len(u.Read) {
		return u.Read[t]
	}
	return -1
}

// LastUse is the last step that reads or writes a tensor's memory; -1 for none.
func (e *Known) LastUse(t int) int {
	if u := e.Plan.Uses(); t < len(u.Write) {
		return max(u.Read[t], u.Write[t])
	}
	return -1
}
