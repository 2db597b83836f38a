package ir

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

var intTypes = []DType{Uint8, Uint16, Uint32, Uint64, Int8, Int16, Int32, Int64}

// interesting are the bits of a type's ends and of small numbers.
func interesting(dt DType) []uint64 {
	v := []int64{0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 100, 255}
	if dt.IsSigned() {
		v = append(v, -1, -2, -3, -7, -32, -64)
	}
	var out []uint64
	for _, x := range v {
		out = append(out, uint64(x)&widthMask(dt))
	}
	return append(out, uint64(minInt(dt))&widthMask(dt), uint64(minInt(dt)+1)&widthMask(dt), maxInt(dt), maxInt(dt)-1)
}

// toBig is an integer value; wrap gives its bits in dt.
func toBig(dt DType, bits uint64) *big.Int {
	if dt.IsSigned() {
		return big.NewInt(signExtend(dt, bits))
	}
	return new(big.Int).SetUint64(bits)
}

func wrap(dt DType, v *big.Int) uint64 {
	m := new(big.Int).SetUint64(widthMask(dt))
	return m.And(v, m).Uint64() // two's complement for negative v
}

// The rules of docs/numerics.md in unbounded integers.
func TestIntegerRules(t *testing.T) {
	zero := big.NewInt(0)
	quotient := func(dt DType, x, y *big.Int) *big.Int {
		if y.Sign() == 0 {
			return zero
		}
		return new(big.Int).Quo(x, y)
	}
	floored := func(dt DType, x, y *big.Int) *big.Int {
		if y.Sign() == 0 {
			return zero
		}
		q, m := new(big.Int).QuoRem(x, y, new(big.Int))
		if m.Sign() != 0 && m.Sign() != y.Sign() {
			q.Sub(q, big.NewInt(1))
		}
		return q
	}
	rules := map[Op]func(dt DType, x, y *big.Int) *big.Int{
		Div:      quotient,
		FloorDiv: floored,
		Rem: func(dt DType, x, y *big.Int) *big.Int {
			if y.Sign() == 0 {
				return zero
			}
			q := floored(dt, x, y)
			return q.Sub(x, q.Mul(q, y))
		},
		Pow: func(dt DType, x, y *big.Int) *big.Int {
			if y.Sign() >= 0 {
				mod := new(big.Int).Lsh(big.NewInt(1), uint(dt.Bits()))
				return mod.Exp(x, y, mod)
			}
			switch {
			case !x.IsInt64() || x.Int64() != 1 && x.Int64() != -1:
				return zero
			case y.Bit(0) == 0:
				return big.NewInt(1)
			}
			return x
		},
		Shl: func(dt DType, x, y *big.Int) *big.Int {
			if y.Sign() < 0 || y.Cmp(big.NewInt(int64(dt.Bits()))) >= 0 {
				return zero
			}
			return new(big.Int).Lsh(x, uint(y.Int64()))
		},
		Shr: func(dt DType, x, y *big.Int) *big.Int {
			n := uint(dt.Bits())
			if y.Sign() >= 0 && y.Cmp(big.NewInt(int64(n))) < 0 {
				n = uint(y.Int64())
			}
			return new(big.Int).Rsh(x, n)
		},
		MulHigh: func(dt DType, x, y *big.Int) *big.Int {
			return new(big.Int).Rsh(new(big.Int).Mul(x, y), uint(dt.Bits()))
		},
		Maximum: func(dt DType, x, y *big.Int) *big.Int {
			if x.Cmp(y) > 0 {
				return x
			}
			return y
		},
		Minimum: func(dt DType, x, y *big.Int) *big.Int {
			if x.Cmp(y) < 0 {
				return x
			}
			return y
		},
	}
	r := rand.New(rand.NewPCG(7, 8))
	for op, rule := range rules {
		for _, dt := range intTypes {
			if !op.Info().In.Has(dt) {
				continue
			}
			values := interesting(dt)
			for range 30 { // of all sizes
				values = append(values, (r.Uint64()&widthMask(dt))>>r.IntN(dt.Bits()))
			}
			for _, x := range values {
				for _, y := range values {
					want := wrap(dt, rule(dt, toBig(dt, x), toBig(dt, y)))
					if got := EvalOp(op, dt, []DType{dt, dt}, []uint64{x, y}); got != want {
						t.Errorf("%v.%v(%v, %v) = %v, want %v", op, dt, toBig(dt, x), toBig(dt, y), toBig(dt, got), toBig(dt, want))
					}
				}
			}
		}
	}
}

func TestIntegerUnary(t *testing.T) {
	for _, dt := range intTypes {
		for _, x := range interesting(dt) {
			v := toBig(dt, x)
			want := map[Op]*big.Int{
				Sign: big.NewInt(int64(v.Sign())), Square: new(big.Int).Mul(v, v),
				Neg: new(big.Int).Neg(v), Abs: new(big.Int).Abs(v), Relu: v,
			}
			if v.Sign() < 0 {
				want[Relu] = big.NewInt(0)
			}
			for op, w := range want {
				if got := EvalOp(op, dt, []DType{dt}, []uint64{x}); got != wrap(dt, w) {
					t.Errorf("%v.%v(%v) = %v, want %v", op, dt, v, toBig(dt, got), w)
				}
			}
		}
	}
}

// Clamp is Minimum(Maximum(x, lo), hi), so hi wins if the limits cross.
func TestClamp(t *testing.T) {
	for _, test := range [][4]float32{
		{5, 0, 3, 3}, {-5, 0, 3, 0}, {1, 0, 3, 1}, {1, 3, 0, 0}, {float32(nan), 0, 1, float32(nan)},
		{float32(neg0), 0, 1, 0}, {1, float32(nan), 2, float32(nan)},
	} {
		if got := eval32(Clamp, test[0], test[1], test[2]); !sameFloat(float64(got), float64(test[3])) {
			t.Errorf("clamp(%v) = %v", test, got)
		}
	}
}

func TestCast(t *testing.T) {
	tests := []struct{ x, want any }{
		{float32(3.99), int32(3)}, {float32(-3.99), int32(-3)}, {float32(3e9), int32(math.MaxInt32)},
		{float32(-3e9), int32(math.MinInt32)}, {float32(nan), int32(0)}, {float32(inf), int32(math.MaxInt32)},
		{float32(-inf), int32(math.MinInt32)}, {float32(0x1.fffffep30), int32(0x7fffff80)}, {float32(0x1p31), int32(math.MaxInt32)},
		{float32(-0x1p31), int32(math.MinInt32)}, {float64(2147483647), int32(math.MaxInt32)}, {float64(2147483647.5), int32(math.MaxInt32)},
		{float32(1e30), int64(math.MaxInt64)}, {float32(-1e30), int64(math.MinInt64)}, {float64(0x1p62), int64(1 << 62)},
		{float64(nan), int64(0)}, {float32(-1), uint8(0)}, {float32(254.9), uint8(254)}, {float32(255.9), uint8(255)},
		{float32(1e9), uint8(255)}, {float32(nan), uint8(0)}, {float32(-0.9), uint8(0)}, {float32(5e9), uint32(math.MaxUint32)},
		{float64(3e9), uint32(3000000000)}, {float64(1e20), uint64(math.MaxUint64)}, {float64(0x1p63), uint64(1 << 63)}, {float64(-5), uint64(0)},
		{int64(1 << 40), int32(math.MaxInt32)}, {int64(-1 << 40), int32(math.MinInt32)}, {int64(-7), int32(-7)},
		{int32(-1), uint8(0)}, {int32(256), uint8(255)}, {int32(200), uint8(200)}, {int64(-1), uint64(0)},
		{uint64(math.MaxUint64), int64(math.MaxInt64)}, {uint32(math.MaxUint32), int32(math.MaxInt32)}, {uint8(255), int32(255)},
		{int32(-1), int64(-1)}, {int32(-1), uint32(0)}, {int64(1<<53 + 1), float64(1 << 53)}, {int32(-3), float32(-3)}, {uint8(7), float64(7)},
		{float64(1e300), float32(inf)}, {float64(0x1p-149), float32(0x1p-149)}, {float32(0.1), float64(float32(0.1))},
		{true, float32(1)}, {false, int64(0)}, {true, uint8(1)}, {float32(0), false}, {float32(neg0), false}, {float32(nan), true},
		{float64(0x1p-1074), true}, {int32(-4), true}, {uint8(0), false}, {true, true}, {int64(5), int64(5)},
	}
	for _, test := range tests {
		from, bits := valueBits(test.x)
		to, want := valueBits(test.want)
		if got := EvalOp(Cast, to, []DType{from}, []uint64{bits}); got != want {
			t.Errorf("cast %v(%v) to %v = %#x, want %#x (%v)", from, test.x, to, got, want, test.want)
		}
	}
}
