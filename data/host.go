package data

import "github.com/millrace-go/millrace"

// hostType has the operations on a Go slice of a dtype's elements.
type hostType struct {
	make   func(n int) any
	part   func(s any, from, to int) any
	copy   func(dst, src any, from int) // copies a part of src to dst; unlike part it does not allocate
	upload func(p millrace.Place, s any, shape []int) *millrace.Tensor
	values func(t *millrace.Tensor) (any, error)
}

func hostTypeOf[T millrace.Element]() hostType {
	return hostType{
		make: func(n int) any { return make([]T, n) },
		part: func(s any, from, to int) any { return s.([]T)[from:to:to] },
		copy: func(dst, src any, from int) { copy(dst.([]T), src.([]T)[from:]) },
		upload: func(p millrace.Place, s any, shape []int) *millrace.Tensor {
			return millrace.FromSliceOn(p, s.([]T), shape...)
		},
		values: func(t *millrace.Tensor) (any, error) { return millrace.Values[T](t) },
	}
}

// hostTypes has every dtype of tensors.
var hostTypes = map[millrace.DType]hostType{
	millrace.Bool:     hostTypeOf[bool](),
	millrace.Uint8:    hostTypeOf[uint8](),
	millrace.Uint16:   hostTypeOf[uint16](),
	millrace.Uint32:   hostTypeOf[uint32](),
	millrace.Uint64:   hostTypeOf[uint64](),
	millrace.Int8:     hostTypeOf[int8](),
	millrace.Int16:    hostTypeOf[int16](),
	millrace.Int32:    hostTypeOf[int32](),
	millrace.Int64:    hostTypeOf[int64](),
	millrace.Float16:  hostTypeOf[millrace.F16](),
	millrace.BFloat16: hostTypeOf[millrace.BF16](),
	millrace.Float32:  hostTypeOf[float32](),
	millrace.Float64:  hostTypeOf[float64](),
}

// room allocates memory for one record.
func room(fields []Field) []any {
	dst := make([]any, len(fields))
	for k, f := range fields {
		dst[k] = hostTypes[f.DType].make(f.elems())
	}
	return dst
}
