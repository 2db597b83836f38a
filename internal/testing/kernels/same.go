package kernels

import "github.com/millrace-go/millrace/ir"

// SameBits compares elements. Of float32 and float64 any NaN equals any NaN; the bits of 16-bit
// floats are those that storing made, so all of them count.
func SameBits(dt ir.DType, a, b uint64) bool {
	return a == b || dt.Bits() >= 32 && ir.SameValue(dt, a, b)
}
