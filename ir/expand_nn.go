package ir

import "math"

// Activations. Each is written in public ops, so a program that spells one out
// gets the same numbers, except where a limit is noted.

// expandSigmoid is 1/(1+e^-x), as e^x/(1+e^x) for negative x: the exponential
// never overflows and small results keep their accuracy.
func expandSigmoid(b *Builder, dt DType, args []Ref) Ref {
	x, one := args[0], b.float(dt, 1)
	e := b.unary(Exp, b.neg(b.abs(x)))
	num := b.sel(b.lt(x, b.float(dt, 0)), e, one)
	return b.fdiv(num, b.add(one, e))
}

// atLeast limits x from below where a factor that vanishes there would meet an
// infinity; NaN passes.
func atLeast(b *Builder, x Ref, lo float64) Ref {
	l := b.float(b.DT(x), lo)
	return b.sel(b.lt(x, l), l, x)
}

// expandGelu is x·(erf(x/√2)+1)/2. Far below 0 the sum is 0, and the limited x
// makes the product -0 for -inf as well.
func expandGelu(b *Builder, dt DType, args []Ref) Ref {
	x := args[0]
	e := b.unary(Erf, b.mul(x, b.float(dt, math.Sqrt2/2)))
	p := b.mul(atLeast(b, x, -64), b.add(e, b.float(dt, 1)))
	return b.mul(p, b.float(dt, 0.5))
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
