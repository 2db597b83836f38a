package millrace

import (
	"strconv"

	"github.com/millrace-go/millrace/ir"
)

// F16 is an element of a [Float16] tensor in Go: the bits of an IEEE 754 binary16 number, with 11
// significant bits and a greatest value of 65504. Go has no arithmetic for it; compute in
// tensors, or in float32. Go's == compares the bits: a NaN equals itself, and -0 is not +0.
type F16 uint16

// BF16 is an element of a [BFloat16] tensor in Go: the upper half of a float32, with 8
// significant bits and float32's range. Go's == and arithmetic are as for [F16].
type BF16 uint16

// NewF16 rounds f to the nearest F16, half to even. Numbers of 65520 and above become infinite.
func NewF16(f float32) F16 { return F16(ir.FloatBits(Float16, float64(f))) }

// NewBF16 rounds f to the nearest BF16, half to even.
func NewBF16(f float32) BF16 { return BF16(ir.FloatBits(BFloat16, float64(f))) }

// Float32 returns the number, exactly.
func (f F16) Float32() float32 { return float32(ir.BitsFloat(Float16, uint64(f))) }

// Float32 returns the number, exactly.
func (f BF16) Float32() float32 { return float32(ir.BitsFloat(BFloat16, uint64(f))) }

// String prints the fewest digits that identify the number among its kind.
func (f F16) String() string { return floatScalar(float64(f.Float32()), Float16) }

// String prints the fewest digits that identify the number among its kind.
func (f BF16) String() string { return floatScalar(float64(f.Float32()), BFloat16) }

// shortest is strconv's shortest form in the formats 'e' and 'f', for 16-bit floats too: it
// returns the fewest digits that round back to x.
func shortest(x float64, verb byte, dt DType) string {
	if !dt.Storage() {
		return strconv.FormatFloat(x, verb, -1, dt.Bits())
	}
	want := ir.FloatBits(dt, x)
	for digits := 0; ; digits++ {
		text := strconv.FormatFloat(x, 'e', digits, 64)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || ir.FloatBits(dt, v) != want {
			continue // five digits are enough for any
		}
		if verb == 'f' {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return text
	}
}
