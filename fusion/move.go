package fusion

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// move computes a value of a Pad, Concat or Assign. Within the part of the result that one operand
// covers, it is that operand's value; elsewhere it is the padding, the second operand or the
// target.
func (b *body) move(n *ir.Node, t int32, m *indexMap) ir.Ref {
	def := b.x.seg.Tensors[t].Def
	part := 0
	if n.Op == ir.Assign {
		part = 1
	}
	own := b.x.maps.across(m, def, part)
	inside := b.inPart(m, def, part)
	v := b.value(n.Args[part].ID, own)
	if inside == ir.None {
		return v
	}
	var rest ir.Ref
	switch n.Op {
	case ir.Pad:
		rest = b.scalar(n.Args[1].ID)
	case ir.Concat:
		rest = b.value(n.Args[1].ID, b.x.maps.across(m, def, 1))
	default:
		rest = b.value(n.Args[0].ID, b.x.maps.broadcast(m, b.x.class.of[n.Args[0].ID]))
	}
	return b.emit(ir.Where, n.DT, 0, inside, v, rest)
}

// guard is a bool value: true where every element on the way of m exists. A load through m needs
// it. It is None if every element exists at all points.
func (b *body) guard(m *indexMap) ir.Ref {
	for m.moves() && m.last().kind != stepMove {
		m = m.before
	}
	if !m.moves() {
		return ir.None
	}
	key := instance{at: m, within: b.within}
	if r, ok := b.guards.get(key); ok {
		return r
	}
	s := m.last()
	r := b.and(b.guard(m.before), b.inPart(m.before, s.node, s.axes[0]))
	b.guards.set(key, r)
	return r
}

func (b *body) and(x, y ir.Ref) ir.Ref {
	switch {
	case x == ir.None:
		return y
	case y == ir.None:
		return x
	}
	return b.emit(ir.And, ir.Bool, 0, x, y)
}

// signBit is set in the low half of a negative position.
const signBit = 1 << 31

// inPart is a bool value: true where an element of a node's result, at m, comes from operand arg.
// It is None if all elements do. It compares positions: the distance after the part's first element
// and the distance before its last. In the part neither is negative.
func (b *body) inPart(m *indexMap, def int32, arg int) ir.Ref {
	n := &b.x.seg.Nodes[def]
	outside, between := ir.None, ir.None
	for d := range n.Shape {
		for _, which := range b.x.bounds(n, def, arg, d) {
			slot := b.operand(codegen.Index, b.x.seg.Out[def], b.x.maps.bound(m, def, arg, which, d))
			at := b.emit(ir.IndexLo, ir.Uint32, uint64(slot))
			if which == Between {
				between = b.or(between, at)
			} else {
				outside = b.or(outside, at)
			}
		}
	}
	in := ir.None
	if outside != ir.None {
		in = b.emit(ir.Lt, ir.Bool, 0, outside, b.emit(ir.Const, ir.Uint32, signBit))
	}
	if between != ir.None {
		in = b.and(in, b.emit(ir.Eq, ir.Bool, 0, between, b.emit(ir.Const, ir.Uint32, 0)))
	}
	return in
}

func (b *body) or(x, y ir.Ref) ir.Ref {
	if x == ir.None {
		return y
	}
	return b.emit(ir.Or, ir.Uint32, 0, x, y)
}

// bounds lists the bounds that decide, along dim d, whether an element comes from operand arg.
// There are none if the operand's dim equals the result's dim at all sizes.
func (x *explorer) bounds(n *ir.Node, def int32, arg, d int) []Bound {
	part := x.class.of[n.Args[arg].ID]
	if x.class.dims[part][d] == x.class.dims[x.class.of[x.seg.Out[def]]][d] {
		return nil
	}
	switch {
	case n.Op != ir.Concat && !unit(n, d):
		return []Bound{Low, High, Between}
	case n.Op != ir.Concat:
		return []Bound{Low, High}
	case arg == 0:
		return []Bound{High}
	}
	return []Bound{Low}
}

func unit(n *ir.Node, d int) bool { return n.Attr.Step[d] == 1 || n.Attr.Step[d] == -1 }

func allUnit(n *ir.Node) bool {
	for d := range n.Shape {
		if !unit(n, d) {
			return false
		}
	}
	return true
}

// unitGuards are guards for the node steps (strides) that plan step s relies on to be 1 or -1.
func (x *explorer) unitGuards(s *Step) []Guard {
	var gs []Guard
	for _, i := range s.Nodes {
		n := &x.seg.Nodes[i]
		if n.Op.Class() != ir.ClassMove || n.Op == ir.Concat {
			continue
		}
		arg := 0
		if n.Op == ir.Assign {
			arg = 1
		}
		for d := range n.Shape {
			if len(x.bounds(n, int32(i), arg, d)) > 0 && unit(n, d) {
				gs = append(gs, Guard{Unit: true, A: i, ADim: d})
			}
		}
	}
	return gs
}
