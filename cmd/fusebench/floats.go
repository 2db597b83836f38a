package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/millrace-go/millrace"
)

// A floatCase is a computation on float32 by which devices differ. Its operands are tensors and
// its scalars are known at run time only, so that nothing is computed ahead.
type floatCase struct {
	name     string
	operands [][]float32
	run      func(x []*millrace.Tensor) *millrace.Tensor
	// want is the result by IEEE 754, or its operations in float64: see exact.
	want  float64
	exact func(x []float64) float64
}

// lanes is the number of elements of a case with one value: some vectors, and an element alone.
const lanes = 9

// oneValue is a case whose operands are numbers, each repeated in all lanes.
func oneValue(name string, want float64, run func(x []*millrace.Tensor) *millrace.Tensor, operands ...float64) floatCase {
	c := floatCase{name: name, want: want, run: run}
	for _, v := range operands {
		c.operands = append(c.operands, slices.Repeat([]float32{float32(v)}, lanes))
	}
	return c
}

// sampled is the number of operands of a case that measures errors.
const sampled = 1 << 14

// ulps is a case that measures the largest error of a function for operands between limits, in
// units in the last place of the exact result.
func ulps(name string, exact func(x []float64) float64, run func(x []*millrace.Tensor) *millrace.Tensor, limits ...[2]float64) floatCase {
	c := floatCase{name: name, run: run, exact: exact}
	r := rand.New(rand.NewPCG(1, uint64(len(name))))
	for _, l := range limits {
		x := make([]float32, sampled)
		for i := range x {
			x[i] = float32(l[0] + (l[1]-l[0])*r.Float64())
		}
		c.operands = append(c.operands, x)
	}
	return c
}

var (
	nan, inf     = math.NaN(), math.Inf(1)
	negativeZero = math.Copysign(0, -1)
)

func subtract(x []*millrace.Tensor) *millrace.Tensor { return x[0].Sub(x[len(x)-1]) }
func multiply(x []*millrace.Tensor) *millrace.Tensor { return x[0].Mul(x[len(x)-1]) }
func divide(x []*millrace.Tensor) *millrace.Tensor   { return x[0].Div(x[len(x)-1]) }

// function makes a case's program of a method.
func function(f func(x *millrace.Tensor) *millrace.Tensor) func(x []*millrace.Tensor) *millrace.Tensor {
	return func(x []*millrace.Tensor) *millrace.Tensor { return f(x[0]) }
}

// of1 makes the exact function of one operand.
func of1(f func(float64) float64) func(x []float64) float64 {
	return func(x []float64) float64 { return f(x[0]) }
}

// floatCases are the cases of fusebench devices -v.
var floatCases = []floatCase{
	oneValue("x - x, x = NaN", nan, subtract, nan),
	oneValue("x - x, x = ∞", nan, subtract, inf),
	oneValue("∞ · 0", nan, multiply, inf, 0),
	oneValue("x / x, x = 0", nan, divide, 0),
	oneValue("max(NaN, 1)", nan, func(x []*millrace.Tensor) *millrace.Tensor { return x[0].Maximum(x[1]) }, nan, 1),
	oneValue("0 · -1", negativeZero, multiply, 0, -1),
	oneValue("(x + 1) - x, x = 2^24", 0, func(x []*millrace.Tensor) *millrace.Tensor { return x[0].AddScalar(1).Sub(x[0]) }, 1<<24),
	// Rounded once, the product less its rounded value is 2^-24.
	oneValue("x·x - y, y = x·x rounded", 0, func(x []*millrace.Tensor) *millrace.Tensor { return x[0].Square().Sub(x[1]) }, 1+0x1p-12, 1+0x1p-11),
	oneValue("denormal 2^-130, negated", -0x1p-130, function((*millrace.Tensor).Neg), 0x1p-130),
	oneValue("denormal 2^-130 · 1", 0x1p-130, multiply, 0x1p-130, 1),
	oneValue("2^-100 · 2^-30", 0x1p-130, multiply, 0x1p-100, 0x1p-30),
	oneValue("2^-126 / 2", 0x1p-127, divide, 0x1p-126, 2),
	oneValue("x / x, x = 2^127", 1, divide, 0x1p127),
	oneValue("exp(-88)", 6.054601895401186e-39, function((*millrace.Tensor).Exp), -88),

	ulps("x / y", func(x []float64) float64 { return x[0] / x[1] }, divide, [2]float64{1, 1000}, [2]float64{1, 1000}),
	ulps("1 / x", of1(func(x float64) float64 { return 1 / x }), function((*millrace.Tensor).Recip), [2]float64{1, 1000}),
	ulps("√x", of1(math.Sqrt), function((*millrace.Tensor).Sqrt), [2]float64{1, 1000}),
	ulps("1 / √x", of1(func(x float64) float64 { return 1 / math.Sqrt(x) }), function((*millrace.Tensor).Rsqrt), [2]float64{1, 1000}),
	ulps("exp(x)", of1(math.Exp), function((*millrace.Tensor).Exp), [2]float64{-80, 80}),
	ulps("log(x)", of1(math.Log), function((*millrace.Tensor).Log), [2]float64{2, 1000}),
	ulps("sin(x), to π/2", of1(math.Sin), function((*millrace.Tensor).Sin), [2]float64{0.1, 1.5}),
	ulps("tanh(x)", of1(math.Tanh), function((*millrace.Tensor).Tanh), [2]float64{0.1, 10}),
	ulps("erf(x)", of1(math.Erf), function((*millrace.Tensor).Erf), [2]float64{0.1, 4}),
}

// on runs a case on a device. The result is a value, or the largest error.
func (c *floatCase) on(d *millrace.Device) (string, error) {
	var got []float32
	err := d.Scope(func(sc *millrace.Scope) error {
		var xs []*millrace.Tensor
		for _, x := range c.operands {
			xs = append(xs, millrace.FromSliceOn(sc, x, len(x)))
		}
		var err error
		got, err = millrace.Values[float32](c.run(xs))
		return err
	})
	if err != nil {
		return "", err
	}
	if c.exact != nil {
		return fmt.Sprintf("%.2f", c.largestError(got)), nil
	}
	var values []string
	for _, v := range got {
		if s := floatText(float64(v)); !slices.Contains(values, s) {
			values = append(values, s)
		}
	}
	return strings.Join(values, " or "), nil
}

// largestError is in units in the last place.
func (c *floatCase) largestError(got []float32) float64 {
	worst, x := 0.0, make([]float64, len(c.operands))
	for i, v := range got {
		for j := range x {
			x[j] = float64(c.operands[j][i])
		}
		want := c.exact(x)
		_, exp := math.Frexp(want)
		if e := math.Abs(float64(v)-want) / math.Ldexp(1, exp-24); !(e <= worst) { // NaN is the worst
			worst = e
		}
	}
	return worst
}

// wanted is the exact result as on shows it.
func (c *floatCase) wanted() string {
	if c.exact != nil {
		return "0.50 ulp"
	}
	return floatText(float64(float32(c.want)))
}

// floatText is a number in few characters: a power of two as such.
func floatText(v float64) string {
	if frac, exp := math.Frexp(v); math.Abs(frac) == 0.5 && (exp > 20 || exp < -10) {
		return fmt.Sprintf("%s2^%d", strings.TrimSuffix(strconv.FormatFloat(frac, 'g', 1, 64), "0.5"), exp-1)
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}

// writeFloats writes a table of the cases on devices. Results that differ from the exact ones are
// between asterisks. An error takes the place of the result.
func writeFloats(out io.Writer, devices []*millrace.Device) error {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "float32\texact")
	for _, d := range devices {
		fmt.Fprintf(tw, "\t%s", d.Name())
	}
	fmt.Fprintln(tw)
	for i := range floatCases {
		c := &floatCases[i]
		fmt.Fprintf(tw, "%s\t%s", c.name, c.wanted())
		for _, d := range devices {
			got, err := c.on(d)
			switch {
			case err != nil:
				got = strings.ReplaceAll(err.Error(), "\n", "; ")
			case c.exact == nil && got != c.wanted():
				got = "*" + got + "*"
			}
			fmt.Fprintf(tw, "\t%s", got)
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}
