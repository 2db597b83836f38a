package millrace

import "math"

// The functions of this file are composed of other ops. 16-bit floats are computed in Float32.
// Package autodiff has a derivative for each function as a whole.

// Log10 is the logarithm to base 10. ±0 gives -Inf, and negative numbers give NaN. Powers of ten
// give exact whole numbers. Floats only.
func (t *Tensor) Log10() *Tensor {
	return composed("log10", t, (*Tensor).Log10, func(x *Tensor) *Tensor {
		// A result within one or two ulp of a whole number becomes that number. Log is not exact
		// enough to tell the two apart, and users expect exact results for 10^n.
		log := x.Log()
		y := log.MulScalar(math.Log10E)
		n := y.Round()
		off := y.Sub(n)
		far := off.Abs()
		size := y.Abs()
		least := size.MulScalar(0.95 * epsilon(x.DType()))
		near := far.Le(least)
		r := Where(near, n, y)
		done(log, y, n, off, far, size, least, near)
		return r
	})
}

// Asinh is the inverse of the hyperbolic sine. Zeros keep their sign. Floats only.
func (t *Tensor) Asinh() *Tensor {
	return composed("asinh", t, (*Tensor).Asinh, func(x *Tensor) *Tensor {
		// The result is log1p(a + a²/(1 + √(a²+1))), or log(2a) if a is large.
		a := x.Abs()
		sq := a.Square()
		more := sq.AddScalar(1)
		root := more.Sqrt()
		below := root.AddScalar(1)
		part := a.Div(below)
		rest := a.Mul(part)
		sum := a.Add(rest)
		r := logOfLarge(a, a, sum)
		y := signed(r, x)
		done(a, sq, more, root, below, part, rest, sum, r)
		return y
	})
}

// Acosh is the inverse of the hyperbolic cosine, at least 0; numbers below 1 give NaN. Floats
// only.
func (t *Tensor) Acosh() *Tensor {
	return composed("acosh", t, (*Tensor).Acosh, func(x *Tensor) *Tensor {
		// With t = x-1, which is exact near 1, the result is log1p(t + √(t·(t+2))).
		d := x.SubScalar(1)
		above := d.AddScalar(2)
		sq := d.Mul(above)
		root := sq.Sqrt()
		sum := d.Add(root)
		y := logOfLarge(x, x, sum)
		outside := x.LtScalar(1)
		r := ScalarWhere(outside, math.NaN(), y)
		done(d, above, sq, root, sum, y, outside)
		return r
	})
}

// Atanh is the inverse of the hyperbolic tangent. ±1 gives ±Inf, and numbers outside [-1, 1] give
// NaN. Zeros keep their sign. Floats only.
func (t *Tensor) Atanh() *Tensor {
	return composed("atanh", t, (*Tensor).Atanh, func(x *Tensor) *Tensor {
		// The result is log1p(2a/(1-a))/2. Near 0, the quotient is most accurate as 2a +
		// 2a·a/(1-a).
		a := x.Abs()
		left := a.ScalarSub(1)
		twice := a.MulScalar(2)
		q := a.Div(left)
		more := twice.Mul(q)
		near := twice.Add(more)
		all := twice.Div(left)
		small := a.LtScalar(0.5)
		arg := Where(small, near, all)
		log := arg.Log1p()
		half := log.MulScalar(0.5)
		r := signed(half, x)
		done(a, left, twice, q, more, near, all, small, arg, log, half)
		return r
	})
}

// composed records an elementwise op that consists of f's ops, in the dtype that t is computed
// in. Autodiff has a rule for the whole op. op is the calling method.
func composed(name string, t *Tensor, op, f func(x *Tensor) *Tensor) *Tensor {
	if followed(t) {
		return whole(name, name, nil, func(in []*Tensor) *Tensor { return op(in[0]) }, t)
	}
	return overRows(name, t, nil, func(x *Tensor, _ []int) *Tensor { return f(x) })
}

// epsilon returns the distance from 1 to the next float.
func epsilon(dt DType) float64 {
	if dt == Float64 {
		return 0x1p-52
	}
	return 0x1p-23
}

// logOfLarge returns log(1+y), or log(2·big) if a is so large that neither 1 nor the difference
// between y and 2·big matters.
func logOfLarge(a, big, y *Tensor) *Tensor {
	large := a.GtScalar(4 / epsilon(a.DType()))
	arg := Where(large, big, y)
	log := arg.Log1p()
	twice := log.AddScalar(math.Ln2)
	r := Where(large, twice, log)
	done(large, arg, log, twice)
	return r
}

// signed returns r, which is not negative, with the sign of x.
func signed(r, x *Tensor) *Tensor {
	s := x.Sign()
	y := s.Mul(r)
	done(s)
	return y
}
