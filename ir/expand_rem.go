package ir

import "math"

// nearest is the integer n nearest to x/y, and m = x - n*y, rounded once. The sign of m tells on
// which side of n the exact quotient is, however the division rounded. So the floor is n or n - 1.
// Rounding down x/y itself is not equivalent: it may have been rounded up to an integer, and
// devices that divide to within a few units in the last place may give less than 2 for 6/3.
func nearest(b *Builder, x, y Ref) (n, m Ref) {
	dt := b.DT(x)
	n = b.round(b.fdiv(x, y))
	m = b.sel(b.eq(n, b.float(dt, 0)), x, b.fma(b.neg(n), y, x)) // y may be infinite if n is 0
	return n, m
}

// remFloat is the floored remainder: m of [nearest], or m + y if m is on the other side of zero. A
// Rare sub divides digit by digit if the quotient is 2^22 or more. It also does so if n*y might
// exceed the largest float, which devices that round an fma twice treat as infinite.
func remFloat(b *Builder, x, y Ref) Ref {
	dt := b.DT(x)
	n, m := nearest(b, x, y)
	small := b.and(b.lt(b.abs(n), b.float(dt, 0x1p22)), b.lt(b.abs(x), b.float(dt, largeFloat(dt))))
	return b.rare(b.not(small), withDivisorSign(b, m, y), subRem.of(dt), x, y)
}

// largeFloat is below half of the largest float.
func largeFloat(dt DType) float64 { return exp2i(int64(dt.format().bias) - 2) }

// withDivisorSign moves a remainder to y's side of zero.
func withDivisorSign(b *Builder, m, y Ref) Ref {
	zero := b.float(b.DT(m), 0)
	i := intOf(b.DT(m))
	differ := b.lt(b.xor(b.bits(i, m), b.bits(i, y)), b.int(i, 0))
	isZero := b.eq(m, zero)
	signedZero := b.bits(b.DT(m), b.signBit(y))
	return b.sel(isZero, signedZero, b.sel(differ, b.add(m, y), m))
}

// floorDivFloat is n of [nearest], or n - 1 if the remainder is on the other side of zero than y.
// Above the range in which floats hold all integers, the quotient already is an integer. Division
// by zero gives the quotient's infinity or NaN; infinity divided by another number gives NaN.
func floorDivFloat(b *Builder, x, y Ref) Ref {
	dt := b.DT(x)
	n, m := nearest(b, x, y)
	i, zero := intOf(dt), b.float(dt, 0)
	counted := b.le(b.abs(n), b.float(dt, exp2i(int64(dt.format().mantissa)+1)))
	differ := b.lt(b.xor(b.bits(i, m), b.bits(i, y)), b.int(i, 0))
	down := b.and(counted, b.and(differ, b.ne(m, zero)))
	d := b.sel(down, b.sub(n, b.float(dt, 1)), n)
	endless := b.and(b.eq(b.abs(x), b.float(dt, math.Inf(1))), b.ne(y, zero))
	return b.sel(endless, b.float(dt, math.NaN()), d)
}

var subRem = largeSubs{
	f32: RegisterSub("rem.float32", []DType{Float32, Float32}, longRem),
	f64: RegisterSub("rem.float64", []DType{Float64, Float64}, longRem),
}

func longRem(b *Builder, args []Ref) Ref {
	return withDivisorSign(b, longMod(b, args), args[1])
}

// longMod is the truncated remainder for all operands (C's fmod). With significands and exponents
// |x| = mx·2^ex, |y| = my·2^ey, it shifts mx left by ex-ey in steps of as many bits as the integer
// has spare, and takes the remainder by my after each step.
func longMod(b *Builder, args []Ref) Ref {
	x, y := args[0], args[1]
	dt := b.DT(x)
	u, mantissa, spare, steps := Uint32, int64(23), int64(8), 35
	if dt == Float64 {
		u, mantissa, spare, steps = Uint64, 52, 11, 191
	}
	mx, ex := significand(b, b.bits(u, b.abs(x)), mantissa)
	my, ey := significand(b, b.bits(u, b.abs(y)), mantissa)
	one, zero := b.int(u, 1), b.int(u, 0)
	safe := b.sel(b.eq(my, zero), one, my)
	ahead := b.gt(ex, ey)
	left := b.sel(ahead, b.sub(ex, ey), zero)
	m := b.mod(mx, safe)
	for range steps {
		n := b.sel(b.lt(left, b.int(u, spare)), left, b.int(u, spare))
		m = b.mod(b.binary(ShlRaw, m, n), safe)
		left = b.sub(left, n)
	}
	r := b.mul(b.convert(dt, b.bits(intOf(dt), m)), unit(b, ey, mantissa, dt))
	r = b.sel(b.lt(b.abs(x), b.abs(y)), b.abs(x), r)
	r = b.copySign(r, x)
	inf := b.float(dt, math.Inf(1))
	valid := b.and(b.lt(b.abs(x), inf), b.gt(b.abs(y), b.float(dt, 0)))
	return b.sel(valid, r, b.float(dt, math.NaN()))
}

// significand is m and e, at least 1, of a float's bits without its sign.
func significand(b *Builder, bits Ref, mantissa int64) (m, e Ref) {
	u := b.DT(bits)
	e = b.shr(bits, mantissa)
	frac := b.and(bits, b.int(u, 1<<mantissa-1))
	denormal := b.eq(e, b.int(u, 0))
	m = b.sel(denormal, frac, b.or(frac, b.int(u, 1<<mantissa)))
	return m, b.sel(denormal, b.int(u, 1), e)
}

// unit is the weight of a significand's lowest bit at exponent field e: the power of two of that
// field over 2^mantissa. It may be denormal; then its bits are a one in the fraction.
func unit(b *Builder, e Ref, mantissa int64, dt DType) Ref {
	u := b.DT(e)
	low := b.le(e, b.int(u, mantissa))
	one := b.int(u, 1)
	// e >= 1, and shifts must stay within the width for lanes not chosen.
	short := b.sel(low, b.sub(e, one), b.int(u, 0))
	normal := b.sel(low, b.int(u, 0), b.sub(e, b.int(u, mantissa)))
	bits := b.sel(low, b.binary(ShlRaw, one, short), b.shl(normal, mantissa))
	return b.bits(dt, bits)
}
