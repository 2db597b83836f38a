package ir

import "math"

// Origin of the coefficients in these files: minimax polynomials for the relative error by
// fpminimax (Brisebarre and Chevillard), which searches among numbers of the target format, so they
// need no rounding afterwards. Rational approximations are by Lawson's iteration and a change of
// basis in 50 digits. Leading coefficients that must be exact (1, -1/2) are fixed during the
// search. The error bound of each expansion is measured, for float32 over every input;
// docs/numerics.md lists it with the command.

// expFormat holds the constants of the exponentials of one float type.
type expFormat struct {
	lo, hi       float64 // beyond these e^x rounds to 0 or overflows
	lo2, hi2     float64 // the same for 2^x
	ln2Hi, ln2Lo float64 // ln 2; products of ln2Hi with any exponent are exact
	exp          []float64
	exp2         []float64
	expm1        []float64
}

func expFor(dt DType) *expFormat {
	if dt == Float32 {
		return &exp32Format
	}
	return &exp64Format
}

// ln2Hi has few bits, so that reductions stay accurate on devices that round an fma twice.
var exp32Format = expFormat{
	lo: -104, hi: 89, lo2: -152, hi2: 129,
	ln2Hi: 0x1.62ep-1, ln2Lo: 0x1.0bfbe8p-15,
	exp: []float64{0.50000035762786865, 0.16666615009307861, 0.041661188006401062,
		0.0083360429853200912, 0.0014105780282989144, 0.00019621335377451032},
	exp2: []float64{0.6931471824645996, 0.24022652208805084, 0.055504120886325836,
		0.0096180438995361328, 0.0013332474045455456, 0.00015417172107845545,
		1.5448445992660709e-05, 1.2616283129318617e-06},
	expm1: []float64{0.5, 0.16666671633720398, 0.041666649281978607, 0.0083326613530516624,
		0.0013889555120840669, 0.00020091253099963069, 2.4865117666195147e-05},
}

var exp64Format = expFormat{
	lo: -746, hi: 710, lo2: -1076, hi2: 1025,
	ln2Hi: 0x1.62e42feep-1, ln2Lo: 0x1.a39ef35793c76p-33,
	exp: []float64{0.49999999999999928, 0.16666666666666941, 0.041666666666702240,
		0.0083333333332691537, 0.0013888888883553266, 0.00019841269893309919,
		2.4801590843229538e-05, 2.7557300488000081e-06, 2.7556154931993231e-07,
		2.5055055512862818e-08, 2.1062590769965893e-09, 1.5934549764949477e-10},
	exp2: []float64{0.69314718055994529, 0.24022650695910019, 0.055504108664822687,
		0.009618129107638686, 0.0013333558146325364, 0.00015403530386656042,
		1.5252733841378727e-05, 1.3215488825016261e-06, 1.0178079828474342e-07,
		7.0546010411183413e-09, 4.4459864426162638e-10, 2.5911005965817394e-11,
		1.3611771873579825e-12},
	expm1: []float64{0.5, 0.1666666666666666, 0.041666666666666741, 0.0083333333333361695,
		0.0013888888888872013, 0.00019841269837282254, 2.480158731466213e-05,
		2.7557321760864943e-06, 2.7557314908978085e-07, 2.5051299490594455e-08,
		2.0877291581948642e-09, 1.6185191231006238e-10, 1.1480273414871111e-11},
}

// expandExp is e^x = s·s·e^r with s = 2^k, x = 2k·ln2 + r, |r| <= ln2. Using the power of two as a
// square costs one degree of the polynomial, but needs no selects for results near the ends of the
// range. s is normal for every k, and of the two multiplications only the last can round, overflow
// or give denormals.
func expandExp(b *Builder, dt DType, args []Ref) Ref {
	f := expFor(dt)
	x := clampTo(b, args[0], f.lo, f.hi)
	k := b.round(b.mul(x, b.float(dt, math.Log2E/2)))
	r := reduceLn2(b, x, k, f)
	p := b.add(expTail(b, r, f.exp), b.float(dt, 1))
	s := powerOfTwo(b, k)
	return b.mul(b.mul(p, s), s)
}

// reduceLn2 is x - 2k·ln2.
func reduceLn2(b *Builder, x, k Ref, f *expFormat) Ref {
	dt := b.DT(x)
	r := b.fma(k, b.float(dt, float64(-2*f.ln2Hi)), x)
	return b.fma(k, b.float(dt, float64(-2*f.ln2Lo)), r)
}

// expTail is r + r²·poly(r), for e^r - 1.
func expTail(b *Builder, r Ref, coef []float64) Ref {
	return b.fma(b.mul(r, r), b.poly(r, coef...), r)
}

// expandExp2 is expandExp with x = 2k + r, |r| <= 1, which is exact.
func expandExp2(b *Builder, dt DType, args []Ref) Ref {
	f := expFor(dt)
	x := clampTo(b, args[0], f.lo2, f.hi2)
	k := b.round(b.mul(x, b.float(dt, 0.5)))
	r := b.fma(k, b.float(dt, -2), x)
	p := b.fma(b.poly(r, f.exp2...), r, b.float(dt, 1))
	s := powerOfTwo(b, k)
	return b.mul(b.mul(p, s), s)
}

// expandExpm1 is s·(s·p + (s - 1/s)), with s as in expandExp and p = e^r - 1. For k = 0 that is p,
// which is accurate relative to x. The sums lose a zero's sign, so x's sign is copied to the
// result; for every x the result has this sign.
func expandExpm1(b *Builder, dt DType, args []Ref) Ref {
	f := expFor(dt)
	x := clampTo(b, args[0], f.lo, f.hi)
	k := b.round(b.mul(x, b.float(dt, math.Log2E/2)))
	p := expTail(b, reduceLn2(b, x, k, f), f.expm1)
	s, inv := powerOfTwo(b, k), powerOfTwo(b, b.neg(k))
	y := b.mul(s, b.add(b.mul(p, s), b.sub(s, inv)))
	return b.copySign(y, args[0])
}

// atLeast, atMost and clampTo limit x and keep NaN.

func atLeast(b *Builder, x Ref, lo float64) Ref {
	l := b.float(b.DT(x), lo)
	return b.sel(b.lt(x, l), l, x)
}

func atMost(b *Builder, x Ref, hi float64) Ref {
	h := b.float(b.DT(x), hi)
	return b.sel(b.gt(x, h), h, x)
}

func clampTo(b *Builder, x Ref, lo, hi float64) Ref {
	return atMost(b, atLeast(b, x, lo), hi)
}

// powerOfTwo is 2^k for an integral k with a normal result. If k is NaN, the result is some number;
// the caller's own NaN then decides.
func powerOfTwo(b *Builder, k Ref) Ref {
	dt := b.DT(k)
	bias, mantissa := int64(127), int64(23)
	if dt == Float64 {
		bias, mantissa = 1023, 52
	}
	i := b.add(b.convert(intOf(dt), k), b.int(intOf(dt), bias))
	return b.bits(dt, b.shl(i, mantissa))
}
