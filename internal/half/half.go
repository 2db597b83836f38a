package half

import "math"

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

// WidenBFloat16 converts the bits of a bfloat16 exactly.
func WidenBFloat16(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }

// NarrowBFloat16 rounds to the bits of a bfloat16.
func NarrowBFloat16(f float32) uint16 {
	if f != f {
		return bfloatNaN
	}
	b := math.Float32bits(f)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// WidenFloat16 converts the bits of a float16 exactly.
func WidenFloat16(x uint16) float32 {
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

// NarrowFloat16 rounds to the bits of a float16.
func NarrowFloat16(f float32) uint16 {
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
