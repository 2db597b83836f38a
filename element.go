package millrace

import (
	"strconv"

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

// elementType has what depends on the Go type of a dtype's elements.
type elementType struct {
	text func(t *Tensor, l layout) (string, error) // prints a tensor
	json jsonCodec
}

// elementTypes has a row for each dtype.
var elementTypes = [ir.NumDTypes]elementType{
	Bool: {boolText, codecOf(strconv.AppendBool, func(s string) (bool, error) { return s == "true", oneOf(s, "true", "false") })},

	Uint8: {integers[uint8], jsonUnsigned[uint8]()}, Uint16: {integers[uint16], jsonUnsigned[uint16]()},
	Uint32: {integers[uint32], jsonUnsigned[uint32]()}, Uint64: {integers[uint64], jsonUnsigned[uint64]()},
	Int8: {integers[int8], jsonSigned[int8]()}, Int16: {integers[int16], jsonSigned[int16]()},
	Int32: {integers[int32], jsonSigned[int32]()}, Int64: {integers[int64], jsonSigned[int64]()},

	Float16: storedFloats(NewF16), BFloat16: storedFloats(NewBF16),
	Float32: {floats[float32], jsonFloat(32, float64Of[float32], func(v float64) float32 { return float32(v) })},
	Float64: {floats[float64], jsonFloat(64, float64Of[float64], float64Of[float64])},
}

// storedFloat lists the Go types of floats that are only stored.
type storedFloat interface {
	F16 | BF16
	Float32() float32
	String() string
}

func storedFloats[T storedFloat](round func(float32) T) elementType {
	return elementType{halves[T], jsonFloat(32, func(v T) float64 { return float64(v.Float32()) }, func(v float64) T { return round(float32(v)) })}
}

func float64Of[T float32 | float64](v T) float64 { return float64(v) }

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
