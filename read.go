package millrace

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/millrace-go/millrace/internal/hostmem"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Values runs the ops that t needs and returns a copy of its elements in row-major order. A T
// that is not t's dtype is ErrDType. It returns the error that t carries, or that running finds,
// in place of elements.
func Values[T Element](t *Tensor) ([]T, error) {
	for {
		is, err := checkRead("values", t, dtypeOf[T]())
		if err != nil {
			return nil, err
		}
		n := is.Shape().Elems()
		if err := checkHost(t, is.DType(), n); err != nil {
			return nil, err
		}
		dst := make([]T, n)
		if same, err := stream.ReadAs(&t.v, is, bytesOf(dst)); same {
			if err != nil {
				dst = nil
			}
			return dst, err
		}
	}
}

// ValuesContext is [Values] with a limit: it returns ctx's error when ctx is done. Other errors are
// those of Values. See [Tensor.EvalContext].
func ValuesContext[T Element](ctx context.Context, t *Tensor) ([]T, error) {
	t, err := evaluated[T](ctx, "values", t)
	defer done(t)
	if err != nil {
		return nil, err
	}
	return Values[T](t)
}

// evaluated returns a handle of t's present value, in memory unless ctx was done first.
func evaluated[T Element](ctx context.Context, op string, t *Tensor) (*Tensor, error) {
	t = still(t)
	if _, err := checkRead(op, t, dtypeOf[T]()); err != nil {
		return t, err
	}
	return t, t.EvalContext(ctx)
}

// ReadInto is [Values] into the caller's memory. A dst whose length is not the number of elements
// is ErrShape. After an error, dst's contents are undefined.
func ReadInto[T Element](dst []T, t *Tensor) error {
	for {
		is, err := checkRead("readinto", t, dtypeOf[T]())
		if err != nil {
			return err
		}
		if n := is.Shape().Elems(); len(dst) != n {
			return failure("readinto", shapeErr("%d elements do not fit a slice of %d", n, len(dst)), t)
		}
		if same, err := stream.ReadAs(&t.v, is, bytesOf(dst)); same {
			return err
		}
	}
}

// ReadIntoContext is [ReadInto] with a limit: it returns ctx's error when ctx is done, and dst is
// not written, not even later. Other errors are those of ReadInto. See [Tensor.EvalContext].
func ReadIntoContext[T Element](ctx context.Context, dst []T, t *Tensor) error {
	t, err := evaluated[T](ctx, "readinto", t)
	defer done(t)
	if err != nil {
		return err
	}
	return ReadInto(dst, t)
}

// Item returns the element of a tensor that has exactly one, of any rank. Another number of
// elements is ErrShape; a T that is not t's dtype is ErrDType.
func Item[T Element](t *Tensor) (T, error) {
	var one [1]T
	for {
		is, err := checkRead("item", t, dtypeOf[T]())
		if err != nil {
			return one[0], err
		}
		if n := is.Shape().Elems(); n != 1 {
			return one[0], failure("item", shapeErr("%v has %d elements, not 1", is.Shape(), n), t)
		}
		if same, err := stream.ReadAs(&t.v, is, bytesOf(one[:])); same {
			return one[0], err
		}
	}
}

// ItemContext is [Item] with a limit: it returns ctx's error when ctx is done. Other errors are
// those of Item. See [Tensor.EvalContext].
func ItemContext[T Element](ctx context.Context, t *Tensor) (T, error) {
	t, err := evaluated[T](ctx, "item", t)
	defer done(t)
	if err != nil {
		var none T
		return none, err
	}
	return Item[T](t)
}

// checkRead returns t's present value, or an error if it cannot be read as dt. A tensor of
// unknown dtype carries an error, which failure returns.
func checkRead(op string, t *Tensor, dt DType) (is *stream.Value, err error) {
	if !t.made() {
		return nil, failure(op, errNilTensor)
	}
	is = t.v.Now()
	if got := is.DType(); got != dt {
		return nil, failure(op, dtypeErr("a tensor of %v cannot be read as %v", got, dt), t)
	}
	return is, nil
}

const (
	// sureBytes is so little memory that it needs no check.
	sureBytes = 1 << 30
	// unknownBytes is how much may be requested from Go if the machine's memory is unknown,
	// without ending the program: 1 GiB on 32 bits, else 256 GiB.
	unknownBytes = 1 << (30 + 8*(^uint(0)>>63))
)

// checkHost refuses to read a tensor that this machine's memory cannot hold. An expanded view of
// one element may have more elements than any machine holds, and Go ends a program that allocates
// too much.
func checkHost(t *Tensor, dt DType, n int) error {
	size := dt.Size()
	if n <= sureBytes/size {
		return nil
	}
	if limit := hostmem.Limit(unknownBytes); int64(n) > limit/int64(size) {
		return failure("values", fmt.Errorf("%w: %d elements of %v do not fit into host memory, which has %d bytes", ErrOutOfMemory, n, dt, limit), t)
	}
	return nil
}

// Elements runs the ops that t needs and returns its elements in row-major order, each with its
// index: one number per dimension, in a slice that every step reuses. Errors are those of
// [Values].
//
//	for at, x := range elements { … }
func Elements[T Element](t *Tensor) (iter.Seq2[[]int, T], error) {
	const op = "elements"
	h := hold(op, &t)
	defer h.end()
	if h.bad != nil {
		return nil, h.bad.v.Err()
	}
	shape := append(ir.Shape{}, t.shape()...)
	vs, err := Values[T](t)
	if err != nil {
		return nil, err
	}
	return func(yield func([]int, T) bool) {
		at := make([]int, len(shape))
		for _, v := range vs {
			if !yield(at, v) {
				return
			}
			for d := len(at) - 1; d >= 0; d-- {
				if at[d]++; at[d] < shape[d] {
					break
				}
				at[d] = 0
			}
		}
	}, nil
}

// Along returns the slices of t along an axis, from the first to the last, with their numbers.
// Each is a view without that axis, as t.Slice gives it. A negative axis counts from the last. If
// t carries an error, or has no such axis (ErrShape), Along returns one tensor that carries the
// error.
//
//	for i, row := range x.Along(0) { … }
func (t *Tensor) Along(axis int) iter.Seq2[int, *Tensor] {
	const op = "along"
	bad := unusable(op, t)
	if n := t.Rank(); bad == nil && (axis < -n || axis >= n) {
		bad = failed(op, shapeErr("axis %d does not exist in %v", axis, t.shape()), t)
	}
	return func(yield func(int, *Tensor) bool) {
		if bad != nil {
			yield(0, bad)
			return
		}
		x := still(t)
		defer done(x)
		k := axis
		if k < 0 {
			k += x.Rank()
		}
		ranges := make([]Range, k+1)
		for i := range k {
			ranges[i] = All
		}
		for i := range x.Dim(k) {
			ranges[k] = At(i)
			if !yield(i, x.Slice(ranges...)) {
				return
			}
		}
	}
}

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
		return false, failure("allclose", dtypeErr("the tensors have dtypes %v and %v", a.DType(), b.DType()), a, b)
	}
	if !a.shape().Equal(b.shape()) {
		return false, failure("allclose", shapeErr("the tensors have shapes %v and %v", a.shape(), b.shape()), a, b)
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
