package ir

import "encoding/binary"

// DType is the type of a tensor's elements or of a scalar value in a Prog.
type DType uint8

// Some dtypes are for storage only: ops on them compute in [DType.Compute] and convert each result
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

// A dtypeRow has the traits of a dtype. All other traits follow from these, so a new dtype is a new
// row; the code that handles dtypes asks for traits and names no storage dtype. A row has no Go type
// of its elements; packages millrace, data and fold have tables of these.
type dtypeRow struct {
	name   string // the Go spelling, also in texts
	short  string // in names of C, shaders and generated functions
	size   int    // bytes per element in Go programs
	float  bool
	signed bool
	tensor bool  // may be the dtype of a tensor
	in     DType // the dtype in which a storage dtype is computed
	floatFormat
}

var dtypes = [NumDTypes]dtypeRow{
	Invalid:  {name: "invalid"},
	Bool:     {name: "bool", short: "b", size: 1, tensor: true},
	Uint8:    {name: "uint8", short: "u8", size: 1, tensor: true},
	Int32:    {name: "int32", short: "i32", size: 4, signed: true, tensor: true},
	Int64:    {name: "int64", short: "i64", size: 8, signed: true, tensor: true},
	Uint32:   {name: "uint32", short: "u32", size: 4, tensor: true},
	Uint64:   {name: "uint64", short: "u64", size: 8, tensor: true},
	Float32:  {name: "float32", short: "f32", size: 4, float: true, signed: true, tensor: true, floatFormat: floatFormat{mantissa: 23, bias: 127}},
	Float64:  {name: "float64", short: "f64", size: 8, float: true, signed: true, tensor: true, floatFormat: floatFormat{mantissa: 52, bias: 1023}},
	Int8:     {name: "int8", short: "i8", size: 1, signed: true, tensor: true, in: Int32},
	Int16:    {name: "int16", short: "i16", size: 2, signed: true, tensor: true, in: Int32},
	Uint16:   {name: "uint16", short: "u16", size: 2, tensor: true, in: Int32},
	Float16:  {name: "float16", short: "f16", size: 2, float: true, signed: true, tensor: true, in: Float32, floatFormat: floatFormat{mantissa: 10, bias: 15}},
	BFloat16: {name: "bfloat16", short: "bf16", size: 2, float: true, signed: true, tensor: true, in: Float32, floatFormat: floatFormat{mantissa: 7, bias: 127}},
}

func (d DType) info() *dtypeRow {
	if d >= NumDTypes {
		d = Invalid
	}
	return &dtypes[d]
}

// String is the Go spelling, such as "float32".
func (d DType) String() string { return d.info().name }

// Short is an abbreviation for names of C, shaders and generated functions, such as "f32".
func (d DType) Short() string { return d.info().short }

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

// Compute is the dtype in which ops on d are computed: Float32 or Int32 for a storage dtype, d itself
// for all others.
func (d DType) Compute() DType {
	if in := d.info().in; in != Invalid {
		return in
	}
	return d
}

// Storage reports a dtype that is computed in another one.
func (d DType) Storage() bool { return d.info().in != Invalid }

// Held is the dtype as which machine code, C and shaders hold a value: Int32 or Uint32 for numbers
// of 8 and 16 bits, of which floats are held as their bits, and d itself for all others.
func (d DType) Held() DType {
	switch {
	case !d.Storage() && d != Uint8:
		return d
	case d.IsInt() && d.IsSigned():
		return Int32
	}
	return Uint32
}

// HeldBits converts an element's bits to those of its value in Held: it extends the sign.
func (d DType) HeldBits(bits uint64) uint64 {
	if n := 32 - d.Bits(); d.Held() == Int32 {
		return uint64(uint32(int32(bits<<n) >> n))
	}
	return bits
}

// Unsigned is the unsigned integer dtype of d's width, which has the bits of d's elements.
func (d DType) Unsigned() DType { return intsOfWidth[0][d.Size()] }

// Signed is the signed integer dtype of d's width.
func (d DType) Signed() DType { return intsOfWidth[1][d.Size()] }

// IntOf is the integer dtype of a number of bytes.
func IntOf(size int, signed bool) DType { return intsOfWidth[boolBit(signed)][size] }

// intsOfWidth has the integer dtypes by sign and size.
var intsOfWidth = func() (t [2][9]DType) {
	for d := range NumDTypes {
		if d.IsInt() {
			t[boolBit(d.IsSigned())][d.Size()] = d
		}
	}
	return t
}()

// SignificantBits is the precision of a float dtype, with the leading one.
func (d DType) SignificantBits() int { return d.info().mantissa + 1 }

// LoadBits reads the bits of the element of dtype d at b's start, little-endian as everywhere in memory.
func LoadBits(d DType, b []byte) uint64 {
	switch d.Size() {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

// StoreBits writes the bits of an element to b's start.
func StoreBits(d DType, b []byte, bits uint64) {
	switch d.Size() {
	case 1:
		b[0] = byte(bits)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(bits))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(bits))
	default:
		binary.LittleEndian.PutUint64(b, bits)
	}
}

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

// SetWhere is the set of all dtypes that have a trait.
func SetWhere(has func(DType) bool) DTypeSet {
	var s DTypeSet
	for d := range NumDTypes {
		if has(d) {
			s |= 1 << d
		}
	}
	return s
}

// Has reports membership.
func (s DTypeSet) Has(d DType) bool { return s>>d&1 != 0 }

// The sets that the op table uses.
var (
	Floats    = SetWhere(DType.IsFloat)
	Ints      = SetWhere(DType.IsInt)
	Numbers   = Floats | Ints
	Bools     = SetOf(Bool)
	AllDTypes = Numbers | Bools
)
