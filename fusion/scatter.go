package fusion

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// A scatter's group goes over its indices, row by row along the axis. What is
// scattered, and the indices, are computed as it goes; what it is scattered into
// must be in memory, and is the memory of the result where nobody needs it any
// longer.

// scatters reports a group with a scatter: the only row op of its kernel, whose
// result is all that is written.
func (g *group) scatters() bool { return g.kind == &builders[kindScatter] }

// growScatter never does: what could be computed with a scatter is computed for
// its operands, and only what others read is a group.
func growScatter(*explorer, *group, *group) ([]*group, string) { return nil, reasonScatter }

// scatter goes from the domain of a scatter's indices to what is scattered
// into: to the row there, whose elements the indices name.
func (ms *mapSet) scatter(def int32) *indexMap {
	n := &ms.seg.Nodes[def]
	m := ms.identity(ms.class.of[n.Args[1].ID])
	return ms.push(m, mapStep{kind: stepScatter, from: m.to, to: ms.class.of[ms.seg.Out[def]], node: def,
		hops: []Hop{{Node: int(def)}}})
}

// scatter makes the result of a scatter in its own group; others find it in
// memory.
func (b *body) scatter(n *ir.Node, t int32, m *indexMap) ir.Ref {
	if !b.g.scatters() || !b.owns(t) {
		b.err = errOtherRows
		return b.emit(ir.Const, n.DT, 0)
	}
	points := b.x.maps.identity(b.g.domain)
	index, value := b.value(n.Args[1].ID, points), b.value(n.Args[2].ID, points)
	slot := b.under(n.Args[0].ID, m)
	return b.emit(ir.Scatter, n.DT, codegen.ScatterImm(slot, n.Attr.Mode, n.Attr.Combine), index, value)
}

// under is the operand of what t is in memory, through views.
func (b *body) under(t int32, m *indexMap) int {
	for {
		n := b.x.node(t)
		switch {
		case n == nil || b.x.stored[t]:
			return b.operand(codegen.Input, t, m)
		case n.Op.Class() == ir.ClassView:
			def := b.x.seg.Tensors[t].Def
			b.nodes.add(def)
			m = b.x.maps.through(m, edge{node: def})
		case n.Op.Info().RowOp: // of no axes: it is its operand
			b.nodes.add(b.x.seg.Tensors[t].Def)
		default:
			b.err = errLookup
			return b.operand(codegen.Input, t, m)
		}
		t = n.Args[0].ID
	}
}

// scatters reports a map to a row that indices walk.
func (m *indexMap) scatters() bool { return len(m.steps) > 0 && m.steps[0].kind == stepScatter }
