package millrace

import (
	"bytes"
	"math"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Equal reads two tensors and reports the same dtype, shape and elements, bit
// for bit except that any NaN equals any NaN; -0 is not +0. It is made for
// tests; the op that compares elements is [Tensor.Eq]. The error is the first
// that a or b carries.
func Equal(a, b *Tensor) (bool, error) {
	a, b = still(a), still(b)
	defer done(a, b)
	if err := bothReadable(a, b); err != nil {
		return false, err
	}
	if a.DType() != b.DType() || !a.shape().Equal(b.shape()) {
		return false, nil
	}
	return everywhere(a, b, func(uint64, uint64) bool { return false })
}

// AllClose reads two tensors and reports |a-b| <= atol + rtol*|b| for all
// elements, computed in float64 (exactly for integers of up to 53 bits).
// Infinities are close to themselves, a NaN to any NaN; bools must be equal.
// Different shapes are ErrShape, different dtypes ErrDType.
func AllClose(a, b *Tensor, rtol, atol float64) (bool, error) {
	a, b = still(a), still(b)
	defer done(a, b)
	if err := bothReadable(a, b); err != nil {
		return false, err
	}
	if a.DType() != b.DType() {
		return false, failure("allclose", dtypeErr("%v and %v", a.DType(), b.DType()), a, b)
	}
	if !a.shape().Equal(b.shape()) {
		return false, failure("allclose", shapeErr("%v and %v", a.shape(), b.shape()), a, b)
	}
	dt := a.DType()
	return everywhere(a, b, func(x, y uint64) bool {
		return dt != Bool && near(number(dt, x), number(dt, y), rtol, atol)
	})
}

// number is an element as a float64, rounded where that does not hold it.
func number(dt DType, bits uint64) float64 {
	switch {
	case dt.IsFloat():
		return ir.BitsFloat(dt, bits)
	case dt.IsSigned():
		n := 64 - dt.Bits()
		return float64(int64(bits<<n) >> n)
	}
	return float64(bits)
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

// everywhere reads both and compares element by element: those that are the
// same, and those that are alike. Tensors that were read alike are the common
// case, and comparing bytes finds it fast.
func everywhere(a, b *Tensor, alike func(x, y uint64) bool) (bool, error) {
	x, err := dense(a)
	if err != nil {
		return false, err
	}
	y, err := dense(b)
	if err != nil {
		return false, err
	}
	if bytes.Equal(x.Data, y.Data) {
		return true, nil
	}
	for i := range x.Shape.Elems() {
		if v, w := x.At(i), y.At(i); !ir.SameValue(x.DT, v, w) && !alike(v, w) {
			return false, nil
		}
	}
	return true, nil
}

// dense reads a tensor as memory.
func dense(t *Tensor) (ir.Dense, error) {
	n := t.Len()
	if err := checkHost(t, t.DType(), n); err != nil {
		return ir.Dense{}, err
	}
	d := ir.Dense{TensorType: ir.TensorType{DT: t.DType(), Shape: t.shape()}, Data: make([]byte, n*t.DType().Size())}
	return d, stream.Read(&t.v, d.Data)
}
