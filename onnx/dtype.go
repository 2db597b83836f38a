package onnx

import (
	"fmt"

	"github.com/millrace-go/millrace"
)

// dtypeRow is an element type of ONNX (TensorProto.DataType). Rows with dtype Invalid are types
// that tensors do not have.
type dtypeRow struct {
	name  string
	dtype millrace.DType
	size  int // bytes
}

var dtypes = []dtypeRow{
	0:  {"undefined", millrace.Invalid, 0},
	1:  {"float", millrace.Float32, 4},
	2:  {"uint8", millrace.Uint8, 1},
	3:  {"int8", millrace.Int8, 1},
	4:  {"uint16", millrace.Uint16, 2},
	5:  {"int16", millrace.Int16, 2},
	6:  {"int32", millrace.Int32, 4},
	7:  {"int64", millrace.Int64, 8},
	8:  {"string", millrace.Invalid, 0},
	9:  {"bool", millrace.Bool, 1},
	10: {"float16", millrace.Float16, 2},
	11: {"double", millrace.Float64, 8},
	12: {"uint32", millrace.Uint32, 4},
	13: {"uint64", millrace.Uint64, 8},
	14: {"complex64", millrace.Invalid, 0},
	15: {"complex128", millrace.Invalid, 0},
	16: {"bfloat16", millrace.BFloat16, 2},
	17: {"float8e4m3fn", millrace.Invalid, 0},
	18: {"float8e4m3fnuz", millrace.Invalid, 0},
	19: {"float8e5m2", millrace.Invalid, 0},
	20: {"float8e5m2fnuz", millrace.Invalid, 0},
	21: {"uint4", millrace.Invalid, 0},
	22: {"int4", millrace.Invalid, 0},
	23: {"float4e2m1", millrace.Invalid, 0},
	24: {"float8e8m0", millrace.Invalid, 0},
}

// dtypeOf converts an element type.
func dtypeOf(elem int64) (millrace.DType, error) {
	if elem < 0 || elem >= int64(len(dtypes)) {
		return millrace.Invalid, fmt.Errorf("%w: unknown element type %d", millrace.ErrDType, elem)
	}
	if row := dtypes[elem]; row.dtype == millrace.Invalid {
		return millrace.Invalid, fmt.Errorf("%w: tensors cannot have element type %s", millrace.ErrDType, row.name)
	}
	return dtypes[elem].dtype, nil
}

func sizeOf(dt millrace.DType) int {
	for _, row := range dtypes {
		if row.dtype == dt {
			return row.size
		}
	}
	return 0
}

func isFloat(dt millrace.DType) bool {
	return dt == millrace.Float32 || dt == millrace.Float64 || dt == millrace.Float16 || dt == millrace.BFloat16
}

func isSigned(dt millrace.DType) bool {
	return dt == millrace.Int8 || dt == millrace.Int16 || dt == millrace.Int32 || dt == millrace.Int64
}

// limits of integer dtypes.
func limits(dt millrace.DType) (lo, hi int64) {
	bits := 8 * sizeOf(dt)
	switch {
	case dt == millrace.Bool:
		return 0, 1
	case isSigned(dt):
		return -1 << (bits - 1), 1<<(bits-1) - 1
	case bits == 64:
		return 0, 1<<63 - 1
	}
	return 0, 1<<bits - 1
}
