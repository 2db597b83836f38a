package millrace

import (
	"math"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// Element lists the Go types that tensors are made from and read into.
type Element interface {
	float32 | float64 | F16 | BF16 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | bool
}

// DType is the type of a tensor's elements. Its String is the Go spelling.
type DType = ir.DType

// The dtypes of tensors. Invalid is that of a tensor whose dtype is unknown
// because it carries an error.
const (
	Invalid  DType = ir.Invalid
	Bool     DType = ir.Bool
	Uint8    DType = ir.Uint8
	Uint16   DType = ir.Uint16
	Uint32   DType = ir.Uint32
	Uint64   DType = ir.Uint64
	Int8     DType = ir.Int8
	Int16    DType = ir.Int16
	Int32    DType = ir.Int32
	Int64    DType = ir.Int64
	Float16  DType = ir.Float16
	BFloat16 DType = ir.BFloat16
	Float32  DType = ir.Float32
	Float64  DType = ir.Float64
)

// dtypeOf returns the dtype that holds a T.
func dtypeOf[T Element]() DType {
	var z T
	switch any(z).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case F16:
		return Float16
	case BF16:
		return BFloat16
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	default:
		return Bool
	}
}

// bytesOf returns the memory of a slice. A bool is one byte, 0 or 1, in Go as on a CPU device, so
// this works for every Element.
func bytesOf[T Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// scalarBits returns the value of s in a dtype, as the bits that the engine stores. A float dtype
// rounds to nearest; every other dtype must hold s exactly. For the unknown dtype of a tensor
// that carries an error, any s is accepted.
func scalarBits(dt DType, s float64) (bits uint64, ok bool) {
	switch {
	case dt.IsFloat():
		return ir.FloatBits(dt, s), true
	case dt == Bool:
		return uint64(uint8(s)), s == 0 || s == 1
	case !dt.IsInt():
		return 0, dt == Invalid
	}
	// The first number above the range is a power of two, so float64 holds it exactly. It may not
	// hold the greatest number of the range.
	lo, above := 0.0, math.Ldexp(1, dt.Bits())
	if dt.IsSigned() {
		above /= 2
		lo = -above
	}
	switch {
	case !(s >= lo && s < above) || s != math.Trunc(s): // NaN is in no range
		return 0, false
	case s < 0:
		return uint64(int64(s)) << (64 - dt.Bits()) >> (64 - dt.Bits()), true
	}
	return uint64(s), true
}
