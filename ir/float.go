package ir

import "math"

// floatFormat describes the bits of a float dtype: a sign, an exponent, and a mantissa. The
// largest exponent is that of infinity and NaN.
type floatFormat struct {
	mantissa int // bits after the leading one
	bias     int // of the exponent
}

// inf is the bits of infinity; larger bits, without the sign, are NaN.
func (f floatFormat) inf() uint64 { return uint64(2*f.bias+1) << f.mantissa }

// quietNaN is the NaN that literals print as nan.
func (f floatFormat) quietNaN() uint64 { return f.inf() | 1<<(f.mantissa-1) }

func (f floatFormat) one() uint64 { return uint64(f.bias) << f.mantissa }

// leastExponent is the exponent of the least number, a denormal.
func (f floatFormat) leastExponent() int { return 1 - f.bias - f.mantissa }

// biasToFloat32 turns the exponent of f into that of Float32 when it is added to float32 bits.
func (f floatFormat) biasToFloat32() int64 {
	wide := Float32.format()
	return int64(wide.bias-f.bias) << wide.mantissa
}

// format is a float dtype's format.
func (d DType) format() floatFormat { return d.info().floatFormat }

// signMask is a float's sign bit.
func (d DType) signMask() uint64 { return 1 << (d.Bits() - 1) }

// wide reports a storage float with the exponents of the dtype that computes it: its denormals are
// those of that dtype.
func (d DType) wide() bool {
	return d.Storage() && d.IsFloat() && d.format().bias == d.Compute().format().bias
}

// OneBits is the number 1 in a number dtype.
func OneBits(dt DType) uint64 {
	if dt.IsFloat() {
		return dt.format().one()
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
	f := dt.format()
	sign := 1.0
	if bits&dt.signMask() != 0 {
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
	f := dt.format()
	var sign uint64
	if math.Signbit(v) {
		sign, v = dt.signMask(), -v
	}
	switch {
	case v != v:
		return f.quietNaN()
	case math.IsInf(v, 0):
		return sign | f.inf()
	case v == 0:
		return sign
	}
	// v in units of the last place of a float as large as v: an integer after rounding. Its carry
	// into the exponent is the next power of two.
	_, exp := math.Frexp(v)
	exp = max(exp-1, 1-f.bias)
	units := uint64(math.RoundToEven(math.Ldexp(v, f.mantissa-exp)))
	if exp > f.bias {
		return sign | f.inf()
	}
	return sign | min(uint64(exp+f.bias-1)<<f.mantissa+units, f.inf())
}
