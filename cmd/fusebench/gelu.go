package main

import (
	"math"

	"github.com/millrace-go/millrace"
)

// geluSuite is the benchmark of the article that introduced Burn's fusion: three GELUs that a
// fusing engine should run equally fast.
var geluSuite = &Suite{
	name: "gelu", about: "three GELUs, fused and unfused", shape: shape{32, 512, 2048}, sizes: "of the tensor",
	variants: always("reference", "erf", "custom"), modes: bothModes, problem: geluProblem,
}

func geluProblem(variant string, s shape, as *arrays) (*problem, error) {
	f := map[string]func(x *millrace.Tensor) *millrace.Tensor{
		"reference": (*millrace.Tensor).Gelu,
		"erf":       func(x *millrace.Tensor) *millrace.Tensor { return geluWith((*millrace.Tensor).Erf, x) },
		"custom":    func(x *millrace.Tensor) *millrace.Tensor { return geluWith(erf, x) },
	}[variant]
	x := as.normal("x", 2, s...) // wide enough to reach GELU's flat ends
	return &problem{
		shape: s, inputs: []*array{x}, oracle: elementwise(x, gelu64),
		program: func(x []*millrace.Tensor) *millrace.Tensor { return f(x[0]) },
	}, nil
}

func gelu64(x float64) float64 { return 0.5 * x * (1 + math.Erf(x/math.Sqrt2)) }

// geluWith is x·(erf(x/√2)+1)/2 with the given erf.
func geluWith(erf func(*millrace.Tensor) *millrace.Tensor, x *millrace.Tensor) *millrace.Tensor {
	return x.Mul(erf(x.MulScalar(1 / math.Sqrt2)).AddScalar(1)).MulScalar(0.5)
}

// erf approximates the error function within 1.5e-7 by formula 7.1.26 of Abramowitz and Stegun,
// which holds for positive arguments. It is evaluated at x, and at −x with the result negated;
// the sign of x selects one of the two.
func erf(x *millrace.Tensor) *millrace.Tensor {
	negative := erfPositive(x.Neg()).Neg()
	return millrace.Where(x.GtScalar(0), erfPositive(x), negative)
}

// erfPositive is 1 − poly(t)·t·exp(−x·x) with t = 1/(|x|·p + 1).
func erfPositive(x *millrace.Tensor) *millrace.Tensor {
	const p = 0.3275911
	a := [...]float64{0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429}
	t := x.Abs().MulScalar(p).AddScalar(1).Recip()
	poly := t.MulScalar(a[4])
	for i := 3; i > 0; i-- {
		poly = poly.AddScalar(a[i]).Mul(t)
	}
	poly = poly.AddScalar(a[0])
	return poly.Mul(t).Mul(x.Neg().Mul(x).Exp()).Neg().AddScalar(1)
}
