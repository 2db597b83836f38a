package ir

// DType is the type of a tensor's elements or of a scalar value in a Prog.
type DType uint8

// Five dtypes are for storage only: ops on them compute in [DType.Compute] and convert each result
// back. So tiers that agree on the other dtypes also agree on these, and no printer needs
// arithmetic for them.
const (
	Invalid DType = iota
	Bool
	Uint8
	Int32
	Int64
	Uint32
	Uint64
	Float32
	Float64
	Int8
	Int16
	Uint16
	Float16  // IEEE binary16
	BFloat16 // the upper half of a float32
	NumDTypes
)

type dtypeInfo struct {
	name   string
	size   int // bytes per element in Go programs
	float  bool
	signed bool
	tensor bool  // may be the dtype of a tensor
	in     DType // the dtype in which a storage dtype is computed
}

var dtypes = [NumDTypes]dtypeInfo{
	Invalid:  {name: "invalid"},
	Bool:     {name: "bool", size: 1, tensor: true},
	Uint8:    {name: "uint8", size: 1, tensor: true},
	Int32:    {name: "int32", size: 4, signed: true, tensor: true},
	Int64:    {name: "int64", size: 8, signed: true, tensor: true},
	Uint32:   {name: "uint32", size: 4, tensor: true},
	Uint64:   {name: "uint64", size: 8, tensor: true},
	Float32:  {name: "float32", size: 4, float: true, signed: true, tensor: true},
	Float64:  {name: "float64", size: 8, float: true, signed: true, tensor: true},
	Int8:     {name: "int8", size: 1, signed: true, tensor: true, in: Int32},
	Int16:    {name: "int16", size: 2, signed: true, tensor: true, in: Int32},
	Uint16:   {name: "uint16", size: 2, tensor: true, in: Int32},
	Float16:  {name: "float16", size: 2, float: true, signed: true, tensor: true, in: Float32},
	BFloat16: {name: "bfloat16", size: 2, float: true, signed: true, tensor: true, in: Float32},
}

func (d DType) info() *dtypeInfo {
	if d >= NumDTypes {
		d = Invalid
	}
	return &dtypes[d]
}

// String is the Go spelling, such as "float32".
func (d DType) String() string { return d.info().name }

// Size is the number of bytes of one element in Go memory.
func (d DType) Size() int { return d.info().size }

// Bits is the width in bits.
func (d DType) Bits() int { return d.Size() * 8 }

// IsFloat reports a floating-point type.
func (d DType) IsFloat() bool { return d.info().float }

// IsInt reports an integer type; Bool is not one.
func (d DType) IsInt() bool { return d != Bool && d.Size() > 0 && !d.IsFloat() }

// IsSigned reports a type with negative values.
func (d DType) IsSigned() bool { return d.info().signed }

// Tensor reports whether tensors may have this dtype.
func (d DType) Tensor() bool { return d.info().tensor }

// Compute is the dtype in which ops on d are computed: Float32 for the 16-bit floats, Int32 for
// Int8, Int16 and Uint16, d itself for all others.
func (d DType) Compute() DType {
	if in := d.info().in; in != Invalid {
		return in
	}
	return d
}

// Storage reports a dtype that is computed in another one.
func (d DType) Storage() bool { return d.info().in != Invalid }

// ParseDType reads the text of String.
func ParseDType(s string) (DType, bool) {
	for d := Bool; d < NumDTypes; d++ {
		if dtypes[d].name == s {
			return d, true
		}
	}
	return Invalid, false
}

// DTypeSet is a set of dtypes.
type DTypeSet uint32

// SetOf builds a set.
func SetOf(ds ...DType) DTypeSet {
	var s DTypeSet
	for _, d := range ds {
		s |= 1 << d
	}
	return s
}

// Has reports membership.
func (s DTypeSet) Has(d DType) bool { return s>>d&1 != 0 }

// The sets that the op table uses.
var (
	Floats    = SetOf(Float16, BFloat16, Float32, Float64)
	Ints      = SetOf(Uint8, Uint16, Uint32, Uint64, Int8, Int16, Int32, Int64)
	Numbers   = Floats | Ints
	Bools     = SetOf(Bool)
	AllDTypes = Numbers | Bools
)
