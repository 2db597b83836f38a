package ir

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// mathCase is a function of one argument, its reference in float64, which is accurate enough for
// float32, and the largest error, in units in the last place, that docs/numerics.md allows.
type mathCase struct {
	op    Op
	ref   func(float64) float64
	limit float64
}

var mathCases = []mathCase{
	{Exp, math.Exp, 2},
	{Exp2, math.Exp2, 2},
	{Log, math.Log, 2},
	{Log2, math.Log2, 2},
	{Rsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) }, 2},
	{Sin, math.Sin, 2},
	{Cos, math.Cos, 2},
	{Sigmoid, sigmoidRef, 2},
	{Tan, math.Tan, 4},
	{Asin, math.Asin, 4},
	{Acos, math.Acos, 4},
	{Atan, math.Atan, 4},
	{Sinh, math.Sinh, 4},
	{Cosh, math.Cosh, 4},
	{Tanh, math.Tanh, 4},
	{Erf, math.Erf, 4},
	{Log1p, math.Log1p, 4},
	{Expm1, math.Expm1, 4},
}

func sigmoidRef(x float64) float64 {
	if x < 0 {
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}

// make accuracy tests the whole range. A prime stride tests every exponent and, over the 8 bits
// below it, every table and range end.
func TestFloat32Accuracy(t *testing.T) {
	stride := uint64(80021)
	if testing.Short() {
		stride = 400009
	}
	for _, c := range mathCases {
		p := Expansion(c.op, Float32, []DType{Float32})
		worst, at := 0.0, float32(0)
		for u := uint64(0); u < 1<<32; u += stride {
			x := math.Float32frombits(uint32(u))
			got := math.Float32frombits(uint32(EvalProg(p, []uint64{u})[0]))
			if e := ulps32(got, c.ref(float64(x))); e > worst {
				worst, at = e, x
			}
		}
		if worst > c.limit {
			t.Errorf("%v: %.3g ulp at %x, limit %g", c.op, worst, at, c.limit)
		}
	}
}

// worst32 are the arguments with the largest errors in the whole range.
var worst32 = []struct {
	op Op
	x  float32
}{
	{Erf, -0x1.d7e4p-1}, {Erf, 0x1.d66p-1}, {Erf, 0x1p-149}, {Tanh, 0x1.40aae8p-1}, {Sin, 0x1.c8ff64p+47},
	{Cos, 0x1.8310ecp+71}, {Cos, 0x1.b08c4ap+111}, {Tan, -0x1.70e344p+124}, {Sigmoid, -0x1.ab86bp+5}, {Sigmoid, -0x1.f4d684p+0},
	{Exp, 0x1.38fd82p+6}, {Exp2, 0x1.a4061ap+6}, {Log1p, 0x1.55b76ep-2}, {Sinh, 0x1.0bad56p+1},
	{Asin, -0x1.0a60e8p-1}, {Atan, 0x1.e08236p-2}, {Log2, 0x1.5c1366p+0}, {Cosh, -0x1.8ecccap+2},
}

func TestFloat32HardCases(t *testing.T) {
	refs := map[Op]mathCase{}
	for _, c := range mathCases {
		refs[c.op] = c
	}
	for _, w := range worst32 {
		c := refs[w.op]
		got := eval32(w.op, w.x)
		if e := ulps32(got, c.ref(float64(w.x))); e > c.limit {
			t.Errorf("%v(%x) = %x: %.3g ulp", w.op, w.x, got, e)
		}
	}
}

// The document states exactly the bounds that are tested.
func TestNumericsDocument(t *testing.T) {
	data, err := os.ReadFile("../docs/numerics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range mathCases {
		if row := fmt.Sprintf("\n| %v | %g | ", c.op, c.limit); !strings.Contains(string(data), row) {
			t.Errorf("docs/numerics.md has no row %q", strings.TrimSpace(row))
		}
	}
}

func eval32(op Op, x ...float32) float32 {
	var dts []DType
	var args []uint64
	for _, v := range x {
		dts, args = append(dts, Float32), append(args, uint64(math.Float32bits(v)))
	}
	return math.Float32frombits(uint32(EvalOp(op, Float32, dts, args)))
}

func eval64(op Op, x ...float64) float64 {
	var dts []DType
	var args []uint64
	for _, v := range x {
		dts, args = append(dts, Float64), append(args, math.Float64bits(v))
	}
	return math.Float64frombits(EvalOp(op, Float64, dts, args))
}

// testdata/math64.txt has references that package math cannot give: its errors are larger than the
// expansions' in places.
func TestFloat64Accuracy(t *testing.T) {
	limits := map[string]float64{"pow": 2, "atan2": 4, "rem": 0.5}
	for _, c := range mathCases {
		limits[c.op.String()] = c.limit
	}
	seen := map[string]int{}
	data, err := os.ReadFile("testdata/math64.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		op, ok := ParseOp(words[0])
		if !ok {
			t.Fatalf("no op %q", words[0])
		}
		var v []float64
		for _, w := range words[1:] {
			bits, err := strconv.ParseUint(w, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			v = append(v, math.Float64frombits(bits))
		}
		x, want := v[:len(v)-1], v[len(v)-1]
		// The reference itself is rounded by half a unit.
		got := eval64(op, x...)
		if e := ulps64(got, want); e > limits[words[0]]+0.5 {
			t.Errorf("%s(%x) = %x, want %x: %.3g ulp", words[0], x, got, want, e)
		}
		seen[words[0]]++
	}
	for op := range limits {
		if seen[op] < 50 {
			t.Errorf("%s has %d references", op, seen[op])
		}
	}
}

// References from 400 digits of π.
func TestFloat64LargeArguments(t *testing.T) {
	tests := []struct {
		op      Op
		x, want float64
	}{
		{Sin, 3.0523830346182873e+78, 0.00027603512979876843773},
		{Cos, 3.0523830346182873e+78, -0.99999996190230283277},
		{Sin, -3.5208606119204414e+89, 0.99999999999087759537},
		{Cos, -3.5208606119204414e+89, -4.271394298978799e-6},
		{Sin, 6381956970095103 * 0x1p797, 1}, // the double nearest a multiple of π/2
		{Cos, 6381956970095103 * 0x1p797, -4.687165924254627611e-19},
		{Sin, 1e22, -0.8522008497671888},
		{Cos, 1e22, 0.5232147853951389},
	}
	for _, test := range tests {
		if got := eval64(test.op, test.x); ulps64(got, test.want) > 3 {
			t.Errorf("%v(%g) = %g, want %g", test.op, test.x, got, test.want)
		}
	}
}

// ulps32 is the error in units of the last place of a float32 of want's size. It is 0 if both are
// NaN, or the same infinity. A zero of the wrong sign for an exact zero is an infinite error.
func ulps32(got float32, want float64) float64 {
	if math.Abs(want) > math.MaxFloat32 && !math.IsInf(want, 0) {
		// Beyond the largest float32 the next power of two represents ∞.
		if math.IsInf(float64(got), 0) {
			return 0
		}
		want = math.Copysign(0x1p128, want)
	}
	return ulps(float64(got), want, 24, -125)
}

func ulps64(got, want float64) float64 { return ulps(got, want, 53, -1021) }

func ulps(got, want float64, precision, minExp int) float64 {
	switch {
	case got != got || want != want:
		if got != got && want != want {
			return 0
		}
		return math.Inf(1)
	case got == want:
		if got == 0 && math.Signbit(got) != math.Signbit(want) {
			return math.Inf(1)
		}
		return 0
	case math.IsInf(want, 0):
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	return math.Ldexp(math.Abs(got-want), precision-max(e, minExp))
}
