package ir

import (
	"math"
	"testing"
)

// Known answers of Random123's reference, Philox4x32-10, for counters with zeros in the last two
// words.
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

// Known answers of the same reference, with all words of counter and key: the digits of pi, and all
// ones.
func TestPhiloxOp(t *testing.T) {
	for _, c := range []struct{ low, high, key, want uint64 }{
		{0, 0, 0, 0xe169c58d6627e8d5},
		{1<<64 - 1, 1<<64 - 1, 1<<64 - 1, 0x41c83b0e408f276d},
		{0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822, 0x94fdccebd16cfe09},
	} {
		p := Expansion(Philox, Uint64, []DType{Uint64, Uint64, Uint64})
		if got := EvalProg(p, []uint64{c.low, c.high, c.key})[0]; got != c.want {
			t.Errorf("philox(%#x, %#x, %#x) = %#x, want %#x", c.low, c.high, c.key, got, c.want)
		}
	}
	p := Expansion(Philox, Uint32, []DType{Uint32, Uint32, Uint32})
	seen := map[uint64]bool{}
	for _, args := range [][]uint64{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}} {
		seen[EvalProg(p, args)[0]] = true
	}
	if len(seen) != 4 || !seen[0x6627e8d5] {
		t.Errorf("uint32: %v", seen)
	}
}

// The bits of floats and integers; every NaN has the same bits.
func TestReinterpret(t *testing.T) {
	for _, c := range []struct {
		from, to DType
		x, want  uint64
	}{
		{Float32, Int32, 0x3f800000, 0x3f800000},
		{Float32, Int32, 0xffc12345, 0x7fc00000},
		{Float32, Float32, 0xffc12345, 0xffc12345},
		{Float64, Uint64, 0xfff0000000000001, 0x7ff8000000000000},
		{Float64, Uint64, 0x8000000000000000, 0x8000000000000000},
		{Float16, Int16, 0xbc00, 0xbc00},
		{Float16, BFloat16, 0xfe01, 0x7e00},
		{BFloat16, Uint16, 0xffc1, 0x7fc0},
		{Uint32, Float32, 0xffc12345, 0xffc12345},
		{Int8, Uint8, 0x80, 0x80},
	} {
		if got := EvalOp(Reinterpret, c.to, []DType{c.from}, []uint64{c.x}); got != c.want {
			t.Errorf("%#x of %v as %v is %#x, want %#x", c.x, c.from, c.to, got, c.want)
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
