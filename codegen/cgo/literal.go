package cgo

import (
	"fmt"
	"math"
	"strconv"

	"github.com/millrace-go/millrace/ir"
)

// literal writes a value exactly, as a scalar of its value type. Floats are hexadecimal. C has no
// literals for infinities and NaN, so they are made from bits.
func literal(dt ir.DType, bits uint64) string {
	bits = dt.HeldBits(bits)
	switch dt.Held() {
	case ir.Bool:
		if bits != 0 {
			return "-1"
		}
		return "0"
	case ir.Uint32:
		return fmt.Sprintf("%#xu", bits)
	case ir.Int32:
		return fmt.Sprintf("(s_i32)%#xu", bits)
	case ir.Uint64:
		return fmt.Sprintf("(s_u64)%#xull", bits)
	case ir.Int64:
		return fmt.Sprintf("(s_i64)%#xull", bits)
	case ir.Float32:
		f := math.Float32frombits(uint32(bits))
		if special(float64(f)) {
			return fmt.Sprintf("bits_s_f32(%#xu)", bits)
		}
		return strconv.FormatFloat(float64(f), 'x', -1, 32) + "f"
	}
	f := math.Float64frombits(bits)
	if special(f) {
		return fmt.Sprintf("bits_s_f64(%#xull)", bits)
	}
	return strconv.FormatFloat(f, 'x', -1, 64)
}

func special(f float64) bool { return math.IsInf(f, 0) || math.IsNaN(f) }
