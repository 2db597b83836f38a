package progen

import (
	"math"

	"github.com/millrace-go/millrace/ir"
)

// specials are values that arithmetic trips over, per dtype.
var specials = [ir.NumDTypes][]uint64{
	ir.Uint8:  {0, 1, 2, 127, 128, 255},
	ir.Int32:  {0, 1, 2, 0xffffffff, 0x7fffffff, 0x80000000, 31, 32, 33},
	ir.Int64:  {0, 1, 2, math.MaxUint64, math.MaxInt64, 1 << 63, 63, 64, 65, 1 << 53},
	ir.Uint64: {0, 1, math.MaxUint64},
	ir.Float32: {0, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000,
		0x7f800000, 0xff800000, 0x7fc00000, // infinities, NaN
		1, 0x807fffff, 0x00800000, 0x7f7fffff, // denormals, least normal, largest
		0x4b000000, 0x4f000000, 0xcf000000, 0x5f000000, // 2^23, ±2^31, 2^63
		0x42b17218, 0xc2cff1b5}, // about where exp overflows and vanishes
	ir.Float64: {0, 1 << 63, 0x3ff0000000000000, 0xbff0000000000000, 0x3fe0000000000000,
		0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
		1, 0x800fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
		0x4330000000000000, 0x41e0000000000000, 0xc1e0000000000000, 0x43e0000000000000,
		0x40862e42fefa39ef, 0xc087490d0f8f2a4b},
}

// value makes a value of dtype dt: mostly small, sometimes any bits,
// sometimes special.
func value(s source, dt ir.DType) uint64 {
	kind := s.intn(10)
	switch {
	case dt == ir.Bool:
		return s.uint64() & 1
	case kind == 9:
		return pick(s, specials[dt])
	case kind == 8 || dt == ir.Uint64:
		return s.uint64() >> (64 - dt.Bits())
	case dt == ir.Float32:
		return uint64(math.Float32bits(float32(small(s))))
	case dt == ir.Float64:
		return math.Float64bits(small(s))
	}
	n := int64(s.intn(41)) - 20
	return uint64(n) << (64 - dt.Bits()) >> (64 - dt.Bits())
}

// small is a number within ±8, a third of the time a multiple of a half.
func small(s source) float64 {
	if s.intn(3) == 0 {
		return float64(s.intn(33)-16) / 2
	}
	return (float64(s.uint64()>>11)/(1<<53) - 0.5) * 16
}
