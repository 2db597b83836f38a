package ir

import (
	"math"
	"math/rand/v2"
	"testing"
)

var (
	inf  = math.Inf(1)
	nan  = math.NaN()
	neg0 = math.Copysign(0, -1)
)

// sameFloat treats all NaNs as equal, and zeros of different sign as different.
func sameFloat(a, b float64) bool {
	return a != a && b != b || a == b && math.Signbit(a) == math.Signbit(b)
}

// Exact results at the ends and special values, for both float types.
func TestUnarySpecials(t *testing.T) {
	tests := []struct {
		op Op
		io [][2]float64 // argument, result
	}{
		{Exp, [][2]float64{{0, 1}, {neg0, 1}, {inf, inf}, {-inf, 0}, {1000, inf}, {-1000, 0}}},
		{Exp2, [][2]float64{{0, 1}, {10, 1024}, {-3, 0.125}, {inf, inf}, {-inf, 0}, {-126, 0x1p-126}, {2000, inf}}},
		{Expm1, [][2]float64{{0, 0}, {neg0, neg0}, {inf, inf}, {-inf, -1}, {1000, inf}, {-1000, -1}}},
		{Log, [][2]float64{{1, 0}, {0, -inf}, {neg0, -inf}, {-1, nan}, {inf, inf}, {-inf, nan}}},
		{Log2, [][2]float64{{1, 0}, {8, 3}, {0x1p-100, -100}, {0x1p-140, -140}, {0, -inf}, {neg0, -inf}, {-1, nan}, {inf, inf}}},
		{Log1p, [][2]float64{{0, 0}, {neg0, neg0}, {-1, -inf}, {-2, nan}, {inf, inf}, {-inf, nan}, {0x1p-140, 0x1p-140}}},
		{Sin, [][2]float64{{0, 0}, {neg0, neg0}, {inf, nan}, {-inf, nan}, {0x1p-140, 0x1p-140}}},
		{Cos, [][2]float64{{0, 1}, {neg0, 1}, {inf, nan}, {-inf, nan}}},
		{Tan, [][2]float64{{0, 0}, {neg0, neg0}, {inf, nan}, {0x1p-140, 0x1p-140}}},
		{Tanh, [][2]float64{{0, 0}, {neg0, neg0}, {inf, 1}, {-inf, -1}, {100, 1}, {-100, -1}, {0x1p-140, 0x1p-140}}},
		{Sinh, [][2]float64{{0, 0}, {neg0, neg0}, {inf, inf}, {-inf, -inf}, {1000, inf}, {-1000, -inf}}},
		{Cosh, [][2]float64{{0, 1}, {neg0, 1}, {inf, inf}, {-inf, inf}, {1000, inf}}},
		{Asin, [][2]float64{{0, 0}, {neg0, neg0}, {1.5, nan}, {-1.5, nan}, {inf, nan}}},
		{Acos, [][2]float64{{1, 0}, {1.5, nan}, {-1.5, nan}, {inf, nan}}},
		{Atan, [][2]float64{{0, 0}, {neg0, neg0}}},
		{Sigmoid, [][2]float64{{0, 0.5}, {inf, 1}, {-inf, 0}, {1000, 1}, {-1000, 0}}},
		{Erf, [][2]float64{{0, 0}, {neg0, neg0}, {inf, 1}, {-inf, -1}, {10, 1}, {-10, -1}}},
		{Gelu, [][2]float64{{0, 0}, {neg0, neg0}, {inf, inf}, {-inf, neg0}, {100, 100}, {-100, neg0}, {0x1.8p127, 0x1.8p127}}},
		{GeluTanh, [][2]float64{{0, 0}, {neg0, neg0}, {inf, inf}, {-inf, neg0}, {100, 100}, {-100, neg0}}},
		{Silu, [][2]float64{{0, 0}, {neg0, neg0}, {inf, inf}, {-inf, neg0}, {1000, 1000}}},
		{Softplus, [][2]float64{{inf, inf}, {-inf, 0}, {1000, 1000}}},
		{Relu, [][2]float64{{0, 0}, {neg0, 0}, {2, 2}, {-2, 0}, {inf, inf}, {-inf, 0}}},
		{Sign, [][2]float64{{0, 0}, {neg0, neg0}, {2, 1}, {-2, -1}, {inf, 1}, {-inf, -1}}},
		{Rsqrt, [][2]float64{{4, 0.5}, {0, inf}, {neg0, -inf}, {-1, nan}, {inf, 0}}},
		{Recip, [][2]float64{{4, 0.25}, {0, inf}, {neg0, -inf}, {inf, 0}, {-inf, neg0}}},
		{Square, [][2]float64{{-3, 9}, {neg0, 0}, {-inf, inf}}},
		{Sqrt, [][2]float64{{4, 2}, {neg0, neg0}, {-1, nan}, {inf, inf}}},
	}
	for _, test := range tests {
		for _, io := range append(test.io, [2]float64{nan, nan}) {
			if got := eval64(test.op, io[0]); !sameFloat(got, io[1]) {
				t.Errorf("%v.float64(%g) = %g, want %g", test.op, io[0], got, io[1])
			}
			if got := eval32(test.op, float32(io[0])); !sameFloat(float64(got), float64(float32(io[1]))) {
				t.Errorf("%v.float32(%g) = %g, want %g", test.op, io[0], got, io[1])
			}
		}
	}
}

func TestBinarySpecials(t *testing.T) {
	tests := []struct {
		op         Op
		x, y, want float64
	}{
		{Pow, 2, 10, 1024}, {Pow, -2, 3, -8}, {Pow, -2, 2, 4}, {Pow, -8, 1. / 3, nan},
		{Pow, nan, 0, 1}, {Pow, 1, nan, 1}, {Pow, 1, inf, 1}, {Pow, -1, inf, 1}, {Pow, -1, -inf, 1},
		{Pow, nan, 1, nan}, {Pow, 2, nan, nan}, {Pow, -1, nan, nan}, {Pow, 0, neg0, 1}, {Pow, inf, 0, 1},
		{Pow, 0, -3, inf}, {Pow, neg0, -3, -inf}, {Pow, neg0, -2, inf}, {Pow, 0, -inf, inf}, {Pow, neg0, -0.5, inf},
		{Pow, 0, 3, 0}, {Pow, neg0, 3, neg0}, {Pow, neg0, 2, 0}, {Pow, neg0, 0.5, 0},
		{Pow, 0.5, -inf, inf}, {Pow, 0.5, inf, 0}, {Pow, 2, inf, inf}, {Pow, 2, -inf, 0}, {Pow, -2, inf, inf},
		{Pow, -inf, 3, -inf}, {Pow, -inf, 2, inf}, {Pow, -inf, 0.5, inf}, {Pow, -inf, -3, neg0}, {Pow, -inf, -2, 0}, {Pow, -inf, -0.5, 0},
		{Pow, inf, 0.5, inf}, {Pow, inf, -0.5, 0}, {Pow, -1, 1e30, 1}, {Pow, 2, -149, 0x1p-149}, {Pow, 0x1p-149, 1, 0x1p-149},
		{Atan2, 0, 1, 0}, {Atan2, neg0, 1, neg0}, {Atan2, 0, 0, 0}, {Atan2, neg0, 0, neg0},
		{Atan2, nan, 1, nan}, {Atan2, 1, nan, nan}, {Atan2, 1, inf, 0}, {Atan2, -1, inf, neg0}, {Atan2, inf, nan, nan},
		{Maximum, 1, 2, 2}, {Maximum, 2, 1, 2}, {Maximum, neg0, 0, 0}, {Maximum, 0, neg0, 0}, {Maximum, neg0, neg0, neg0},
		{Maximum, nan, 1, nan}, {Maximum, 1, nan, nan}, {Maximum, -inf, inf, inf}, {Maximum, -inf, -inf, -inf}, {Maximum, nan, inf, nan},
		{Minimum, 1, 2, 1}, {Minimum, 2, 1, 1}, {Minimum, neg0, 0, neg0}, {Minimum, 0, neg0, neg0}, {Minimum, 0, 0, 0},
		{Minimum, nan, 1, nan}, {Minimum, 1, nan, nan}, {Minimum, -inf, inf, -inf}, {Minimum, nan, -inf, nan}, {Minimum, inf, inf, inf},
		{Rem, 7, 3, 1}, {Rem, -7, 3, 2}, {Rem, 7, -3, -2}, {Rem, -7, -3, -1}, {Rem, 6, -3, neg0}, {Rem, neg0, 3, 0},
		{Rem, 1, 0, nan}, {Rem, inf, 1, nan}, {Rem, 1, inf, 1}, {Rem, -1, inf, inf}, {Rem, 1, -inf, -inf}, {Rem, 0, inf, 0},
		{Rem, nan, 1, nan}, {Rem, 1, nan, nan}, {Rem, 0x1p100, 3, 1}, {Rem, 0x1p101, 3, 2}, {Rem, 1, 0x1p-149, 0}, {Rem, 5.5, 0x1p-140, 0},
		{FloorDiv, 7, 3, 2}, {FloorDiv, -7, 3, -3}, {FloorDiv, 7, -3, -3}, {FloorDiv, -7, -3, 2}, {FloorDiv, 1, 0, inf}, {FloorDiv, -1, 0, -inf},
		{FloorDiv, 0, 0, nan}, {FloorDiv, 1, inf, 0}, {FloorDiv, -1, inf, -1}, {FloorDiv, nan, 1, nan}, {FloorDiv, inf, 2, nan},
		{FloorDiv, 0x1p100, 1, 0x1p100}, {FloorDiv, neg0, 3, neg0}, {FloorDiv, 3, 0.5, 6}, {FloorDiv, 0, -inf, neg0}, {FloorDiv, inf, 0, inf},
		{FloorDiv, 1, -inf, -1}, {FloorDiv, -1, -inf, 0}, {FloorDiv, inf, inf, nan}, {FloorDiv, 1, nan, nan}, {FloorDiv, -0x1p-149, 0x1p100, -1},
		{Div, 1, 0, inf}, {Div, neg0, 2, neg0}, {Div, 0, 0, nan},
	}
	for _, test := range tests {
		if got := eval64(test.op, test.x, test.y); !sameFloat(got, test.want) {
			t.Errorf("%v.float64(%g, %g) = %g, want %g", test.op, test.x, test.y, got, test.want)
		}
		got := eval32(test.op, float32(test.x), float32(test.y))
		if !sameFloat(float64(got), float64(float32(test.want))) {
			t.Errorf("%v.float32(%g, %g) = %g, want %g", test.op, test.x, test.y, got, test.want)
		}
	}
}

// Angles whose exact results are the constants rounded.
func TestAngles(t *testing.T) {
	tests := []struct {
		op   Op
		args []float64
		want float64
	}{
		{Atan, []float64{inf}, math.Pi / 2}, {Atan, []float64{-inf}, -math.Pi / 2},
		{Asin, []float64{1}, math.Pi / 2}, {Asin, []float64{-1}, -math.Pi / 2},
		{Acos, []float64{-1}, math.Pi}, {Acos, []float64{0}, math.Pi / 2},
		{Atan2, []float64{0, -1}, math.Pi}, {Atan2, []float64{neg0, -1}, -math.Pi},
		{Atan2, []float64{0, neg0}, math.Pi}, {Atan2, []float64{neg0, neg0}, -math.Pi},
		{Atan2, []float64{1, 0}, math.Pi / 2}, {Atan2, []float64{-1, neg0}, -math.Pi / 2},
		{Atan2, []float64{inf, inf}, math.Pi / 4}, {Atan2, []float64{-inf, -inf}, -3 * math.Pi / 4},
		{Atan2, []float64{inf, 1}, math.Pi / 2}, {Atan2, []float64{1, -inf}, math.Pi},
	}
	for _, test := range tests {
		if got := eval64(test.op, test.args...); ulps64(got, test.want) > 1 {
			t.Errorf("%v.float64(%g) = %g, want %g", test.op, test.args, got, test.want)
		}
		var args []float32
		for _, a := range test.args {
			args = append(args, float32(a))
		}
		if got := eval32(test.op, args...); ulps32(got, test.want) > 1 {
			t.Errorf("%v.float32(%g) = %g, want %g", test.op, test.args, got, test.want)
		}
	}
}

// Two-operand functions of float32 on random operands: any bits, and values of ordinary size.
func TestFloat32BinaryAccuracy(t *testing.T) {
	tests := []struct {
		op    Op
		ref   func(x, y float64) float64
		limit float64
	}{
		{Pow, math.Pow, 2},
		{Atan2, math.Atan2, 4},
		{Rem, remRef, 0.5},
		{FloorDiv, floorDivRef, 2},
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, test := range tests {
		worst, wx, wy := 0.0, float32(0), float32(0)
		for i := range 40000 {
			x, y := math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
			switch i % 4 {
			case 1:
				x, y = float32(r.NormFloat64()*10), float32(r.NormFloat64()*10)
			case 2:
				x, y = float32(r.ExpFloat64()), float32(r.NormFloat64()*100)
			case 3:
				y = float32(r.IntN(9) - 4)
			}
			if e := ulps32(eval32(test.op, x, y), test.ref(float64(x), float64(y))); e > worst {
				worst, wx, wy = e, x, y
			}
		}
		if worst > test.limit {
			t.Errorf("%v(%x, %x): %.3g ulp, limit %g", test.op, wx, wy, worst, test.limit)
		}
	}
}

func remRef(x, y float64) float64 {
	m := math.Mod(x, y)
	switch {
	case m == 0:
		return math.Copysign(0, y)
	case (m < 0) != (y < 0):
		return m + y
	}
	return m
}

// floorDivRef is right for float32 operands: their quotient is never so close below an integer that
// float64 would round it up.
func floorDivRef(x, y float64) float64 {
	switch {
	case math.IsInf(x, 0):
		return nan
	case math.IsInf(y, 0) && x != 0 && (x < 0) != (y < 0):
		return -1
	}
	return math.Floor(x / y)
}

// The composites' bound: docs/numerics.md states it as absolute plus relative.
func TestCompositeAccuracy(t *testing.T) {
	tests := []struct {
		op       Op
		ref      func(float64) float64
		abs, rel float64
	}{
		{Gelu, func(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }, 5e-7, 2e-7},
		{GeluTanh, func(x float64) float64 {
			return x * sigmoidRef(2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))
		}, 5e-7, 2e-7},
		{Silu, func(x float64) float64 { return x * sigmoidRef(x) }, 1e-37, 3e-7},
		{Softplus, func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, 1e-44, 4e-7},
	}
	for _, test := range tests {
		for u := uint64(0); u < 1<<32; u += 400009 {
			x := math.Float32frombits(uint32(u))
			if x != x || math.IsInf(float64(x), 0) {
				continue
			}
			got, want := float64(eval32(test.op, x)), test.ref(float64(x))
			if math.Abs(got-want) > test.abs+test.rel*math.Abs(want) {
				t.Errorf("%v(%x) = %x, want %x", test.op, x, got, want)
			}
		}
	}
}

func TestPredicates(t *testing.T) {
	for _, test := range []struct {
		x                  float64
		isNaN, isInf, isOK bool
	}{
		{1, false, false, true}, {0, false, false, true}, {inf, false, true, false}, {-inf, false, true, false},
		{nan, true, false, false}, {0x1p-149, false, false, true},
	} {
		for _, dt := range []DType{Float32, Float64} {
			bits := FloatBits(dt, test.x)
			for op, want := range map[Op]bool{IsNaN: test.isNaN, IsInf: test.isInf, IsFinite: test.isOK} {
				if got := EvalOp(op, Bool, []DType{dt}, []uint64{bits}); got != boolBit(want) {
					t.Errorf("%v.%v(%g) = %d", op, dt, test.x, got)
				}
			}
		}
	}
}
