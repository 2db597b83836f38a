package ir

import (
	"math"
	"testing"
)

// foldSum32 is the promised order in another form: all lanes of all blocks in an array, then the
// folds.
func foldSum32(xs []float32) float32 {
	negZero := float32(math.Copysign(0, -1))
	var total float32
	for b := 0; b*FoldBlock < len(xs); b++ {
		block := xs[b*FoldBlock : min((b+1)*FoldBlock, len(xs))]
		var lane [FoldLanes]float32
		for l := range lane {
			lane[l] = negZero
			for i := l; i < len(block); i += FoldLanes {
				lane[l] = float32(lane[l] + block[i])
			}
		}
		for _, w := range []int{32, 16, 8, 4, 2, 1} {
			for l := 0; l < w; l++ {
				lane[l] = float32(lane[l] + lane[l+w])
			}
		}
		if b == 0 {
			total = lane[0]
		} else {
			total = float32(total + lane[0])
		}
	}
	return total
}

func TestFoldSum(t *testing.T) {
	for _, n := range []int{1, 2, 63, 64, 65, 4095, 4096, 4097, 8192, 8193, 13000} {
		xs := make([]float32, n)
		f := NewFold(Sum, Float32)
		for i := range xs {
			xs[i] = float32(math.Sin(float64(i)*1.7)) * float32(math.Exp2(float64(i%40-20)))
			f.Add([]uint64{uint64(math.Float32bits(xs[i]))})
		}
		if got, want := uint32(f.Result()), math.Float32bits(foldSum32(xs)); got != want {
			t.Errorf("n=%d: got %#x, want %#x", n, got, want)
		}
	}
}

func TestFoldEdges(t *testing.T) {
	nan, inf, one := uint64(0x7fc00000), uint64(0x7f800000), uint64(0x3f800000)
	const negZero, negInf = 0x80000000, 0xff800000
	for _, c := range []struct {
		name string
		op   Op
		dt   DType
		in   []uint64
		want uint64
	}{
		{"empty sum is +0", Sum, Float32, nil, 0},
		{"sum of -0 is -0", Sum, Float32, []uint64{negZero, negZero}, negZero},
		{"sum of -0 and +0 is +0", Sum, Float32, []uint64{negZero, 0}, 0},
		{"sum of inf and -inf", Sum, Float32, []uint64{inf, negInf}, nan},
		{"integers wrap", Sum, Uint8, []uint64{200, 100}, 44},
		{"max of -inf", Max, Float32, []uint64{negInf}, negInf},
		{"max prefers +0", Max, Float32, []uint64{negZero, 0, negZero}, 0},
		{"max of nan", Max, Float32, []uint64{one, nan, inf}, nan},
		{"max of negative", Max, Int32, []uint64{0xfffffffe, 0xfffffff0}, 0xfffffffe},
		{"max of minimum", Max, Int64, []uint64{1 << 63}, 1 << 63},
		{"max unsigned", Max, Uint8, []uint64{3, 200}, 200},
	} {
		f := NewFold(c.op, c.dt)
		for _, x := range c.in {
			f.Add([]uint64{x})
		}
		if got := f.Result(); !SameValue(c.dt, got, c.want) {
			t.Errorf("%s: got %#x, want %#x", c.name, got, c.want)
		}
	}
}

// Storage dtypes are folded in the dtype that computes: a 16-bit float sum is rounded once, an
// integer sum wraps.
func TestFoldStorage(t *testing.T) {
	sum := func(dt DType, bits uint64, n int) uint64 {
		f := NewFold(Sum, dt)
		for range n {
			f.Add([]uint64{bits})
		}
		return f.Result()
	}
	if got, want := sum(Float16, FloatBits(Float16, 1), 4099), FloatBits(Float16, 4099); got != want {
		t.Errorf("4099 ones of float16 are %#x, want %#x", got, want)
	}
	if got, want := sum(BFloat16, FloatBits(BFloat16, -0.5), 1000), FloatBits(BFloat16, -500); got != want {
		t.Errorf("1000 halves of bfloat16 are %#x, want %#x", got, want)
	}
	if got := sum(Int8, 100, 3); got != 300&0xff {
		t.Errorf("3*100 of int8 is %#x", got)
	}
	m := NewFold(Max, Int16)
	m.Add([]uint64{0x8000, 0xfffe})
	if got := m.Result(); got != 0xfffe {
		t.Errorf("max of int16 -32768 and -2 is %#x", got)
	}
}
