package ir

import "math"

func expandPow(b *Builder, dt DType, args []Ref) Ref {
	if dt.IsFloat() {
		return powFloat(b, args[0], args[1])
	}
	return powInt(b, dt, args[0], args[1])
}

// powFloat is 2^(y·log2|x|). The logarithm and the product are pairs of floats, high and low part,
// because the exponential multiplies their error by the exponent. Special cases are those of C99.
func powFloat(b *Builder, x, y Ref) Ref {
	dt := b.DT(x)
	zero, one := b.float(dt, 0), b.float(dt, 1)
	a := b.abs(x)
	hi, lo := log2Pair(b, a)
	hi = logSpecials(b, a, hi)

	q := b.mul(y, hi)
	rest := b.fma(y, lo, b.fma(y, hi, b.neg(q)))
	// If q is infinite or NaN, its rest has no meaning.
	rest = b.sel(b.lt(b.abs(q), b.float(dt, -expFor(dt).lo2)), rest, zero)
	// x^0 and 1^y are 1 for every other operand.
	q = b.sel(b.or(b.eq(y, zero), b.eq(a, one)), zero, q)
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

// log2Pair is log2(x) of positive finite x as hi+lo, with nearly the bits of two floats. With s =
// f/(2+f), ln(1+f) = 2s + s·(z·R(z)), z = s². Only the constant term of R needs extra bits.
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

	z, zlo := b.exactMul(s, s)
	c := log2PairFor(dt)
	tail := b.fma(z, b.poly(z, c.rest...), b.float(dt, c.first.lo))
	r, rlo := b.fastSum(b.float(dt, c.first.hi), tail)
	u, ulo := b.exactMul(z, r)
	ulo = b.fma(z, rlo, b.fma(zlo, r, ulo))
	v, vlo := b.exactMul(s, u)
	vlo = b.fma(s, ulo, vlo)
	h, l := b.fastSum(b.add(s, s), v)
	// The derivative of ln(1+f) in s is 2/(1-z), nearly 2+2z.
	l = b.add(l, b.fma(b.fma(two, z, two), slo, vlo))

	top, low := b.exactMul(h, b.float(dt, math.Log2E))
	low = b.fma(h, b.float(dt, log2eLo(dt)), low)
	low = b.fma(l, b.float(dt, math.Log2E), low)
	sum, rest := b.fastSum(e, top) // e is 0 or the larger
	return b.fastSum(sum, b.add(rest, low))
}

// exactMul is x*y as the rounded product and its rounding error.
func (b *Builder) exactMul(x, y Ref) (p, lost Ref) {
	p = b.mul(x, y)
	return p, b.fma(x, y, b.neg(p))
}

// fastSum is x+y as the rounded sum and its rounding error, for |x| >= |y| or x = 0 (Fast2Sum).
func (b *Builder) fastSum(x, y Ref) (s, lost Ref) {
	s = b.add(x, y)
	return s, b.sub(y, b.sub(s, x))
}

// log2PairFormat is R of log2Pair: its constant term 2/3 in two parts.
type log2PairFormat struct {
	first pair
	rest  []float64
}

func log2PairFor(dt DType) log2PairFormat {
	if dt == Float32 {
		return log2Pair32
	}
	return log2Pair64
}

var log2Pair32 = log2PairFormat{
	first: pair{0x1.555556p-1, -0x1.555556p-26},
	rest:  []float64{0.40000230073928833, 0.28536850214004517, 0.23688572645187378},
}

var log2Pair64 = log2PairFormat{
	first: pair{0x1.5555555555555p-1, 0x1.5555555555555p-55},
	rest: []float64{0.400000000000006, 0.2857142857090718, 0.22222222374781397,
		0.18181797052224277, 0.1538617684172116, 0.13270195560522388, 0.13073766475988471},
}
