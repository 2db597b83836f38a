package wgsl

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// scalarTypes spells the dtypes that WGSL values can have. Small integers are
// held in words, extended by their sign, 16-bit floats as their bits; 64-bit
// integers are pairs of words (see wide.go).
var scalarTypes = [ir.NumDTypes]string{
	ir.Bool:    "bool",
	ir.Uint8:   "u32",
	ir.Int32:   "i32",
	ir.Uint32:  "u32",
	ir.Float32: "f32",
	ir.Int64:   "wide",
	ir.Uint64:  "wide",

	ir.Int8: "i32", ir.Int16: "i32", ir.Uint16: "u32", ir.Float16: "u32", ir.BFloat16: "u32",
}

// memTypes spells what memory holds for the dtypes that tensors can have.
var memTypes = [ir.NumDTypes]string{
	ir.Invalid: "u32", // words, reinterpreted at each access
	ir.Bool:    "u32",
	ir.Uint8:   "u32",
	ir.Int32:   "i32",
	ir.Uint32:  "u32",
	ir.Float32: "f32",

	ir.Int8: "i32", ir.Int16: "i32", ir.Uint16: "u32", ir.Float16: "u32", ir.BFloat16: "u32",
}

// DTypes is what tensors of a WGSL device may hold: all of up to 32 bits.
var DTypes = ir.SetOf(ir.Bool, ir.Uint8, ir.Uint16, ir.Uint32, ir.Int8, ir.Int16, ir.Int32, ir.Float16, ir.BFloat16, ir.Float32)

// ElemSize is the bytes of one element in device memory, whatever the dtype: a
// word, since two invocations cannot write parts of one without atomics.
const ElemSize = 4

func isWide(dt ir.DType) bool { return dt == ir.Int64 || dt == ir.Uint64 }

// vec spells a scalar type over lanes.
func vec(scalar string, lanes int) string {
	if lanes == 1 || scalar == "wide" {
		return scalar
	}
	return fmt.Sprintf("vec%d<%s>", lanes, scalar)
}

// splat spells a scalar expression over lanes.
func splat(expr, scalar string, lanes int) string {
	if lanes == 1 {
		return expr
	}
	return fmt.Sprintf("%s(%s)", vec(scalar, lanes), expr)
}

// literal spells a constant given by its bits, for every lane.
func literal(dt ir.DType, bits uint64, lanes int) string {
	if isWide(dt) {
		return fmt.Sprintf("wide(%s, %s)",
			splat(word(uint32(bits)), "u32", lanes), splat(word(uint32(bits>>32)), "u32", lanes))
	}
	return splat(scalarLiteral(dt, bits), scalarTypes[dt], lanes)
}

func scalarLiteral(dt ir.DType, bits uint64) string {
	switch dt {
	case ir.Bool:
		return strconv.FormatBool(bits != 0)
	case ir.Float32:
		return floatLiteral(uint32(bits))
	case ir.Int8, ir.Int16, ir.Int32:
		switch v := int32(Word(dt, bits)); {
		case v == math.MinInt32: // its magnitude is no i32 literal
			return "bitcast<i32>(0x80000000u)"
		case v < 0:
			return fmt.Sprintf("(%d)", v)
		default:
			return strconv.Itoa(int(v))
		}
	}
	return word(uint32(bits))
}

// Word is an element as device memory and run-time words hold it: extended to
// 32 bits by its sign.
func Word(dt ir.DType, bits uint64) uint32 {
	if dt.IsInt() && dt.IsSigned() && dt.Bits() < 32 {
		n := 32 - dt.Bits()
		return uint32(int32(bits<<n) >> n)
	}
	return uint32(bits)
}

func word(w uint32) string {
	if w > 0xffff {
		return fmt.Sprintf("0x%xu", w)
	}
	return fmt.Sprintf("%du", w)
}

// floatLiteral is the shortest decimal that reads back as the same bits.
// Infinities and NaN have none: they are made of their bits.
func floatLiteral(bits uint32) string {
	f := float64(math.Float32frombits(bits))
	if math.IsInf(f, 0) || f != f {
		return fmt.Sprintf("bitcast<f32>(0x%xu)", bits)
	}
	s := strconv.FormatFloat(math.Abs(f), 'g', -1, 32)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	if bits>>31 != 0 {
		return "(-" + s + ")"
	}
	return s
}
