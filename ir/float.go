package ir

import "math"

// floatFormat describes the bits of a float dtype.
type floatFormat struct {
	mantissa int    // bits after the leading one
	bias     int    // of the exponent
	inf      uint64 // bits of infinity; larger bits, without the sign, are NaN
	quietNaN uint64 // the NaN that literals print as nan
	one      uint64 // bits of 1
}

var floatFormats = [NumDTypes]floatFormat{
	Float16:  {mantissa: 10, bias: 15, inf: 0x7c00, quietNaN: 0x7e00, one: 0x3c00},
	BFloat16: {mantissa: 7, bias: 127, inf: 0x7f80, quietNaN: 0x7fc0, one: 0x3f80},
	Float32:  {mantissa: 23, bias: 127, inf: 0x7f800000, quietNaN: 0x7fc00000, one: 0x3f800000},
	Float64:  {mantissa: 52, bias: 1023, inf: 0x7ff0000000000000, quietNaN: 0x7ff8000000000000, one: 0x3ff0000000000000},
}

// OneBits is the number 1 in a number dtype.
func OneBits(dt DType) uint64 {
	if dt.IsFloat() {
		return floatFormats[dt].one
	}
	return 1
}

// BitsFloat is the value of a float dtype's bits, which a float64 holds exactly.
func BitsFloat(dt DType, bits uint64) float64 {
	switch dt {
	case Float32:
		return float64(math.Float32frombits(uint32(bits)))
	case Float64:
		return math.Float64frombits(bits)
	}
	f := &floatFormats[dt]
	sign := 1.0
	if bits>>15&1 != 0 {
		sign = -1
	}
	fraction := bits & (1<<f.mantissa - 1)
	exp := int(bits>>f.mantissa) & (2*f.bias + 1)
	switch {
	case exp == 2*f.bias+1 && fraction != 0:
		return math.NaN()
	case exp == 2*f.bias+1:
		return math.Inf(int(sign))
	case exp == 0:
		exp = 1
	default:
		fraction |= 1 << f.mantissa
	}
	return math.Copysign(math.Ldexp(float64(fraction), exp-f.bias-f.mantissa), sign)
}

// FloatBits rounds v to a float dtype, half to even, once.
func FloatBits(dt DType, v float64) uint64 {
	switch dt {
	case Float32:
		return uint64(math.Float32bits(float32(v)))
	case Float64:
		return math.Float64bits(v)
	}
	f := &floatFormats[dt]
	var sign uint64
	if math.Signbit(v) {
		sign, v = 1<<15, -v
	}
	switch {
	case v != v:
		return f.quietNaN
	case math.IsInf(v, 0):
		return sign | f.inf
	case v == 0:
		return sign
	}
	// v in units of the last place of a float as large as v: an integer after rounding. Its carry
	// into the exponent is the next power of two.
	_, exp := math.Frexp(v)
	exp = max(exp-1, 1-f.bias)
	units := uint64(math.RoundToEven(math.Ldexp(v, f.mantissa-exp)))
	if exp > f.bias {
		return sign | f.inf
	}
	return sign | min(uint64(exp+f.bias-1)<<f.mantissa+units, f.inf)
}
