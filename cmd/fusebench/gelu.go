package main

import (
	"flag"
	"math"

	"github.com/millrace-go/millrace"
)

// geluSuite is the benchmark of the article that introduced Burn's fusion:
// three GELUs that a fusing engine should run equally fast.
type geluSuite struct{}

func (geluSuite) Name() string { return "gelu" }

func (geluSuite) Variants() []string { return []string{"reference", "erf", "custom"} }

func (geluSuite) Program(variant string) func(x *millrace.Tensor) *millrace.Tensor {
	switch variant {
	case "reference":
		return (*millrace.Tensor).Gelu
	case "erf":
		return func(x *millrace.Tensor) *millrace.Tensor { return geluWith((*millrace.Tensor).Erf, x) }
	default:
		return func(x *millrace.Tensor) *millrace.Tensor { return geluWith(erf, x) }
	}
}

func (geluSuite) Oracle(x float64) float64 { return 0.5 * x * (1 + math.Erf(x/math.Sqrt2)) }

// geluWith is x·(erf(x/√2)+1)/2 with an erf of the caller's.
func geluWith(erf func(*millrace.Tensor) *millrace.Tensor, x *millrace.Tensor) *millrace.Tensor {
	return x.Mul(erf(x.MulScalar(1 / math.Sqrt2)).AddScalar(1)).MulScalar(0.5)
}

// erf approximates the error function within 1.5e-7 by formula 7.1.26 of
// Abramowitz and Stegun, which holds for positive arguments: it is evaluated
// on −x, negated, and on x, and the sign of x chooses.
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

func setupGelu(fs *flag.FlagSet) func(streams, []string) error {
	suite := geluSuite{}
	c := &config{
		shape: shape{32, 512, 2048}, dtype: dtype{millrace.Float32},
		variants: suite.Variants(), modes: list{fused, unfused},
	}
	c.targetFlags(fs)
	c.timingFlags(fs)
	fs.Var(&c.shape, "shape", "`sizes` of the tensor")
	fs.Var(&c.variants, "variants", "`variants` to run")
	return func(io streams, args []string) error {
		if len(args) > 0 {
			return usageError("unexpected %q", args[0])
		}
		if err := c.check(suite.Variants()); err != nil {
			return err
		}
		if err := c.checkTiming(); err != nil {
			return err
		}
		return timeSuite(c, suite, io)
	}
}
