package ir

import "math"

// The logarithms split x = (1+f)·2^e with 1+f in [2/3, 4/3) for float32 and [√½, √2) for float64.
// So results near 0 come from e = 0 and a polynomial in f alone, without cancellation.

func log32(b *Builder, x Ref) Ref {
	f, e := splitLog(b, x)
	return logSpecials(b, x, joinLog32(b, f, e))
}

// joinLog32 is log((1+f)·2^e) = e·ln2 + f - f²/2 + f³·w(f), small terms first.
func joinLog32(b *Builder, f, e Ref) Ref {
	f2 := b.mul(f, f)
	y := b.mul(b.mul(f, f2), logTail32(b, f))
	y = b.fma(e, b.float(Float32, exp32Format.ln2Lo), y)
	y = b.fma(f2, b.float(Float32, -0.5), y)
	return b.fma(e, b.float(Float32, exp32Format.ln2Hi), b.add(f, y))
}

func logTail32(b *Builder, f Ref) Ref {
	return b.poly(f, 0.33333215117454529, -0.24999797344207764, 0.20010446012020111,
		-0.16680505871772766, 0.14005304872989655, -0.12183971703052521,
		0.13986915349960327, -0.12893040478229523)
}

func log2f32(b *Builder, x Ref) Ref {
	f, e := splitLog(b, x)
	f2 := b.mul(f, f)
	y := b.mul(b.mul(f, f2), logTail32(b, f))
	y = b.fma(f2, b.float(Float32, -0.5), y)
	return logSpecials(b, x, joinLog2(b, f, y, e))
}

// joinLog2 is e + (f+y)/ln2 with 1/ln2 in two parts.
func joinLog2(b *Builder, f, y, e Ref) Ref {
	dt := b.DT(f)
	hi := b.float(dt, math.Log2E)
	lo := b.float(dt, log2eLo(dt))
	z := b.fma(f, lo, b.mul(y, hi))
	// f·hi in two parts, so that only the last sum rounds at full size.
	top := b.mul(f, hi)
	z = b.add(z, b.fma(f, hi, b.neg(top)))
	s := b.add(e, top)
	// e is 0 or larger than top, so the rounding error of s is exact (Fast2Sum).
	return b.add(s, b.add(b.sub(top, b.sub(s, e)), z))
}

// log2eLo is the rounding error of 1/ln2 in dt.
func log2eLo(dt DType) float64 {
	if dt == Float32 {
		return 1.9259629911266174e-08
	}
	return 2.0355273740931033e-17
}

// splitLog gives f and e of x = (1+f)·2^e for positive finite x. Denormals are scaled first.
func splitLog(b *Builder, x Ref) (f, e Ref) {
	dt := b.DT(x)
	up, down, least := 0x1p23, -23.0, 0x1p-126
	if dt == Float64 {
		up, down, least = 0x1p52, -52, 0x1p-1022
	}
	small := b.lt(x, b.float(dt, least))
	scaled := b.sel(small, b.mul(x, b.float(dt, up)), x)
	bias := b.sel(small, b.float(dt, down), b.float(dt, 0))
	i := b.bits(intOf(dt), scaled)
	k, m := splitExponent(b, i, dt)
	return b.sub(m, b.float(dt, 1)), b.add(b.convert(dt, k), bias)
}

// splitExponent splits a float's bits at the lower end of the range to which logarithms reduce.
func splitExponent(b *Builder, i Ref, dt DType) (k, m Ref) {
	if dt == Float32 {
		k = b.shr(b.sub(i, b.int(Int32, 0x3f2aaaab)), 23)
		return k, b.bits(dt, b.sub(i, b.shl(k, 23)))
	}
	k = b.shr(b.sub(i, b.int(Int64, 0x3fe6a09e667f3bcd)), 52)
	return k, b.bits(dt, b.sub(i, b.shl(k, 52)))
}

// logSpecials gives the results for x that are not positive and finite.
func logSpecials(b *Builder, x, y Ref) Ref {
	dt := b.DT(x)
	zero, inf := b.float(dt, 0), b.float(dt, math.Inf(1))
	bad := b.sel(b.eq(x, zero), b.float(dt, math.Inf(-1)), b.float(dt, math.NaN()))
	y = b.sel(b.gt(x, zero), y, bad)
	return b.sel(b.eq(x, inf), x, y)
}

// log64 computes log(1+f) with s = f/(2+f): f - f²/2 + s·(f²/2 + R(s²)), a form known from the
// Freely Distributable LIBM.
func log64(b *Builder, x Ref) Ref {
	f, e := splitLog(b, x)
	return logSpecials(b, x, joinLog64(b, f, e))
}

func joinLog64(b *Builder, f, e Ref) Ref {
	y := b.fma(e, b.float(Float64, exp64Format.ln2Lo), logTail64(b, f))
	return b.fma(e, b.float(Float64, exp64Format.ln2Hi), b.add(f, y))
}

// logTail64 is log(1+f) - f.
func logTail64(b *Builder, f Ref) Ref {
	s := b.fdiv(f, b.add(f, b.float(Float64, 2)))
	half := b.mul(b.mul(f, f), b.float(Float64, 0.5))
	z := b.mul(s, s)
	r := b.mul(z, b.poly(z, log64Coef...))
	return b.sub(b.mul(s, b.add(half, r)), half)
}

// log64Coef is (ln((1+s)/(1-s)) - 2s)/s³ in powers of s².
var log64Coef = []float64{0.66666666666667340, 0.39999999999416991, 0.28571428741915455,
	0.22222198618341307, 0.18183562120223187, 0.15314103887350611, 0.14795443494759594}

func log2f64(b *Builder, x Ref) Ref {
	f, e := splitLog(b, x)
	return logSpecials(b, x, joinLog2(b, f, logTail64(b, f), e))
}

func log1pf32(b *Builder, x Ref) Ref { return log1p(b, x, joinLog32) }
func log1pf64(b *Builder, x Ref) Ref { return log1p(b, x, joinLog64) }

// log1p takes the exponent k from 1+x rounded, but f from x itself: 1+f = (1+x)/2^k, so f = x/2^k +
// (1/2^k - 1). For k = 0 that is x. The sums lose a zero's sign, so x's sign is copied to the
// result.
func log1p(b *Builder, x Ref, join func(b *Builder, f, e Ref) Ref) Ref {
	dt := b.DT(x)
	i := intOf(dt)
	bias, mantissa := int64(127), int64(23)
	if dt == Float64 {
		bias, mantissa = 1023, 52
	}
	u := b.add(x, b.float(dt, 1))
	k, _ := splitExponent(b, b.bits(i, u), dt)
	scaled := b.bits(dt, b.sub(b.bits(i, x), b.shl(k, mantissa)))
	// 4/2^k, which is normal for the largest k, too.
	s := b.bits(dt, b.shl(b.sub(b.int(i, bias+2), k), mantissa))
	f := b.add(scaled, b.fma(s, b.float(dt, 0.25), b.float(dt, -1)))
	return b.copySign(logSpecials(b, u, join(b, f, b.convert(dt, k))), x)
}
