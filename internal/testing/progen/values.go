package progen

import (
	"math"

	"github.com/millrace-go/millrace/ir"
)

// specials are values that are difficult for arithmetic, per dtype.
var specials = [ir.NumDTypes][]uint64{
	ir.Uint8:  {0, 1, 2, 127, 128, 255},
	ir.Int32:  {0, 1, 2, 0xffffffff, 0x7fffffff, 0x80000000, 31, 32, 33},
	ir.Int64:  {0, 1, 2, math.MaxUint64, math.MaxInt64, 1 << 63, 63, 64, 65, 1 << 53},
	ir.Int8:   {0, 1, 2, 0xff, 0x7f, 0x80, 7, 8, 9},
	ir.Int16:  {0, 1, 2, 0xffff, 0x7fff, 0x8000, 15, 16, 17},
	ir.Uint16: {0, 1, 2, 0x7fff, 0x8000, 0xffff, 15, 16},
	ir.Uint32: {0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 31, 32, 1 << 24},
	ir.Uint64: {0, 1, 2, math.MaxInt64, 1 << 63, math.MaxUint64, 63, 64, 1 << 53},
	ir.Float16: {0, 0x8000, 0x3c00, 0xbc00, 0x3800,
		0x7c00, 0xfc00, 0x7e00, // infinities, NaN
		1, 0x83ff, 0x0400, 0x7bff, // denormals, least normal, largest
		0x6400, 0x6800, 0x498c, 0xcc55}, // 2^10, 2^11, about where exp overflows and underflows
	ir.BFloat16: {0, 0x8000, 0x3f80, 0xbf80, 0x3f00,
		0x7f80, 0xff80, 0x7fc0,
		1, 0x807f, 0x0080, 0x7f7f,
		0x4300, 0x4f00, 0xcf00, 0x5f00, 0x42b1, 0xc2cf},
	ir.Float32: {0, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000,
		0x7f800000, 0xff800000, 0x7fc00000, // infinities, NaN
		1, 0x807fffff, 0x00800000, 0x7f7fffff, // denormals, least normal, largest
		0x4b000000, 0x4f000000, 0xcf000000, 0x5f000000, // 2^23, ±2^31, 2^63
		0x42b17218, 0xc2cff1b5}, // about where exp overflows and underflows
	ir.Float64: {0, 1 << 63, 0x3ff0000000000000, 0xbff0000000000000, 0x3fe0000000000000,
		0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
		1, 0x800fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
		0x4330000000000000, 0x41e0000000000000, 0xc1e0000000000000, 0x43e0000000000000,
		0x40862e42fefa39ef, 0xc087490d0f8f2a4b},
}

// value makes a value of dtype dt: mostly small, sometimes any bits, sometimes special.
func value(s source, dt ir.DType) uint64 {
	kind := s.intn(10)
	switch {
	case dt == ir.Bool:
		return s.uint64() & 1
	case kind == 9:
		return pick(s, specials[dt])
	case kind == 8 || kind >= 4 && dt == ir.Uint64: // a seed, more often than not
		return s.uint64() >> (64 - dt.Bits())
	case dt.IsFloat():
		return ir.FloatBits(dt, small(s))
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

// tiny is a number near the least normal one of its dtype, or near its root, whose products are
// tiny; sometimes a value of any kind.
func tiny(s source, dt ir.DType) uint64 {
	if !dt.IsFloat() || s.intn(3) == 0 {
		return value(s, dt)
	}
	digits := dt.SignificantBits() - 1
	bias := 1<<(dt.Bits()-2-digits) - 1
	e := []int{0, 0, 1, 1, 2, digits, bias / 2, bias - 1}[s.intn(8)]
	m := s.uint64() & (1<<digits - 1)
	if s.intn(3) == 0 {
		m = []uint64{0, 1, 1<<digits - 1}[s.intn(3)]
	}
	return uint64(e)<<digits | m | s.uint64()&1<<(dt.Bits()-1)
}
