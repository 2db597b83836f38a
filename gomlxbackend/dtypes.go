package gomlxbackend

import (
	"reflect"
	"unsafe"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// dtypeRow says how elements of one of GoMLX's dtypes get to Millrace and back.
type dtypeRow struct {
	dt       millrace.DType
	unsigned dtypes.DType // for integers: the unsigned type of that size
	signed   dtypes.DType // and the signed one
	upload   func(p millrace.Place, flat any, dims []int) *millrace.Tensor
	read     func(flat any, t *millrace.Tensor) error
	number   func(flat any) (float64, bool) // the first element, where a float64 is it exactly
}

// dtypeRows has a row for each dtype that a device can have.
var dtypeRows = map[dtypes.DType]dtypeRow{
	dtypes.Bool:     rowOf(millrace.Bool, 0, 0, func(bool) (float64, bool) { return 0, false }),
	dtypes.Int8:     rowOf(millrace.Int8, dtypes.Uint8, dtypes.Int8, whole[int8]),
	dtypes.Int16:    rowOf(millrace.Int16, dtypes.Uint16, dtypes.Int16, whole[int16]),
	dtypes.Int32:    rowOf(millrace.Int32, dtypes.Uint32, dtypes.Int32, whole[int32]),
	dtypes.Int64:    rowOf(millrace.Int64, dtypes.Uint64, dtypes.Int64, whole[int64]),
	dtypes.Uint8:    rowOf(millrace.Uint8, dtypes.Uint8, dtypes.Int8, whole[uint8]),
	dtypes.Uint16:   rowOf(millrace.Uint16, dtypes.Uint16, dtypes.Int16, whole[uint16]),
	dtypes.Uint32:   rowOf(millrace.Uint32, dtypes.Uint32, dtypes.Int32, whole[uint32]),
	dtypes.Uint64:   rowOf(millrace.Uint64, dtypes.Uint64, dtypes.Int64, whole[uint64]),
	dtypes.Float16:  rowOf(millrace.Float16, 0, 0, func(x millrace.F16) (float64, bool) { return real64(float64(x.Float32())) }),
	dtypes.BFloat16: rowOf(millrace.BFloat16, 0, 0, func(x millrace.BF16) (float64, bool) { return real64(float64(x.Float32())) }),
	dtypes.Float32:  rowOf(millrace.Float32, 0, 0, func(x float32) (float64, bool) { return real64(float64(x)) }),
	dtypes.Float64:  rowOf(millrace.Float64, 0, 0, real64),
}

func real64(x float64) (float64, bool) { return x, x == x }

// whole is an integer that a float64 is exactly. Those above 2^53 are compared as integers:
// as float64s the first of them is 2^53.
func whole[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](x T) (float64, bool) {
	const most = 1 << 53
	size := uint64(x)
	if x < 0 {
		size = -size
	}
	return float64(x), size <= most
}

func rowOf[T millrace.Element](dt millrace.DType, unsigned, signed dtypes.DType, number func(T) (float64, bool)) dtypeRow {
	return dtypeRow{
		dt: dt, unsigned: unsigned, signed: signed,
		upload: func(p millrace.Place, flat any, dims []int) *millrace.Tensor {
			return millrace.FromSliceOn(p, elements[T](flat), append([]int{}, dims...)...)
		},
		read:   func(flat any, t *millrace.Tensor) error { return millrace.ReadInto(elements[T](flat), t) },
		number: func(flat any) (float64, bool) { return number(elements[T](flat)[0]) },
	}
}

// elements is a slice of GoMLX's element type seen as one of Millrace's: the two
// are the same bits, but for instance the 16-bit floats are other Go types. The
// caller has checked the dtype.
func elements[T millrace.Element](flat any) []T {
	v := reflect.ValueOf(flat)
	if !v.IsValid() || v.Len() == 0 {
		return nil
	}
	return unsafe.Slice((*T)(v.UnsafePointer()), v.Len())
}

// checkFlat reports what keeps flat from holding the elements of a shape. No
// elements may be a nil.
func checkFlat(flat any, shape shapes.Shape) error {
	if flat == nil && shape.Size() == 0 {
		return nil
	}
	dt, n, err := flatOf(flat)
	if err != nil {
		return err
	}
	if shape.DType.IsPacked() {
		if bytes := shape.DType.SizeForDimensions(shape.Dimensions...); dt != dtypes.Uint8 || n != bytes {
			return errors.Errorf("%d elements of %s for a %s, which is packed into %d bytes", n, dt, shape, bytes)
		}
		return nil
	}
	if dt != shape.DType {
		return errors.Errorf("a slice of %s for a %s", dt, shape)
	}
	if n != shape.Size() {
		return errors.Errorf("%d elements were given for a %s, which has %d", n, shape, shape.Size())
	}
	return nil
}

// flatOf is the dtype and length of a slice of elements.
func flatOf(flat any) (dtypes.DType, int, error) {
	t := reflect.TypeOf(flat)
	if t == nil || t.Kind() != reflect.Slice {
		return 0, 0, errors.Errorf("elements come as a slice, not as a %T", flat)
	}
	dt := dtypes.FromGoType(t.Elem())
	if dt == dtypes.InvalidDType {
		return 0, 0, errors.Errorf("%T holds elements of no dtype", flat)
	}
	return dt, reflect.ValueOf(flat).Len(), nil
}

// setFirst sets the first element of a slice of elements.
func setFirst(flat, value any) { reflect.ValueOf(flat).Index(0).Set(reflect.ValueOf(value)) }
