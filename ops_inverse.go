package millrace

import "math"

// Functions that are composed of others. They are computed in Float32 for 16-bit
// floats, and have gradients of their own (package autodiff).

// Log10 is the logarithm to base 10; of ±0 -Inf, of negative numbers NaN. Of powers of ten it
// is a whole number. Floats only.
func (t *Tensor) Log10() *Tensor {
	return composed("log10", t, (*Tensor).Log10, func(x *Tensor) *Tensor {
		// What is within an ulp or two of a whole number is that number: log is not exact
		// enough to tell, and 10^n is what people look at.
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

// Asinh is the inverse of the hyperbolic sine. Zeros keep their sign. Floats
// only.
func (t *Tensor) Asinh() *Tensor {
	return composed("asinh", t, (*Tensor).Asinh, func(x *Tensor) *Tensor {
		// log1p(a + a²/(1 + √(a²+1))), which is log(2a) where a is large.
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

// Acosh is the inverse of the hyperbolic cosine, from 0 on; below 1 NaN. Floats only.
func (t *Tensor) Acosh() *Tensor {
	return composed("acosh", t, (*Tensor).Acosh, func(x *Tensor) *Tensor {
		// With t = x-1, which is exact near 1: log1p(t + √(t·(t+2))).
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

// Atanh is the inverse of the hyperbolic tangent; of ±1 ±Inf, outside [-1, 1]
// NaN. Zeros keep their sign. Floats only.
func (t *Tensor) Atanh() *Tensor {
	return composed("atanh", t, (*Tensor).Atanh, func(x *Tensor) *Tensor {
		// log1p(2a/(1-a))/2; near 0 the quotient loses least as 2a + 2a·a/(1-a).
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

// composed is an elementwise op that autodiff has a rule for and that is made of f's ops, in
// the dtype that t's is computed in; op is the method itself.
func composed(name string, t *Tensor, op, f func(x *Tensor) *Tensor) *Tensor {
	if followed(t) {
		return whole(name, name, nil, func(in []*Tensor) *Tensor { return op(in[0]) }, t)
	}
	return overRows(name, t, nil, func(x *Tensor, _ []int) *Tensor { return f(x) })
}

// epsilon is the distance from 1 to the next float.
func epsilon(dt DType) float64 {
	if dt == Float64 {
		return 0x1p-52
	}
	return 0x1p-23
}

// logOfLarge is log(1+y), or where a is so large that neither 1 nor what a misses of y
// matters, log(2·big), big and y being the larger part of one number.
func logOfLarge(a, big, y *Tensor) *Tensor {
	large := a.GtScalar(4 / epsilon(a.DType()))
	arg := Where(large, big, y)
	log := arg.Log1p()
	twice := log.AddScalar(math.Ln2)
	r := Where(large, twice, log)
	done(large, arg, log, twice)
	return r
}

// signed is r, which is not negative, with the sign of x.
func signed(r, x *Tensor) *Tensor {
	s := x.Sign()
	y := s.Mul(r)
	done(s)
	return y
}
