package ir

import (
	"math"
	"testing"
)

// Known answers of Random123's reference, Philox4x32-10, for the counters that
// have zeros in the last two words.
func TestPhiloxKnownAnswer(t *testing.T) {
	p := Prog{Params: []DType{Uint32, Uint32, Uint64}}
	var b Builder
	lo, hi, seed := b.Emit(Param, Uint32, 0), b.Emit(Param, Uint32, 1), b.Emit(Param, Uint64, 2)
	w := philox(&b, lo, hi, seed)
	p.Code, p.Results = b.Code, w[:]
	want := []uint64{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}
	got := EvalProg(&p, []uint64{0, 0, 0})
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("philox(0, 0) = %#x, want %#x", got, want)
		}
	}
	for _, args := range [][]uint64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 0, 1 << 32}} {
		if other := EvalProg(&p, args); other[0] == got[0] || other[3] == got[3] {
			t.Errorf("philox%v does not depend on all its input", args)
		}
	}
}

// Moments and range of the draws; the bounds are five standard errors wide.
func TestDraws(t *testing.T) {
	const n = 1 << 15
	for _, dt := range []DType{Float32, Float64} {
		for _, op := range []Op{Uniform, Normal} {
			mean, sd := 0.5, math.Sqrt(1./12)
			if op == Normal {
				mean, sd = 0, 1
			}
			p := Expansion(op, dt, []DType{Uint64})
			var sum, sum2 float64
			for i := uint64(0); i < n; i++ {
				v := BitsFloat(dt, EvalProg(p, []uint64{i, 0, 12345})[0])
				if op == Uniform && !(v >= 0 && v < 1) || v != v || math.Abs(v) > 9 {
					t.Fatalf("%v.%v: draw %d is %g", op, dt, i, v)
				}
				sum += v
				sum2 += (v - mean) * (v - mean)
			}
			if d := math.Abs(sum/n - mean); d > 5*sd/math.Sqrt(n) {
				t.Errorf("%v.%v: mean is off by %g", op, dt, d)
			}
			if d := math.Abs(sum2/n/(sd*sd) - 1); d > 5*math.Sqrt(2./n) {
				t.Errorf("%v.%v: variance is off by a factor of %g", op, dt, 1+d)
			}
		}
	}
}

func TestIota(t *testing.T) {
	tests := []struct {
		dt          DType
		position    uint64
		start, step any
		want        any
	}{
		{Int32, 5, int32(10), int32(-2), int32(0)},
		{Int32, 1<<32 + 3, int32(0), int32(1), int32(3)},
		{Int64, 1<<32 + 3, int64(1), int64(2), int64(1<<33 + 7)},
		{Uint8, 258, uint8(1), uint8(1), uint8(3)},
		{Float32, 3, float32(0.5), float32(0.25), float32(1.25)},
		{Float64, 1 << 33, float64(0), float64(1), float64(1 << 33)},
		{Float32, 1<<24 + 1, float32(0), float32(1), float32(1 << 24)},
	}
	for _, test := range tests {
		_, start := valueBits(test.start)
		_, step := valueBits(test.step)
		_, want := valueBits(test.want)
		args := []uint64{test.position & 0xffffffff, test.position >> 32, start, step}
		if got := EvalOp(Iota, test.dt, []DType{test.dt, test.dt}, args); got != want {
			t.Errorf("iota.%v at %d = %#x, want %v", test.dt, test.position, got, test.want)
		}
	}
}
