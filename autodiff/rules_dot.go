package autodiff

import (
	"slices"

	"github.com/millrace-go/millrace/internal/adhook"
)

// dotBack is the rule of a sum of products along axes that are removed. Both factors have the same
// shape.
func dotBack(s *step) {
	wide := s.d.Reshape(keepDims(s.wideShape(), s.attr().Axes)...)
	s.each(0, func() *tensor { return wide.Mul(s.keptAt(1)) })
	s.each(1, func() *tensor { return wide.Mul(s.keptAt(0)) })
}

func (s *step) wideShape() []int { return s.kinds[0].shape }

// contractionBack: an operand's derivative is the contraction of the result's derivative with the
// other operand, into the operand's dims.
func contractionBack(s *step, c adhook.Contraction) {
	s.each(0, func() *tensor { return s.contract(c.Out, c.U, s.keptAt(1), c.T, 0) })
	s.each(1, func() *tensor { return s.contract(c.Out, c.T, s.keptAt(0), c.U, 1) })
}

// contract is the contraction of s.d, whose dims have the labels ld, with other (labels lo), into
// the dims of operand i (labels li).
func (s *step) contract(ld, lo []int, other *tensor, li []int, i int) *tensor {
	shape, sizes, theirs := s.kinds[i].shape, root.Shape(s.d), root.Shape(other)
	size := func(label int) (n int, known bool) {
		if k := slices.Index(lo, label); k >= 0 {
			n, known = theirs[k], true
		}
		switch k := slices.Index(ld, label); {
		case k < 0:
		case sizes[k] == 0:
			return 0, true
		default:
			return max(n, sizes[k]), true
		}
		return n, known
	}
	// Dims that only the operand has were summed over its own elements, so they get size 1 here and
	// are repeated later. Dims of size 1 that the other tensors repeat are summed here.
	out, back := make([]int, 0, len(li)), make([]int, 0, len(li))
	for k, l := range li {
		n, known := size(l)
		if !known || shape[k] == 1 && n != 1 {
			back = append(back, 1)
			continue
		}
		out, back = append(out, l), append(back, n)
	}
	r := root.Contract(s.d, ld, other, lo, out)
	if !slices.Equal(root.Shape(r), back) && r.Err() == nil {
		r = r.Reshape(back...)
	}
	return r
}
