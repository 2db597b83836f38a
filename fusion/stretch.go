package fusion

import (
	"math"

	"github.com/millrace-go/millrace/ir"
)

// A kernel of rows visits points in the order in which rows are folded. Some operands are made of
// parts that are apart in memory but whose elements alternate, such as a convolution that a stride
// splits into several. Then the innermost dim is walked in stretches that are only as long as the
// number of parts, and starting a stretch costs more than its few points. A kernel without rows
// walks another dim instead. So such operands should be written to memory before rows are made of
// them.

// stretches is the number of stretches of points that the kernel of a group with rows walks, summed
// over its operands; 0 if every stretch is as long as the innermost dim.
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

// between is the distance in the result, along the innermost dim, between two elements of the
// operand that step s leads to, if there are other elements between them; else the largest number.
func (x *explorer) between(s *mapStep) int64 {
	n := &x.seg.Nodes[s.node]
	if s.kind != stepMove && s.kind != stepBound || n.Op == ir.Concat || len(n.Shape) == 0 || unit(n, len(n.Shape)-1) {
		return math.MaxInt64
	}
	step := n.Attr.Step[len(n.Shape)-1]
	return int64(max(step, -step))
}

// innermost is the size of the last dim of a class that has more than one element, at explored
// sizes; 1 if there is none.
func (x *explorer) innermost(class int32) int64 {
	dims := x.class.dims[class]
	for d := len(dims) - 1; d >= 0; d-- {
		if n := x.class.size[dims[d]]; n != 1 {
			return max(n, 1)
		}
	}
	return 1
}

// stretch is the number of neighbours along the innermost dim that a map takes to elements at one
// constant distance. It is less than the dim's size where a reshape splits the dim and a later step
// moves the pieces apart.
func (x *explorer) stretch(m *indexMap) int64 {
	whole := x.innermost(m.from)
	part := whole // length of the dim's piece that is the last dim of the current shape
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
				return whole // from here on another dim is the last one
			}
		case stepBroadcast:
		case stepGather, stepScatter:
			return whole // found one element at a time
		default:
			part = min(part, x.between(s))
			if part < whole {
				return part
			}
		}
	}
	return whole
}
