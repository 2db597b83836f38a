package ir

import "math"

// Activations. Each is written in public ops, so a program that writes the formula gets the same
// numbers, except where a limit is noted.

// expandSigmoid is 1/(1+e) for positive x and e/(1+e) for negative x, with e = e^-|x|. The
// exponential never overflows, and small results keep their accuracy. If the result is just below a
// power of two and e just above one, every rounding counts twice. So the rounding errors of the
// exponential and the sum are kept, and the remainder corrects the quotient.
func expandSigmoid(b *Builder, dt DType, args []Ref) Ref {
	f, one, zero := expFor(dt), b.float(dt, 1), b.float(dt, 0)
	x := atLeast(b, b.neg(b.abs(args[0])), f.lo)
	k := b.round(b.mul(x, b.float(dt, math.Log2E/2)))
	t := expTail(b, reduceLn2(b, x, k, f), f.exp)
	s := powerOfTwo(b, k)
	p := b.add(t, one)
	e := b.mul(b.mul(p, s), s)
	elo := b.mul(b.mul(b.sub(t, b.sub(p, one)), s), s)

	d := b.add(e, one)
	dlo := b.add(b.sub(e, b.sub(d, one)), elo)
	negative := b.lt(args[0], zero)
	n, nlo := b.sel(negative, e, one), b.sel(negative, elo, zero)
	y := b.fdiv(n, d)
	left := b.fma(b.neg(y), dlo, b.fma(b.neg(y), d, n))
	// 1/d is the result for positive x and its complement for negative.
	inverse := b.sel(negative, b.sub(one, y), y)
	return b.fma(b.add(left, nlo), inverse, y)
}

// expandGelu is x/2·(erf(x/√2)+1), halved first so that the largest x do not overflow. Far below 0
// the sum is 0. The limit on x then makes the product -0, for -inf as well.
func expandGelu(b *Builder, dt DType, args []Ref) Ref {
	x := args[0]
	e := b.unary(Erf, b.mul(x, b.float(dt, math.Sqrt2/2)))
	half := b.mul(atLeast(b, x, -64), b.float(dt, 0.5))
	return b.mul(half, b.add(e, b.float(dt, 1)))
}

// expandGeluTanh is 0.5x(1+tanh(√(2/π)(x+0.044715x³))), with the same limit.
func expandGeluTanh(b *Builder, dt DType, args []Ref) Ref {
	x := args[0]
	cube := b.mul(b.mul(x, x), x)
	in := b.add(x, b.mul(cube, b.float(dt, 0.044715)))
	t := b.unary(Tanh, b.mul(in, b.float(dt, math.Sqrt(2/math.Pi))))
	half := b.mul(atLeast(b, x, -64), b.float(dt, 0.5))
	return b.mul(half, b.add(t, b.float(dt, 1)))
}

// expandSilu is x·sigmoid(x); below the limit sigmoid is 0.
func expandSilu(b *Builder, dt DType, args []Ref) Ref {
	return b.mul(atLeast(b, args[0], -1024), b.unary(Sigmoid, args[0]))
}

// expandSoftplus is max(x, 0) + log1p(e^-|x|).
func expandSoftplus(b *Builder, dt DType, args []Ref) Ref {
	x := args[0]
	tail := b.unary(Log1p, b.unary(Exp, b.neg(b.abs(x))))
	return b.add(b.unary(Relu, x), tail)
}
