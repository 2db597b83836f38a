package ir

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactFMA32 is x*y + z in exact arithmetic, rounded once by math/big.
func exactFMA32(x, y, z float32) float32 {
	exact := func(v float32) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(float64(v)) }
	p := exact(0).Mul(exact(x), exact(y))
	r, _ := p.Add(p, exact(z)).Float32()
	return r
}

// fmaOperand prefers operands that make double rounding fail: few significant bits, so that sums
// tie, and exponents that meet or underflow.
func fmaOperand(r *rand.Rand, exponent int) float32 {
	m := 1<<23 | r.Uint32N(1<<23)
	if r.IntN(2) == 0 {
		m = 1<<23 | 1<<r.IntN(23) | 1<<r.IntN(23)
	}
	v := math.Ldexp(float64(m), exponent-23+r.IntN(7)-3)
	if r.IntN(2) == 0 {
		v = -v
	}
	return float32(v)
}

func TestFMA32RoundsOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200000 {
		ex, ey := r.IntN(120)-60, r.IntN(120)-60
		switch i % 4 {
		case 1: // results around the denormals
			ey = -130 - ex
		case 2: // and around overflow
			ey = 126 - ex
		}
		x, y := fmaOperand(r, ex), fmaOperand(r, ey)
		z := fmaOperand(r, ex+ey+r.IntN(60)-30)
		checkFMA32(t, x, y, z)
	}
	for range 100000 {
		checkFMA32(t, math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()))
	}
}

func checkFMA32(t *testing.T, x, y, z float32) {
	t.Helper()
	for _, v := range []float32{x, y, z} {
		if v != v || math.IsInf(float64(v), 0) {
			return
		}
	}
	got, want := FMA32(x, y, z), exactFMA32(x, y, z)
	if got != want {
		t.Errorf("FMA32(%x, %x, %x) = %x, want %x", x, y, z, got, want)
	}
}

func FuzzFMA32(f *testing.F) {
	f.Add(uint32(0x3f800001), uint32(0x3f800001), uint32(0x80000001))
	f.Fuzz(func(t *testing.T, x, y, z uint32) {
		checkFMA32(t, math.Float32frombits(x), math.Float32frombits(y), math.Float32frombits(z))
	})
}

// A tie that float64 rounds away: the naive float32(math.FMA(...)) fails here.
func TestFMA32Tie(t *testing.T) {
	x, y, z := float32(1+0x1p-23), float32(1+0x1p-23), float32(0x1p30)
	if naive := float32(math.FMA(float64(x), float64(y), float64(z))); FMA32(x, y, z) != exactFMA32(x, y, z) {
		t.Errorf("got %x, naive %x, want %x", FMA32(x, y, z), naive, exactFMA32(x, y, z))
	}
	inf := float32(math.Inf(1))
	if got := FMA32(inf, 0, 1); got == got {
		t.Errorf("inf*0 + 1 = %v", got)
	}
	if got := FMA32(1, 1, -inf); got != -inf {
		t.Errorf("1 - inf = %v", got)
	}
	if got := FMA32(1, -1, 1); math.Float32bits(got) != 0 {
		t.Errorf("1*-1 + 1 = %x", math.Float32bits(got))
	}
}

func evalPrim(op Op, dt DType, args ...any) uint64 {
	in := Instr{Op: op, DT: dt}
	var dts []DType
	var bits []uint64
	for _, a := range args {
		d, b := valueBits(a)
		dts, bits = append(dts, d), append(bits, b)
	}
	return EvalPrim(in, dts, bits)
}

// valueBits is the dtype and bits of a Go value.
func valueBits(v any) (DType, uint64) {
	switch v := v.(type) {
	case bool:
		return Bool, boolBit(v)
	case uint8:
		return Uint8, uint64(v)
	case int32:
		return Int32, uint64(uint32(v))
	case int64:
		return Int64, uint64(v)
	case uint32:
		return Uint32, uint64(v)
	case uint64:
		return Uint64, v
	case float32:
		return Float32, uint64(math.Float32bits(v))
	case float64:
		return Float64, math.Float64bits(v)
	}
	panic("no dtype")
}

func TestPrimitives(t *testing.T) {
	nan32 := float32(math.NaN())
	tests := []struct {
		op   Op
		args []any
		want any
	}{
		{Add, []any{int32(math.MaxInt32), int32(1)}, int32(math.MinInt32)},
		{Add, []any{uint8(250), uint8(10)}, uint8(4)},
		{Sub, []any{uint32(0), uint32(1)}, uint32(math.MaxUint32)},
		{Mul, []any{int64(math.MinInt64), int64(-1)}, int64(math.MinInt64)},
		{Neg, []any{int32(math.MinInt32)}, int32(math.MinInt32)},
		{Neg, []any{uint8(1)}, uint8(255)},
		{Neg, []any{float32(0)}, float32(math.Copysign(0, -1))},
		{Abs, []any{int32(math.MinInt32)}, int32(math.MinInt32)},
		{Abs, []any{int64(-5)}, int64(5)},
		{Abs, []any{uint8(200)}, uint8(200)},
		{Not, []any{true}, false},
		{Not, []any{uint8(0x0f)}, uint8(0xf0)},
		{Quo, []any{int32(-7), int32(2)}, int32(-3)},
		{Mod, []any{int32(-7), int32(2)}, int32(-1)},
		{Quo, []any{uint64(math.MaxUint64), uint64(2)}, uint64(math.MaxInt64)},
		{MulHi, []any{uint32(math.MaxUint32), uint32(math.MaxUint32)}, uint32(math.MaxUint32 - 1)},
		{ShlRaw, []any{int32(1), int32(31)}, int32(math.MinInt32)},
		{ShrRaw, []any{int64(-8), int64(1)}, int64(-4)},
		{ShrRaw, []any{uint8(0x80), uint8(7)}, uint8(1)},
		{Sqrt, []any{float32(2)}, float32(math.Sqrt2)},
		{Round, []any{float32(2.5)}, float32(2)},
		{Round, []any{float64(-0.5)}, math.Copysign(0, -1)},
		{Floor, []any{float32(-1.5)}, float32(-2)},
		{Ceil, []any{float64(-1.5)}, float64(-1)},
		{Trunc, []any{float32(-1.5)}, float32(-1)},
		{FDiv, []any{float32(1), float32(0)}, float32(math.Inf(1))},
		{FDiv, []any{float32(1), float32(3)}, float32(1) / 3},
		{Mul, []any{float32(0x1p-149), float32(0.5)}, float32(0)},
		{Add, []any{float32(0x1p-149), float32(0x1p-149)}, float32(0x1p-148)},
		{FMA, []any{float64(0x1.0000001p0), float64(0x1.0000001p0), float64(-1)}, math.FMA(0x1.0000001p0, 0x1.0000001p0, -1)},
		{Lt, []any{int32(-1), int32(0)}, true},
		{Lt, []any{uint32(math.MaxUint32), uint32(0)}, false},
		{Eq, []any{nan32, nan32}, false},
		{Ne, []any{nan32, nan32}, true},
		{Ge, []any{nan32, float32(0)}, false},
		{Eq, []any{float32(0), float32(math.Copysign(0, -1))}, true},
		{Where, []any{true, int32(1), int32(2)}, int32(1)},
		{Where, []any{false, int32(1), int32(2)}, int32(2)},
		{Convert, []any{int64(-1)}, float32(-1)},
		{Convert, []any{int64(1<<24 + 1)}, float32(1 << 24)},
		{Convert, []any{uint64(1<<63 | 1<<39 | 1)}, float32(1<<63 + 1<<40)},
		{Convert, []any{uint32(math.MaxUint32)}, float64(math.MaxUint32)},
		{Convert, []any{float32(-3.9)}, int32(-3)},
		{Convert, []any{true}, float64(1)},
		{Convert, []any{float64(1e300)}, float32(math.Inf(1))},
		{Bitcast, []any{float32(1)}, int32(0x3f800000)},
	}
	for _, test := range tests {
		dt, want := valueBits(test.want)
		if got := evalPrim(test.op, dt, test.args...); got != want {
			t.Errorf("%v.%v(%v) = %#x, want %#x (%v)", test.op, dt, test.args, got, want, test.want)
		}
	}
}

// Contraction would keep the product's low bits.
func TestProductsAreRounded(t *testing.T) {
	p := Prog{Params: []DType{Float32, Float32, Float32}}
	var b Builder
	x, y, z := b.Emit(Param, Float32, 0), b.Emit(Param, Float32, 1), b.Emit(Param, Float32, 2)
	p.Results = []Ref{b.add(b.mul(x, y), z)}
	p.Code = b.Code
	v := float32(1 + 0x1p-12)
	_, bits := valueBits(v)
	_, minus := valueBits(float32(-1 - 0x1p-11))
	if got := EvalProg(&p, []uint64{bits, bits, minus})[0]; got != 0 {
		t.Errorf("x*x - (1+2^-11) = %x, want 0 after rounding x*x", got)
	}
}

func TestLookupOutOfRange(t *testing.T) {
	in := Instr{Op: Lookup, DT: Uint32, Imm: tableTwoOverPi}
	if got := EvalPrim(in, []DType{Int32}, []uint64{0xffffffff}); got != 0 {
		t.Errorf("entry -1 = %#x, want 0", got)
	}
	if TableByID(1<<40) != nil || SubByID(1<<40) != nil {
		t.Error("ids out of range name something")
	}
	if id, ok := TableByName("twooverpi"); !ok || id != tableTwoOverPi {
		t.Errorf("TableByName = %d, %v", id, ok)
	}
	if _, ok := TableByName("none"); ok {
		t.Error("a table that does not exist was found")
	}
}
