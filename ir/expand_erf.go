package ir

// erf32 and tanh32 are x·P(x²)/Q(x²) up to where the result rounds to 1. All
// coefficients are positive, so nothing cancels, and one division costs less
// than a second range with an exponential in it.

func erf32(b *Builder, x Ref) Ref {
	x = clampTo(b, x, -3.84, 3.84)
	s := b.mul(x, x)
	p := b.poly(s, 1.1283791516093762, 0.18756057962401434, 0.052444655692623834,
		0.0036618095310408174, 0.00028582626138736648, 2.1167416575264527e-6)
	q := b.poly(s, 1, 0.49955412707730314, 0.11299822981659599,
		0.014760618045919987, 0.0011433262515346412, 3.8826644681439696e-5)
	return b.fdiv(b.mul(x, p), q)
}

func tanh32(b *Builder, x Ref) Ref {
	x = clampTo(b, x, -9.02, 9.02)
	s := b.mul(x, x)
	p := b.poly(s, 1, 0.13379717848760761, 0.0034940344668580259,
		2.05834802385208e-5, 1.3319071195114578e-8)
	q := b.poly(s, 1, 0.46713033088074354, 0.025871072806635251,
		0.00032830927110199481, 7.7620190087933232e-7)
	return b.fdiv(b.mul(x, p), q)
}

// erf64 is a polynomial below 1, and 1 - e^-x²·g((x-2)/(x+2)) beyond, where g
// is the scaled complement; the result is 1 long before the limit.
func erf64(b *Builder, x Ref) Ref {
	one, two := b.float(Float64, 1), b.float(Float64, 2)
	a, limit := b.abs(x), b.float(Float64, 6)
	a = b.sel(b.gt(a, limit), limit, a)
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
