package autodiff

import (
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/follow"
)

// dotBack of a sum of products along axes that stay away: the factors have one shape.
func dotBack(s *step) {
	wide := s.do(s.d.Reshape(keepDims(s.wideShape(), s.attr().Axes)...))
	s.each(0, func() *tensor { return wide.Mul(s.keptAt(1)) })
	s.each(1, func() *tensor { return wide.Mul(s.keptAt(0)) })
}

func (s *step) wideShape() []int { return s.kinds[0].shape }

// contractionBack: each operand's derivative is the contraction of the result's with the
// other operand, into the operand's dims.
func contractionBack(s *step) {
	c := s.call.With.(follow.Contraction)
	s.each(0, func() *tensor { return s.contract(c.Out, c.U, s.keptAt(1), c.T, 0) })
	s.each(1, func() *tensor { return s.contract(c.Out, c.T, s.keptAt(0), c.U, 1) })
}

// contract is d, whose dims have the labels ld, with other, into the dims of operand i.
func (s *step) contract(ld, lo []int, other *tensor, li []int, i int) *tensor {
	shape, size := s.kinds[i].shape, map[int]int{}
	for k, l := range lo {
		size[l] = other.Dim(k)
	}
	for k, l := range ld {
		size[l] = max(size[l], s.d.Dim(k))
		if s.d.Dim(k) == 0 {
			size[l] = 0
		}
	}
	// Dims that only the operand has were added up with its own elements alone, and dims of
	// size 1 that the others repeat are added up here.
	var out, back []int
	for k, l := range li {
		n, known := size[l]
		if !known || shape[k] == 1 && n != 1 {
			back = append(back, 1)
			continue
		}
		out, back = append(out, l), append(back, n)
	}
	r := s.do(millrace.Einsum(letters(ld, lo, out), s.d, other))
	if !slices.Equal(r.Shape(), back) && r.Err() == nil {
		r = s.do(r.Reshape(back...))
	}
	return r
}

// letters spell a contraction of two operands as Einsum reads it.
func letters(t, u, out []int) string {
	of := map[int]byte{}
	spell := func(ls []int) (b []byte) {
		for _, l := range ls {
			c, known := of[l]
			if !known {
				c = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[len(of)]
				of[l] = c
			}
			b = append(b, c)
		}
		return b
	}
	a, b, c := spell(t), spell(u), spell(out)
	return string(a) + "," + string(b) + "->" + string(c)
}
