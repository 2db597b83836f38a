package safetensors

import (
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// dtypes are the format's dtypes in the order in which tensors are written: wide ones first, which
// aligns all of them, and then in the order of the Python package. Rows without a name are no
// dtypes of tensors.
var dtypes = []struct {
	stored string
	bits   int64
	name   string
}{
	{"U64", 64, "uint64"},
	{"I64", 64, "int64"},
	{"F64", 64, "float64"},
	{"C64", 64, ""},
	{"F32", 32, "float32"},
	{"U32", 32, "uint32"},
	{"I32", 32, "int32"},
	{"BF16", 16, "bfloat16"},
	{"F16", 16, "float16"},
	{"U16", 16, "uint16"},
	{"I16", 16, "int16"},
	{"F8_E8M0", 8, ""},
	{"F8_E4M3", 8, ""},
	{"F8_E5M2", 8, ""},
	{"I8", 8, "int8"},
	{"U8", 8, "uint8"},
	{"F6_E3M2", 6, ""},
	{"F6_E2M3", 6, ""},
	{"F4", 4, ""},
	{"BOOL", 8, "bool"},
}

// parseDType converts a stored dtype. dt is Invalid if tensors have no such dtype, and bits is 0 if
// the dtype is unknown.
func parseDType(stored string) (dt millrace.DType, bits int64) {
	for _, row := range dtypes {
		if row.stored != stored {
			continue
		}
		if dt, ok := ir.ParseDType(row.name); ok && dt.Tensor() {
			return dt, row.bits
		}
		return millrace.Invalid, row.bits
	}
	return millrace.Invalid, 0
}

// describe returns the format's name of a dtype and its index in dtypes.
func describe(dt millrace.DType) (stored string, place int, err error) {
	for i, row := range dtypes {
		if row.name == dt.String() {
			return row.stored, i, nil
		}
	}
	return "", 0, fmt.Errorf("%w: the format has no %v", millrace.ErrDType, dt)
}
