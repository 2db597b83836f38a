package millrace

import (
	"math"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// Element lists the Go types that tensors are made from and read into.
type Element interface {
	float32 | float64 | int32 | int64 | uint8 | bool
}

// DType is the type of a tensor's elements. Its String is the Go spelling.
type DType = ir.DType

// The dtypes of tensors. Invalid is that of a tensor whose dtype is unknown
// because it carries an error.
const (
	Invalid DType = ir.Invalid
	Bool    DType = ir.Bool
	Uint8   DType = ir.Uint8
	Int32   DType = ir.Int32
	Int64   DType = ir.Int64
	Float32 DType = ir.Float32
	Float64 DType = ir.Float64
)

// dtypeOf is the dtype that holds a T.
func dtypeOf[T Element]() DType {
	var z T
	switch any(z).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	default:
		return Bool
	}
}

// bytesOf is the memory of a slice. Bool is one byte, 0 or 1, in Go as on a
// CPU device, so every Element may be seen so.
func bytesOf[T Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// scalarBits is the value of s in a dtype, as the bits the engine keeps. A
// float dtype rounds to nearest; every other one must hold s exactly. For the
// unknown dtype of a tensor that carries an error any s will do.
func scalarBits(dt DType, s float64) (bits uint64, ok bool) {
	switch dt {
	case Float32:
		return uint64(math.Float32bits(float32(s))), true
	case Float64:
		return math.Float64bits(s), true
	case Int32:
		return uint64(uint32(int32(s))), integral(s, math.MinInt32, math.MaxInt32)
	case Int64:
		// The largest float64 below 2^63; MaxInt64 itself would round up to 2^63.
		return uint64(int64(s)), integral(s, math.MinInt64, math.MaxInt64-1023)
	case Uint8:
		return uint64(uint8(s)), integral(s, 0, math.MaxUint8)
	case Bool:
		return uint64(uint8(s)), s == 0 || s == 1
	}
	return 0, dt == Invalid
}

// integral reports a whole number in [lo, hi]; no NaN is one.
func integral(s, lo, hi float64) bool {
	return s >= lo && s <= hi && s == math.Trunc(s)
}
