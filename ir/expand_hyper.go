package ir

import "math"

// expandCosh is h + 1/(4h) with h = e^|x|/2.
func expandCosh(b *Builder, dt DType, args []Ref) Ref {
	h := halfExp(b, b.abs(args[0]))
	return b.add(h, b.fdiv(b.float(dt, 0.25), h))
}

// expandSinh is h - 1/(4h) from 1 on. Below 1, where that difference would cancel, it is a
// polynomial.
func expandSinh(b *Builder, dt DType, args []Ref) Ref {
	x := args[0]
	a, one := b.abs(x), b.float(dt, 1)
	h := halfExp(b, a)
	far := b.sub(h, b.fdiv(b.float(dt, 0.25), h))
	// Only |x| < 1 uses the polynomial; the limit keeps it finite.
	n := atMost(b, a, 1)
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

// halfExp is e^x/2 for x >= 0. Halving before the scaling keeps it finite as long as sinh and cosh
// are.
func halfExp(b *Builder, x Ref) Ref {
	dt := b.DT(x)
	f := expFor(dt)
	x = atMost(b, x, f.hi+1)
	k := b.round(b.mul(x, b.float(dt, math.Log2E/2)))
	r := reduceLn2(b, x, k, f)
	half := b.float(dt, 0.5)
	p := b.fma(expTail(b, r, f.exp), half, half)
	s := powerOfTwo(b, k)
	return b.mul(b.mul(p, s), s)
}

// tanh32 is an odd polynomial up to 0.625 and 1 - 2/(e^2|x| + 1) beyond. There an error of the
// exponential has a weight below 0.4, so a short polynomial, and ln 2 as one number, are accurate
// enough. From the limit on the result rounds to 1.
func tanh32(b *Builder, x Ref) Ref {
	const near, limit = 0.625, 9.02
	one, two := b.float(Float32, 1), b.float(Float32, 2)
	a := atMost(b, b.abs(x), limit)
	s := b.mul(a, a)
	small := b.fma(b.mul(s, a), b.poly(s, -0.33333280682563782, 0.1333141028881073,
		-0.05373711884021759, 0.020630670711398125, -0.0056955539621412754), a)

	k := b.round(b.mul(a, b.float(Float32, 2*math.Log2E)))
	r := b.fma(k, b.float(Float32, -math.Ln2/2), a)
	e := b.poly(r, 1, 1.9999994039535522, 1.9999654293060303, 1.3334118127822876,
		0.6703969836235046, 0.26528638601303101)
	i := b.add(b.bits(Int32, e), b.shl(b.convert(Int32, k), 23))
	e = b.bits(Float32, i)
	large := b.sub(one, b.fdiv(two, b.add(e, one)))
	return b.copySign(b.sel(b.lt(a, b.float(Float32, near)), small, large), x)
}

// tanh64 is t/(t+2) with t = e^2|x| - 1; from 22 on it rounds to 1.
func tanh64(b *Builder, x Ref) Ref {
	two := b.float(Float64, 2)
	a := atMost(b, b.abs(x), 22)
	t := b.unary(Expm1, b.mul(a, two))
	return b.copySign(b.fdiv(t, b.add(t, two)), x)
}
