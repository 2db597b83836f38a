package millrace

import (
	"bytes"
	"math"
)

// Equal reads two tensors and reports the same dtype, shape and elements, bit
// for bit except that any NaN equals any NaN; -0 is not +0. It is made for
// tests; the op that compares elements is [Tensor.Eq]. The error is the first
// that a or b carries.
func Equal(a, b *Tensor) (bool, error) {
	if err := bothReadable(a, b); err != nil {
		return false, err
	}
	if a.DType() != b.DType() || !a.shape().Equal(b.shape()) {
		return false, nil
	}
	switch a.DType() {
	case Float32:
		return equal(a, b, func(x, y float32) bool {
			return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
		})
	case Float64:
		return equal(a, b, func(x, y float64) bool {
			return math.Float64bits(x) == math.Float64bits(y) || x != x && y != y
		})
	case Int32:
		return equal(a, b, func(x, y int32) bool { return x == y })
	case Int64:
		return equal(a, b, func(x, y int64) bool { return x == y })
	case Uint8:
		return equal(a, b, func(x, y uint8) bool { return x == y })
	default:
		return equal(a, b, func(x, y bool) bool { return x == y })
	}
}

// AllClose reads two tensors and reports |a-b| <= atol + rtol*|b| for all
// elements, computed in float64 (exactly for integers of up to 53 bits).
// Infinities are close to themselves, a NaN to any NaN; bools must be equal.
// Different shapes are ErrShape, different dtypes ErrDType.
func AllClose(a, b *Tensor, rtol, atol float64) (bool, error) {
	if err := bothReadable(a, b); err != nil {
		return false, err
	}
	if a.DType() != b.DType() {
		return false, failure("allclose", dtypeErr("%v and %v", a.DType(), b.DType()), a, b)
	}
	if !a.shape().Equal(b.shape()) {
		return false, failure("allclose", shapeErr("%v and %v", a.shape(), b.shape()), a, b)
	}
	switch a.DType() {
	case Float32:
		return equal(a, b, func(x, y float32) bool { return near(float64(x), float64(y), rtol, atol) })
	case Float64:
		return equal(a, b, func(x, y float64) bool { return near(x, y, rtol, atol) })
	case Int32:
		return equal(a, b, func(x, y int32) bool { return near(float64(x), float64(y), rtol, atol) })
	case Int64:
		return equal(a, b, func(x, y int64) bool { return x == y || near(float64(x), float64(y), rtol, atol) })
	case Uint8:
		return equal(a, b, func(x, y uint8) bool { return near(float64(x), float64(y), rtol, atol) })
	default:
		return equal(a, b, func(x, y bool) bool { return x == y })
	}
}

func near(x, y, rtol, atol float64) bool {
	if x == y || x != x && y != y {
		return true
	}
	return !math.IsInf(y, 0) && math.Abs(x-y) <= float64(rtol*math.Abs(y))+atol
}

func bothReadable(a, b *Tensor) error {
	for _, t := range []*Tensor{a, b} {
		if err := t.Err(); err != nil {
			return err
		}
	}
	return nil
}

// equal reads both and compares element by element. Tensors that were read
// alike are the common case, and comparing bytes finds it fast.
func equal[T Element](a, b *Tensor, same func(x, y T) bool) (bool, error) {
	x, err := Values[T](a)
	if err != nil {
		return false, err
	}
	y, err := Values[T](b)
	if err != nil {
		return false, err
	}
	if bytes.Equal(bytesOf(x), bytesOf(y)) {
		return true, nil
	}
	for i := range x {
		if !same(x[i], y[i]) {
			return false, nil
		}
	}
	return true, nil
}
