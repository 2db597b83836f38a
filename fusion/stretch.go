package fusion

import (
	"math"

	"github.com/millrace-go/millrace/ir"
)

// Kernels of rows visit points in the order in which rows are folded. Where an
// operand is made of parts that lie apart but whose elements take turns, as a
// convolution is that a stride makes several of, the innermost dim is walked in
// stretches as short as there are parts, and to begin one costs more than the few
// points in it. A kernel without rows walks another dim instead. So what is made of
// such operands is better in memory before rows are made of it.

// stretches is how many stretches of points the kernel of a group with rows walks,
// counted for each of its operands; 0 where they are as long as the innermost dim.
func (x *explorer) stretches(g *group, b *body) int64 {
	whole := x.innermost(g.domain)
	short := whole
	for i := range b.operands {
		if o := &b.operands[i]; !o.row {
			short = min(short, x.stretch(o.at))
		}
	}
	if short == whole {
		return 0
	}
	return x.maps.elems(g.domain) / short * int64(len(b.operands))
}

// between is how far apart in the result the elements are, along the innermost dim,
// that a step of a map comes to, where others are between them.
func (x *explorer) between(s *mapStep) int64 {
	n := &x.seg.Nodes[s.node]
	if s.kind != stepMove && s.kind != stepBound || n.Op == ir.Concat || len(n.Shape) == 0 || unit(n, len(n.Shape)-1) {
		return math.MaxInt64
	}
	step := n.Attr.Step[len(n.Shape)-1]
	return int64(max(step, -step))
}

// innermost is the size of the last dim of a class that has more than one element, at
// explored sizes.
func (x *explorer) innermost(class int32) int64 {
	dims := x.class.dims[class]
	for d := len(dims) - 1; d >= 0; d-- {
		if n := x.class.size[dims[d]]; n != 1 {
			return max(n, 1)
		}
	}
	return 1
}

// stretch is how many neighbours along a map's innermost dim come to elements that
// lie one distance apart: fewer than the dim has where a reshape takes it apart and
// what comes after that moves its parts away from each other.
func (x *explorer) stretch(m *indexMap) int64 {
	whole := x.innermost(m.from)
	part := whole // of the dim, as the last dim of the shape come to
	for i := range m.steps {
		s := &m.steps[i]
		switch s.kind {
		case stepReshape:
			part = min(part, x.innermost(s.to))
		case stepPermute:
			if part < whole {
				return part
			}
			if n := len(s.axes) - 1; s.axes[n] != n {
				return whole // another dim is the last one from here on
			}
		case stepBroadcast:
		case stepGather, stepScatter:
			return whole // found element by element
		default:
			part = min(part, x.between(s))
			if part < whole {
				return part
			}
		}
	}
	return whole
}
