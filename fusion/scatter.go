package fusion

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// The group of a scatter iterates over the indices, row by row along the axis. It computes the
// indices and the scattered values on the way. The tensor that is scattered into must be in memory.
// The result takes over its memory if nothing else needs it.

// scatters reports a group with a scatter. The scatter is the only row op of its kernel, and its
// result is the only output.
func (g *group) scatters() bool { return g.kind == &builders[kindScatter] }

// growScatter never grows. Values that a scatter needs are computed as its operands; only values
// that other groups read have groups of their own.
func growScatter(*explorer, *group, *group) ([]*group, string) { return nil, reasonScatter }

// scatter is the map from the domain of a scatter's indices to the tensor that is scattered into:
// to the row whose elements the indices select.
func (ms *mapSet) scatter(def int32) *indexMap {
	n := &ms.seg.Nodes[def]
	m := ms.identity(ms.class.of[n.Args[1].ID])
	return ms.push(m, mapStep{kind: stepScatter, from: m.to, to: ms.class.of[ms.seg.Out[def]], node: def,
		hops: []Hop{{Node: int(def)}}})
}

// scatter computes the result of a scatter in the scatter's own group. Other groups read it from
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

// under is the operand for tensor t, which must be in memory, possibly through views.
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
		case n.Op.Info().RowOp: // over no axes: the result is the operand
			b.nodes.add(b.x.seg.Tensors[t].Def)
		default:
			b.err = errLookup
			return b.operand(codegen.Input, t, m)
		}
		t = n.Args[0].ID
	}
}

// scatters reports a map to a row whose elements the indices select.
func (m *indexMap) scatters() bool { return len(m.steps) > 0 && m.steps[0].kind == stepScatter }
