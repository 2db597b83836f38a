package ir

import "math"

// expandCosh is h + 1/(4h) with h = e^|x|/2.
func expandCosh(b *Builder, dt DType, args []Ref) Ref {
	h := halfExp(b, b.abs(args[0]))
	return b.add(h, b.fdiv(b.float(dt, 0.25), h))
}

// expandSinh is h - 1/(4h) from 1 on, and a polynomial below, where that
// difference would cancel.
func expandSinh(b *Builder, dt DType, args []Ref) Ref {
	x := args[0]
	a, one := b.abs(x), b.float(dt, 1)
	h := halfExp(b, a)
	far := b.sub(h, b.fdiv(b.float(dt, 0.25), h))
	// Only |x| < 1 uses the polynomial; the limit keeps it finite.
	n := b.sel(b.lt(a, one), a, one)
	s := b.mul(n, n)
	near := b.fma(b.mul(n, s), b.poly(s, sinhCoef(dt)...), n)
	return b.copySign(b.sel(b.lt(a, one), near, far), x)
}

func sinhCoef(dt DType) []float64 {
	if dt == Float32 {
		return []float64{0.1666666716337204, 0.0083333151414990425, 0.00019841665925923735,
			2.7899839096789947e-06}
	}
	return []float64{0.16666666666666666, 0.0083333333333335188, 0.00019841269841133232,
		2.755731927390287e-06, 2.5052098350165264e-08, 1.6060174315015305e-10,
		7.580157504091655e-13, 4.448995073979302e-15}
}

// halfExp is e^x/2 for x >= 0. Halving before the scaling keeps it finite for
// as long as sinh and cosh are.
func halfExp(b *Builder, x Ref) Ref {
	dt := b.DT(x)
	f := expFor(dt)
	hi := b.float(dt, f.hi+1)
	x = b.sel(b.gt(x, hi), hi, x)
	k := b.round(b.mul(x, b.float(dt, math.Log2E/2)))
	r := reduceLn2(b, x, k, f)
	half := b.float(dt, 0.5)
	p := b.fma(expTail(b, r, f.exp), half, half)
	s := powerOfTwo(b, k)
	return b.mul(b.mul(p, s), s)
}

// tanh64 is t/(t+2) with t = e^2|x| - 1; from 22 on that rounds to 1.
func tanh64(b *Builder, x Ref) Ref {
	two := b.float(Float64, 2)
	a, limit := b.abs(x), b.float(Float64, 22)
	a = b.sel(b.gt(a, limit), limit, a)
	t := b.unary(Expm1, b.mul(a, two))
	return b.copySign(b.fdiv(t, b.add(t, two)), x)
}
