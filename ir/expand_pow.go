package ir

import "math"

func expandPow(b *Builder, dt DType, args []Ref) Ref {
	if dt.IsFloat() {
		return powFloat(b, args[0], args[1])
	}
	return powInt(b, dt, args[0], args[1])
}

// powFloat is 2^(y·log2|x|) with the logarithm and the product held in pairs
// of floats, high and low part, because the exponential multiplies their error
// by the exponent. Special cases are those of C99.
func powFloat(b *Builder, x, y Ref) Ref {
	dt := b.DT(x)
	zero, one := b.float(dt, 0), b.float(dt, 1)
	a := b.abs(x)
	hi, lo := log2Pair(b, a)
	hi = logSpecials(b, a, hi)

	q := b.mul(y, hi)
	rest := b.fma(y, lo, b.fma(y, hi, b.neg(q)))
	// x^0 and 1^y are 1 whatever the other operand is.
	q = b.sel(b.or(b.eq(y, zero), b.eq(a, one)), zero, q)
	f := expFor(dt)
	rest = b.sel(b.lt(b.abs(q), b.float(dt, -f.lo2)), rest, zero)
	p := exp2Pair(b, q, rest)

	half := b.mul(y, b.float(dt, 0.5))
	whole := b.eq(b.trunc(y), y)
	odd := b.and(whole, b.ne(b.trunc(half), half))
	i := intOf(dt)
	sign := b.sel(odd, b.signBit(x), b.int(i, 0))
	p = b.bits(dt, b.xor(b.bits(i, p), sign))
	// Finite negative numbers have integral powers only.
	bad := b.and(b.and(b.lt(x, zero), b.gt(x, b.float(dt, math.Inf(-1)))), b.not(whole))
	p = b.sel(bad, b.float(dt, math.NaN()), p)
	return b.sel(b.eq(y, zero), one, p)
}

// exp2Pair is 2^(q+rest), |rest| small; see expandExp2.
func exp2Pair(b *Builder, q, rest Ref) Ref {
	dt := b.DT(q)
	f := expFor(dt)
	q = clampTo(b, q, f.lo2, f.hi2)
	k := b.round(b.mul(q, b.float(dt, 0.5)))
	r := b.add(b.fma(k, b.float(dt, -2), q), rest)
	p := b.fma(b.poly(r, f.exp2...), r, b.float(dt, 1))
	s := powerOfTwo(b, k)
	return b.mul(b.mul(p, s), s)
}

// log2Pair is log2(x) of positive finite x as hi+lo, to about eight bits more
// than one float holds. With s = f/(2+f), ln(1+f) = 2s + s³·R(s²), and only
// the first term needs the extra bits.
func log2Pair(b *Builder, x Ref) (hi, lo Ref) {
	dt := b.DT(x)
	f, e := splitLog(b, x)
	two := b.float(dt, 2)
	d := b.add(f, two)
	dlo := b.sub(f, b.sub(d, two))
	inv := b.fdiv(b.float(dt, 1), d)
	s := b.mul(f, inv)
	left := b.fma(b.neg(s), dlo, b.fma(b.neg(s), d, f))
	slo := b.mul(left, inv)

	z := b.mul(s, s)
	t := b.mul(b.mul(s, z), b.poly(z, log2PairCoef(dt)...))
	t = b.fma(two, slo, t)
	s2 := b.add(s, s)
	h := b.add(s2, t)
	l := b.sub(t, b.sub(h, s2))

	c := b.float(dt, math.Log2E)
	top := b.mul(h, c)
	low := b.fma(h, b.float(dt, log2eLo(dt)), b.fma(h, c, b.neg(top)))
	low = b.fma(l, c, low)
	sum := b.add(e, top)
	low = b.add(b.sub(top, b.sub(sum, e)), low)
	hi = b.add(sum, low)
	return hi, b.sub(low, b.sub(hi, sum))
}

// log2PairCoef is R of log2Pair.
func log2PairCoef(dt DType) []float64 {
	if dt == Float32 {
		return []float64{0.66666662693023682, 0.40000912547111511, 0.28505107760429382, 0.24123173952102661}
	}
	return log64Coef
}
