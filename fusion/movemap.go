package fusion

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// across extends m, which leads to the result of a node of data movement, to operand arg of that
// node. The element is in the operand only within bounds.
func (ms *mapSet) across(m *indexMap, def int32, arg int) *indexMap {
	n := &ms.seg.Nodes[def]
	return ms.push(m, mapStep{kind: stepMove, from: m.to, to: ms.class.of[n.Args[arg].ID], axes: []int{arg}, node: def,
		hops: []Hop{{Node: int(def), Arg: arg}}})
}

// bound extends m, which leads to the result of a node of data movement, to the number that tells
// one bound of operand arg along dim d.
func (ms *mapSet) bound(m *indexMap, def int32, arg int, b Bound, d int) *indexMap {
	return ms.push(m, mapStep{kind: stepBound, from: m.to, to: ms.class.intern(dimKey{}, -1), axes: []int{arg, int(b), d}, node: def,
		hops: []Hop{{Node: int(def), Arg: arg, Bound: b, Dim: d}}})
}

// gather extends m, which leads to the result of a Gather, to the Gather's data.
func (ms *mapSet) gather(m *indexMap, def int32) *indexMap {
	n := &ms.seg.Nodes[def]
	return ms.push(m, mapStep{kind: stepGather, from: m.to, to: ms.class.of[n.Args[0].ID], node: def,
		hops: []Hop{{Node: int(def)}}})
}

// behindGather brings a broadcast after a gather to canonical form. If the broadcast drops the axis
// that the indices select along, the map does not use the indices, and the gather is dropped too.
func (ms *mapSet) behindGather(m *indexMap, s mapStep) (*indexMap, mapStep) {
	last := m.last()
	if last.kind != stepGather || !ms.class.broadcasts(last.from, s.to) {
		return m, s
	}
	axis := ms.seg.Nodes[last.node].Attr.Axes[0]
	to := ms.class.dims[s.to]
	if d := axis - (len(ms.class.dims[s.from]) - len(to)); d >= 0 && to[d] != one {
		return m, s
	}
	s.from = last.from
	return m.before, s
}

// moves reports a map across data movement. Such a map has no element at some points.
func (m *indexMap) moves() bool { return m.moved > 0 }

// gathers is the place of m's gather step, -1 if m has none.
func (m *indexMap) gathers() int {
	return slices.IndexFunc(m.steps, func(s mapStep) bool { return s.kind == stepGather })
}

// prefix is the map of the first steps of m.
func (m *indexMap) prefix(steps int) *indexMap {
	for len(m.steps) > steps {
		m = m.before
	}
	return m
}

// part says where the elements of operand arg are, along dim d, in the result of a node of data
// movement: element i is at start + i*step, for i below count.
func part(n *ir.Node, operand, first ir.Shape, arg, d int) (start, step, count int) {
	switch {
	case n.Op != ir.Concat:
		return n.Attr.Start[d], n.Attr.Step[d], operand[d]
	case arg == 1 && d == n.Attr.Axes[0]:
		return first[d], 1, operand[d]
	}
	return 0, 1, operand[d]
}
