package ir

// DType is the type of a tensor's elements or of a scalar value in a Prog.
type DType uint8

// Uint32 and Uint64 are used by expansions (bit tricks, Philox) and are not
// offered for tensors yet; see [DType.Tensor].
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
	NumDTypes
)

type dtypeInfo struct {
	name   string
	size   int // bytes per element as Go programs hold it
	float  bool
	signed bool
	tensor bool // may be the dtype of a tensor
}

var dtypes = [NumDTypes]dtypeInfo{
	Invalid: {name: "invalid"},
	Bool:    {name: "bool", size: 1, tensor: true},
	Uint8:   {name: "uint8", size: 1, tensor: true},
	Int32:   {name: "int32", size: 4, signed: true, tensor: true},
	Int64:   {name: "int64", size: 8, signed: true, tensor: true},
	Uint32:  {name: "uint32", size: 4},
	Uint64:  {name: "uint64", size: 8},
	Float32: {name: "float32", size: 4, float: true, signed: true, tensor: true},
	Float64: {name: "float64", size: 8, float: true, signed: true, tensor: true},
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

// ParseDType reads what String prints.
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

// The sets the op table speaks of.
var (
	Floats    = SetOf(Float32, Float64)
	Ints      = SetOf(Uint8, Int32, Int64, Uint32, Uint64)
	Numbers   = Floats | Ints
	Bools     = SetOf(Bool)
	AllDTypes = Numbers | Bools
)
