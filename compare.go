package millrace

import (
	"bytes"
	"math"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Equal reads two tensors and reports whether they have the same dtype, shape and elements, bit
// for bit: -0 is not +0, but any NaN equals any NaN. It is meant for tests; the op that compares
// elements is [Tensor.Eq]. The error is the first that a or b carries.
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

// AllClose reads two tensors and reports whether |a-b| <= atol + rtol*|b| for all elements:
// NumPy's and PyTorch's allclose. It computes in float64, which is exact for integers of up to 53
// bits. An infinity is close to itself and a NaN to any NaN; bools must be equal. Different
// shapes are ErrShape, different dtypes ErrDType.
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

// number returns an element as a float64, rounded if float64 cannot hold it.
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

// everywhere reads both tensors and reports whether all elements are the same value or alike.
// Equal tensors usually have equal bytes, so it compares bytes first, which is fast.
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

// dense reads a tensor into host memory.
func dense(t *Tensor) (ir.Dense, error) {
	n := t.Len()
	if err := checkHost(t, t.DType(), n); err != nil {
		return ir.Dense{}, err
	}
	d := ir.Dense{TensorType: ir.TensorType{DT: t.DType(), Shape: t.shape()}, Data: make([]byte, n*t.DType().Size())}
	return d, stream.Read(&t.v, d.Data)
}
