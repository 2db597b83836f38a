package autodiff

import (
	"math"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// each gives operand i the derivative that f makes, if the operand needs one.
func (s *step) each(i int, f func() *tensor) {
	if s.wants[i] {
		s.give(i, f())
	}
}

// scalar is the value of operand i, a number.
func (s *step) scalar(i int) float64 {
	dt := s.kinds[0].dt
	for _, k := range s.kinds { // the dtype of the tensor operands; a mask may come before them
		if k.dt.IsFloat() {
			dt = k.dt
		}
	}
	return ir.BitsFloat(dt, s.call.Bits[i])
}

// times is d times operand i, a number or a tensor.
func (s *step) times(d *tensor, i int) *tensor {
	if s.isScalar(i) {
		return d.MulScalar(s.scalar(i))
	}
	return d.Mul(s.keptAt(i))
}

// full is operand i as a tensor; a number becomes a tensor of one element.
func (s *step) full(i int) *tensor {
	if s.isScalar(i) {
		return fullLike(s.d, s.scalar(i))
	}
	return s.keptAt(i)
}

// neg is -d if operand i needs it, else d.
func (s *step) neg(i int, d *tensor) *tensor {
	if !s.wants[i] {
		return d
	}
	return d.Neg()
}

// oneMinusSquare is 1-x² as the product (1-x)(1+x), because rounding the square near 1 would lose
// the difference. At 1 and -1 it is +0.
func (s *step) oneMinusSquare() *tensor {
	return s.x().ScalarSub(1).Mul(s.x().AddScalar(1))
}

// bounded is x clamped to a range outside of which the function's slope is constant. So no infinity
// or overflow is multiplied by 0.
func (s *step) bounded(bound float64) *tensor { return s.x().ClampScalar(-bound, bound) }

// byDistance splits x by size. isFar is true where |x| is so large that x²+1 rounds to x². far is x
// there and 1 elsewhere; near is x elsewhere and 0 there. The replacements 1 and 0 do no harm in
// derivatives of derivatives either.
func (s *step) byDistance() (isFar, far, near *tensor) {
	x := s.x()
	isFar = x.Abs().GtScalar(0x1p32)
	return isFar, millrace.WhereScalar(isFar, x, 1), millrace.ScalarWhere(isFar, 0, x)
}

// atanBack: 1/(x²+1); for large |x| 1/x/x, because the square may overflow.
func atanBack(s *step, d *tensor) *tensor {
	isFar, far, near := s.byDistance()
	there := d.Div(far).Div(far)
	return millrace.Where(isFar, there, d.Div(near.Square().AddScalar(1)))
}

// asinhBack: 1/√(x²+1); 1/|x| for large |x|.
func asinhBack(s *step, d *tensor) *tensor {
	isFar, far, near := s.byDistance()
	there := far.Abs().Recip()
	return d.Mul(millrace.Where(isFar, there, near.Square().AddScalar(1).Rsqrt()))
}

// acoshBack: 1/√(x-1)/√(x+1), where no part overflows.
func acoshBack(s *step, d *tensor) *tensor {
	x := s.x()
	return d.Mul(x.SubScalar(1).Rsqrt()).Mul(x.AddScalar(1).Rsqrt())
}

// gauss is exp(-k·x²).
func (s *step) gauss(x *tensor, k float64) *tensor {
	return x.Square().MulScalar(-k).Exp()
}

// geluBack: Φ(x) + x·φ(x), with the distribution function Φ and the density φ of the normal
// distribution.
func geluBack(s *step, d *tensor) *tensor {
	x := s.bounded(64) // φ is 0 outside
	cdf := x.MulScalar(math.Sqrt2 / 2).Erf().AddScalar(1).MulScalar(0.5)
	pdf := s.gauss(x, 0.5).MulScalar(1 / math.Sqrt(2*math.Pi))
	return d.Mul(cdf.Add(x.Mul(pdf)))
}

// geluTanhBack is the derivative of x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))).
func geluTanhBack(s *step, d *tensor) *tensor {
	const a, b = 0.79788456080286535588, 0.044715 // √(2/π)
	x := s.bounded(64)                            // |tanh| is 1 outside
	sq := x.Square()
	inner := x.Mul(sq.MulScalar(b).AddScalar(1)).MulScalar(a)
	t := inner.Tanh()
	slope := sq.MulScalar(3 * b).AddScalar(1).MulScalar(a / 2)
	left := t.AddScalar(1).MulScalar(0.5)
	right := x.Mul(t.Square().ScalarSub(1)).Mul(slope)
	return d.Mul(left.Add(right))
}

// siluBack: s·(1 + x·(1-s)), where s is the sigmoid of x.
func siluBack(s *step, d *tensor) *tensor {
	x := s.bounded(1024) // the sigmoid is 0 or 1 outside
	sg := x.Sigmoid()
	return d.Mul(sg.Mul(x.Mul(sg.ScalarSub(1)).AddScalar(1)))
}

// divBack of t/u: 1/u by t, and -(t/u)/u by u.
func divBack(s *step) {
	var q *tensor
	if s.isScalar(1) {
		q = s.d.DivScalar(s.scalar(1))
	} else {
		q = s.d.Div(s.y())
	}
	s.give(0, q)
	s.each(1, func() *tensor { return q.Neg().Mul(s.out()) })
}

// remBack of t mod u: 1 by t, and -floor(t/u) by u.
func remBack(s *step) {
	s.give(0, s.d)
	s.each(1, func() *tensor { return s.d.Neg().Mul(s.full(0).FloorDiv(s.y())) })
}

// powBack of t^u. By t: u·t^(u-1); 0 where u is 0, and where u is infinite and the power is 0. By
// u: t^u·log t; 0 where t is 0 and u is not negative, and where the power is 0 (log t may be
// infinite there).
func powBack(s *step) {
	switch {
	case s.isScalar(1):
		if e := s.scalar(1); e != 0 {
			s.each(0, func() *tensor { return s.d.Mul(s.x().PowScalar(e - 1).MulScalar(e)) })
			return
		}
		s.each(0, func() *tensor { return s.d.MulScalar(0) })
	default:
		s.each(0, func() *tensor {
			x, e := s.full(0), s.y()
			p := x.Pow(e.SubScalar(1))
			flat := e.EqScalar(0).Or(p.EqScalar(0).And(e.IsInf()))
			return s.d.Mul(millrace.ScalarWhere(flat, 0, e.Mul(p)))
		})
		s.each(1, func() *tensor {
			x, e := s.full(0), s.y()
			p := x.Pow(e)
			flat := x.EqScalar(0).And(e.GeScalar(0)).Or(p.EqScalar(0))
			slope := p.Mul(x.Log())
			return s.d.Mul(millrace.ScalarWhere(flat, 0, slope))
		})
	}
}

// chosen gives all of the derivative to the operand that was taken, of equal ones to the first.
// loses is true where the first operand was not taken.
func chosen(s *step, loses func(t, u *tensor) *tensor, losesTo func(t *tensor, u float64) *tensor) {
	var second *tensor // true where the second operand was taken
	switch {
	case s.isScalar(1):
		second = losesTo(s.x(), s.scalar(1))
	default:
		second = loses(s.full(0), s.y())
	}
	s.each(0, func() *tensor { return millrace.ScalarWhere(second, 0, s.d) })
	s.each(1, func() *tensor { return millrace.WhereScalar(second, s.d, 0) })
}

// atan2Back of atan2(t, u): u/(t²+u²) by t and -t/(t²+u²) by u. It computes them from the quotient
// of the smaller and the larger operand, so no square overflows or becomes 0. At (0, 0), where
// there is no derivative, and at infinity it gives 0.
func atan2Back(s *step) {
	t, u := s.full(0), s.full(1)
	flat := t.Abs().Le(u.Abs())
	small, large := millrace.Where(flat, t, u), millrace.Where(flat, u, t)
	none := large.EqScalar(0).Or(large.IsInf())
	small, large = millrace.ScalarWhere(none, 0, small), millrace.ScalarWhere(none, 1, large)
	r := small.Div(large)
	q := s.d.Div(r.Square().AddScalar(1)).Div(large)
	q = millrace.ScalarWhere(none, 0, q)
	less := q.Mul(r)
	s.each(0, func() *tensor { return millrace.Where(flat, q, less) })
	s.each(1, func() *tensor { return millrace.Where(flat, less, q).Neg() })
}

func whereBack(s *step) {
	mask := s.asKept(0)
	s.each(1, func() *tensor { return millrace.WhereScalar(mask, s.d, 0) })
	s.each(2, func() *tensor { return millrace.ScalarWhere(mask, 0, s.d) })
}

// clampBack gives the derivative to the operand (value, lower or upper bound) that the result is
// equal to, of equal ones to the first.
func clampBack(s *step) {
	below, above := s.beyond()
	s.each(0, func() *tensor { return millrace.ScalarWhere(below.Or(above), 0, s.d) })
	s.each(1, func() *tensor { return millrace.WhereScalar(below.And(above.Not()), s.d, 0) })
	s.each(2, func() *tensor { return millrace.WhereScalar(above, s.d, 0) })
}

// beyond says where the value is below the lower bound, and where the larger of the two is above
// the upper bound.
func (s *step) beyond() (below, above *tensor) {
	lo, hi := s.full(1), s.full(2)
	below = s.x().Lt(lo)
	above = s.x().Maximum(lo).Gt(hi)
	return below, above
}
