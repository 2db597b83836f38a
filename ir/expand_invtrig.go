package ir

// pair is a constant in two parts: lo is the rounding error of hi.
type pair struct{ hi, lo float64 }

type invTrigFormat struct {
	quarter, half, whole pair // π/4, π/2, π
	asin, atan           []float64
}

func invTrigFor(dt DType) *invTrigFormat {
	if dt == Float32 {
		return &invTrig32
	}
	return &invTrig64
}

var invTrig32 = invTrigFormat{
	quarter: pair{0x1.921fb6p-1, -2.1855695000931214e-08},
	half:    pair{0x1.921fb6p+0, -4.3711390001862428e-08},
	whole:   pair{0x1.921fb6p+1, -8.7422780003724857e-08},
	asin: []float64{0.16666659712791443, 0.075005173683166504, 0.044514779001474380,
		0.031824007630348206, 0.014381956309080124, 0.037590857595205307},
	atan: []float64{-0.33333316445350647, 0.19998529553413391, -0.14244425296783447,
		0.10599417239427567, -0.060906272381544113},
}

var invTrig64 = invTrigFormat{
	quarter: pair{0x1.921fb54442d18p-1, 3.0616169978683829e-17},
	half:    pair{0x1.921fb54442d18p+0, 6.1232339957367659e-17},
	whole:   pair{0x1.921fb54442d18p+1, 1.2246467991473532e-16},
	asin: []float64{0.16666666666666760, 0.07499999999970819, 0.044642857174634863,
		0.030381942705297059, 0.022372215087563398, 0.01735160978331271,
		0.013980851701297680, 0.011398625800966178, 0.01078201591189179,
		0.0036992076041182766, 0.021726181596845945, -0.021027174339733237,
		0.032647144280444747},
	atan: []float64{-0.33333333333333198, 0.19999999999953641, -0.14285714280194006,
		0.11111110783123702, -0.090908977447394905, 0.076920599503314036,
		-0.066631008214373136, 0.058478648893860702, -0.050391923990970380,
		0.038061681619230826, -0.017904052596000995},
}

// minus is the angle less y.
func (a pair) minus(b *Builder, y Ref) Ref {
	dt := b.DT(y)
	return b.sub(b.float(dt, a.hi), b.sub(y, b.float(dt, a.lo)))
}

// asinFolded is the arc sine of |x| <= 1/2. For larger |x| it is that of √((1-|x|)/2), and acos |x|
// is twice that. Outside [-1, 1] the root is NaN.
func asinFolded(b *Builder, x Ref) (p, folded Ref) {
	dt := b.DT(x)
	a, half := b.abs(x), b.float(dt, 0.5)
	folded = b.gt(a, half)
	z := b.sel(folded, b.fma(a, b.float(dt, -0.5), half), b.mul(a, a))
	s := b.sel(folded, b.sqrt(z), a)
	return b.fma(b.mul(s, z), b.poly(z, invTrigFor(dt).asin...), s), folded
}

func expandAsin(b *Builder, dt DType, args []Ref) Ref {
	p, folded := asinFolded(b, args[0])
	rest := invTrigFor(dt).half.minus(b, b.add(p, p))
	return b.copySign(b.sel(folded, rest, p), args[0])
}

func expandAcos(b *Builder, dt DType, args []Ref) Ref {
	x, f := args[0], invTrigFor(dt)
	p, folded := asinFolded(b, x)
	twice := b.add(p, p)
	negative := b.lt(x, b.float(dt, 0))
	far := b.sel(negative, f.whole.minus(b, twice), twice)
	near := f.half.minus(b, b.bits(dt, b.xor(b.bits(intOf(dt), p), b.signBit(x))))
	return b.sel(folded, far, near)
}

// expandAtan reduces |x| below tan(π/8) by a quarter or a half of π.
func expandAtan(b *Builder, dt DType, args []Ref) Ref {
	x, f := args[0], invTrigFor(dt)
	a, one := b.abs(x), b.float(dt, 1)
	big := b.gt(a, b.float(dt, 2.414213562373095))
	mid := b.gt(a, b.float(dt, 0.41421356237309503))
	pick := func(onBig, onMid, small Ref) Ref { return b.sel(big, onBig, b.sel(mid, onMid, small)) }
	num := pick(b.float(dt, -1), b.sub(a, one), a)
	den := pick(a, b.add(a, one), one)
	t := b.fdiv(num, den)
	s := b.mul(t, t)
	lo := pick(b.float(dt, f.half.lo), b.float(dt, f.quarter.lo), b.float(dt, 0))
	hi := pick(b.float(dt, f.half.hi), b.float(dt, f.quarter.hi), b.float(dt, 0))
	p := b.fma(b.mul(t, s), b.poly(s, f.atan...), lo)
	return b.copySign(b.add(hi, b.add(t, p)), x)
}

// expandAtan2 is the angle of (y, x): the arc tangent of the smaller over the larger coordinate,
// moved to its octant. Two zeros count as ratio 0, two infinities as ratio 1.
func expandAtan2(b *Builder, dt DType, args []Ref) Ref {
	y, x := args[0], args[1]
	f, i := invTrigFor(dt), intOf(dt)
	ay, ax := b.abs(y), b.abs(x)
	steep := b.gt(ay, ax)
	small, large := b.sel(steep, ax, ay), b.sel(steep, ay, ax)
	q := b.fdiv(small, large)
	q = b.sel(b.eq(large, b.float(dt, 0)), b.float(dt, 0), q)
	q = b.sel(b.eq(ay, ax), b.sel(b.eq(large, b.float(dt, 0)), q, b.float(dt, 1)), q)
	r := b.unary(Atan, q)
	r = b.sel(steep, f.half.minus(b, r), r)
	left := b.lt(b.bits(i, x), b.int(i, 0))
	r = b.sel(left, f.whole.minus(b, r), r)
	// Comparisons may have dropped a NaN operand; x+y restores it. It is finite or infinite for
	// other operands.
	r = b.sel(b.or(b.ne(x, x), b.ne(y, y)), b.add(x, y), r)
	return b.copySign(r, y)
}
