package ir

// Sine, cosine and tangent. The argument becomes x = k·π/2 + r with |r| <= π/4. Up to a limit, k
// times π/2 is subtracted in four parts; the first parts have few bits, so that their products with
// k are exact even if a device rounds an fma twice. Beyond the limit a Rare sub uses Payne and
// Hanek's method.
type trigFormat struct {
	limit    float64
	parts    [4]float64 // of π/2
	sin, cos []float64  // sin r = r + r·s·sin(s), cos r = 1 + s·cos(s), s = r²
}

const (
	twoOverPi = 0.63661977236758134308
	halfPi    = 1.57079632679489661923
)

func trigFor(dt DType) *trigFormat {
	if dt == Float32 {
		return &trig32
	}
	return &trig64
}

var trig32 = trigFormat{
	limit: 12800, // k < 2^13, the parts begin with 11 bits
	parts: [4]float64{0x1.92p+0, 0x1.fb4p-12, 0x1.4442d2p-24, -0x1.ee59dap-50},
	sin:   []float64{-0.16666655242443085, 0.0083321882411837578, -0.00019518072076607496},
	cos:   []float64{-0.5, 0.041666645556688309, -0.0013887309469282627, 2.4432338250335306e-05},
}

var trig64 = trigFormat{
	limit: 1.6e6, // k < 2^20, the parts begin with 33 bits
	parts: [4]float64{0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69, 0x1.b839a252049c1p-104},
	sin: []float64{-0.1666666666666663, 0.0083333333333219205, -0.00019841269829460562,
		2.755731358311117e-06, -2.5050742467415893e-08, 1.5895952753905927e-10},
	cos: []float64{-0.5, 0.041666666666666595, -0.0013888888888873346, 2.4801587289005627e-05,
		-2.7557314218073977e-07, 2.0875705523763334e-09, -1.1358754840175263e-11},
}

func expandSin(b *Builder, dt DType, args []Ref) Ref {
	return keepZero(b, args[0], trig(b, args[0], sinQuadrant, subSin))
}

func expandCos(b *Builder, dt DType, args []Ref) Ref {
	return trig(b, args[0], cosQuadrant, subCos)
}

func expandTan(b *Builder, dt DType, args []Ref) Ref {
	return keepZero(b, args[0], trig(b, args[0], tanQuadrant, subTan))
}

// keepZero is y, except that zeros of x are kept with their sign, which a sum in y lost.
func keepZero(b *Builder, x, y Ref) Ref {
	return b.sel(b.eq(x, b.float(b.DT(x), 0)), x, y)
}

// quadrant is a function that gives the result at k·π/2 + r; k is an integer of the float's width.
type quadrant func(b *Builder, k, r Ref) Ref

func trig(b *Builder, x Ref, q quadrant, large largeSubs) Ref {
	dt := b.DT(x)
	f := trigFor(dt)
	k := b.round(b.mul(x, b.float(dt, twoOverPi)))
	r := x
	for _, part := range f.parts {
		r = b.fma(k, b.float(dt, -part), r)
	}
	fast := q(b, b.convert(intOf(dt), k), r)
	return b.rare(b.gt(b.abs(x), b.float(dt, f.limit)), fast, large.of(dt), x, None)
}

func sinQuadrant(b *Builder, k, r Ref) Ref {
	s, c := sinCosReduced(b, r)
	v := b.sel(isOdd(b, k), c, s)
	// Quadrants whose number has bit 1 set are negative.
	i := b.DT(k)
	sign := b.shl(b.and(k, b.int(i, 2)), int64(i.Bits()-2))
	return b.bits(b.DT(v), b.xor(b.bits(i, v), sign))
}

func cosQuadrant(b *Builder, k, r Ref) Ref {
	return sinQuadrant(b, b.add(k, b.int(b.DT(k), 1)), r)
}

// tanQuadrant divides sine by cosine, or minus cosine by sine.
func tanQuadrant(b *Builder, k, r Ref) Ref {
	s, c := sinCosReduced(b, r)
	odd := isOdd(b, k)
	return b.fdiv(b.sel(odd, b.neg(c), s), b.sel(odd, s, c))
}

func isOdd(b *Builder, k Ref) Ref {
	one := b.int(b.DT(k), 1)
	return b.eq(b.and(k, one), one)
}

func sinCosReduced(b *Builder, r Ref) (sin, cos Ref) {
	f := trigFor(b.DT(r))
	s := b.mul(r, r)
	sin = b.fma(b.mul(s, r), b.poly(s, f.sin...), r)
	return sin, b.fma(s, b.poly(s, f.cos...), b.float(b.DT(r), 1))
}
