package fold

import (
	"math"

	"github.com/millrace-go/millrace/ir"
)

// storedFloats fills in the rows and scatters of the floats that are only stored.
func storedFloats(f *Table, j32 func(ir.Op) joins[float32]) {
	storedFloat(f, ir.Float16, widenFloat16, narrowFloat16, j32)
	storedFloat(f, ir.BFloat16, widenBFloat16, narrowBFloat16, j32)
}

func storedFloat[E stored](f *Table, dt ir.DType, widen func(E) float32, narrow func(float32) E, j32 func(ir.Op) joins[float32]) {
	rowsOf(f, dt, widen, narrow)
	scatterBy(f, dt, widen, narrow, j32)
}

// Conversions of 16-bit floats, with the bits of ir.BitsFloat and ir.FloatBits: exactly to
// float32, and back with a single rounding to nearest even.

const (
	halfInfinity = 0x7c00
	halfNaN      = 0x7e00
	bfloatNaN    = 0x7fc0
	floatSign    = 1 << 31
	// halfBias is added to a float16's exponent to get the float32's. halfNormal is the least
	// normal float16 as float32 bits.
	halfBias   = 112 << 23
	halfNormal = 113 << 23
)

func widenBFloat16(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }

func narrowBFloat16(f float32) uint16 {
	if f != f {
		return bfloatNaN
	}
	b := math.Float32bits(f)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func widenFloat16(x uint16) float32 {
	sign, b := uint32(x&0x8000)<<16, uint32(x&0x7fff)<<13
	switch {
	case x&halfInfinity == halfInfinity:
		return math.Float32frombits(sign | b | 0xff<<23)
	case x&halfInfinity == 0: // a denormal: the subtraction normalizes its digits
		f := math.Float32frombits(b+halfNormal) - math.Float32frombits(halfNormal)
		return math.Float32frombits(sign | math.Float32bits(f))
	}
	return math.Float32frombits(sign | (b + halfBias))
}

func narrowFloat16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	switch b &^= floatSign; {
	case b > 0xff<<23:
		return sign | halfNaN
	case b >= halfBias+halfInfinity<<13: // 2^16
		return sign | halfInfinity
	case b < halfNormal: // the last place of a sum with 1/2 is the least float16
		const half = 126 << 23
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+math.Float32frombits(half))-half)
	}
	return sign | uint16((b-halfBias+0xfff+b>>13&1)>>13)
}
