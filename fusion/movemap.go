package fusion

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// across goes on from m, which leads to the result of a node of data movement,
// to its operand arg: to an element that is there only within bounds.
func (ms *mapSet) across(m *indexMap, def int32, arg int) *indexMap {
	n := &ms.seg.Nodes[def]
	return ms.push(m, mapStep{kind: stepMove, from: m.to, to: ms.class.of[n.Args[arg].ID], axes: []int{arg}, node: def,
		hops: []Hop{{Node: int(def), Arg: arg}}})
}

// bound goes on from m, which leads to the result of a node of data movement,
// to the number that tells one bound of its operand arg along dim d.
func (ms *mapSet) bound(m *indexMap, def int32, arg int, b Bound, d int) *indexMap {
	return ms.push(m, mapStep{kind: stepBound, from: m.to, to: ms.class.intern(dimKey{}, -1), axes: []int{arg, int(b), d}, node: def,
		hops: []Hop{{Node: int(def), Arg: arg, Bound: b, Dim: d}}})
}

// gather goes on from m, which leads to the result of a Gather, to its data.
func (ms *mapSet) gather(m *indexMap, def int32) *indexMap {
	n := &ms.seg.Nodes[def]
	return ms.push(m, mapStep{kind: stepGather, from: m.to, to: ms.class.of[n.Args[0].ID], node: def,
		hops: []Hop{{Node: int(def)}}})
}

// behindGather is a broadcast in canonical form: one that leaves out the axis
// that indices pointed along never looks at them.
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

// moves reports a map across data movement: not every point has an element.
func (m *indexMap) moves() bool { return m.moved > 0 }

// gathers is the number of m's step to what indices point into, -1 if it has none.
func (m *indexMap) gathers() int {
	return slices.IndexFunc(m.steps, func(s mapStep) bool { return s.kind == stepGather })
}

// prefix is the beginning of m.
func (m *indexMap) prefix(steps int) *indexMap {
	for len(m.steps) > steps {
		m = m.before
	}
	return m
}

// part is where along dim d the result of a node of data movement has the
// elements of operand arg: element i at start + i*step, for i below n.
func part(n *ir.Node, operand, first ir.Shape, arg, d int) (start, step, count int) {
	switch {
	case n.Op != ir.Concat:
		return n.Attr.Start[d], n.Attr.Step[d], operand[d]
	case arg == 1 && d == n.Attr.Axes[0]:
		return first[d], 1, operand[d]
	}
	return 0, 1, operand[d]
}
