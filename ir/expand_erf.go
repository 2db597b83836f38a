package ir

// erf32 is x + x·q(x²) below near, and 1 - 1/p(|x|)⁸ beyond. The eighth root of the complement's
// reciprocal is close to a polynomial, and three squarings cost less than an exponential. Their
// errors shrink with the complement.
func erf32(b *Builder, x Ref) Ref {
	const near, limit = 0.92, 3.95 // from limit on the result rounds to 1
	one := b.float(Float32, 1)
	s := b.mul(x, x)
	q := b.poly(s, 0.12837915122509003, -0.37612488865852356, 0.11281730979681015,
		-0.026762966066598892, 0.0049873529933393, -0.00059595896163955331)
	small := b.fma(q, x, x)

	a := atMost(b, b.abs(x), limit)
	p := b.poly(a, 0.99773246049880981, 0.15341340005397797, 0.060776084661483765,
		0.06159904971718788, -0.025397839024662971, 0.01492672227323055,
		-0.0034333376679569483, 0.00049556494923308492)
	for range 3 {
		p = b.mul(p, p)
	}
	large := b.copySign(b.sub(one, b.fdiv(one, p)), x)
	return b.sel(b.lt(a, b.float(Float32, near)), small, large)
}

// erf64 is a polynomial below 1, and 1 - e^-x²·g((x-2)/(x+2)) beyond, where g is the scaled
// complement. The result rounds to 1 well below the limit of 6.
func erf64(b *Builder, x Ref) Ref {
	one, two := b.float(Float64, 1), b.float(Float64, 2)
	a := atMost(b, b.abs(x), 6)
	s := b.mul(a, a)
	near := b.mul(a, b.poly(s, erf64Near...))
	t := b.fdiv(b.sub(a, two), b.add(a, two))
	far := b.sub(one, b.mul(b.unary(Exp, b.neg(s)), b.poly(t, erf64Far...)))
	return b.copySign(b.sel(b.lt(a, one), near, far), x)
}

var erf64Near = []float64{1.1283791670955126, -0.37612638903183454, 0.1128379167094242,
	-0.026866170642892678, 0.0052239776046139963, -0.0008548325866167588,
	0.00012055291875987456, -1.4924682289647179e-05, 1.6446786517002267e-06,
	-1.6203824304472519e-07, 1.3700748767501193e-08, -7.7611955763699895e-10}

var erf64Far = []float64{0.25539567631050575, -0.42718584741395849, 0.24165819424246432,
	-0.078978581015706831, 0.0037328924045596911, 0.0069974617369548530,
	-0.00084714326013610945, -0.00098197693568005348, 4.3555743176084324e-05,
	0.00017435925830513234, 2.7525419005367687e-05, -2.7558691368264189e-05,
	-1.3989209546688794e-05, 1.2798433815333724e-06, 4.0023695803273759e-06,
	1.3448032239561032e-06, -1.1878966785037955e-06}
