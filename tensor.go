package millrace

import (
	"context"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Tensor is a handle of an n-dimensional array whose elements may not be computed yet. Ops return
// new tensors and never change their operands. Only [Tensor.Set] gives a handle another value. A
// Tensor is used by pointer and must not be copied. All methods are safe for concurrent use.
//
// A tensor may carry an error in place of a value: see the package documentation. Methods on a
// nil *Tensor behave as if it carried one.
type Tensor struct {
	v stream.Value
}

// made reports that an op made t, so that t is neither nil nor the zero Tensor.
func (t *Tensor) made() bool {
	return t != nil && (t.v.Home() != nil || t.v.Err() != nil)
}

// DType is the type of the elements. It never waits. It is Invalid if t carries an error that
// left the dtype unknown.
func (t *Tensor) DType() DType {
	if t == nil {
		return Invalid
	}
	return t.v.DType()
}

// Shape is a copy of the dimensions, outermost first. It is empty for a 0-d tensor, and if t
// carries an error that left the shape unknown. It never waits.
func (t *Tensor) Shape() []int {
	if t == nil {
		return []int{}
	}
	return append([]int{}, t.v.Shape()...)
}

// Rank is the number of dimensions, 0 to 8.
func (t *Tensor) Rank() int { return len(t.shape()) }

// Dim is the size of dimension i; a negative i counts from the last dimension. It is 0 for a
// dimension that does not exist.
func (t *Tensor) Dim(i int) int {
	s := t.shape()
	if i < 0 {
		i += len(s)
	}
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}

// Len is the number of elements, the product of the dimensions.
func (t *Tensor) Len() int { return t.shape().Elems() }

func (t *Tensor) shape() ir.Shape {
	if t == nil {
		return nil
	}
	return t.v.Shape()
}

// Err is the error that t carries, or nil. It runs nothing. Errors that only running finds, such
// as a lack of memory or a lost device, may therefore come later.
func (t *Tensor) Err() error {
	if !t.made() {
		return failure("err", errNilTensor)
	}
	return t.v.Err()
}

// Stream is the stream that t belongs to. Use it as the place of tensors that belong with t. It
// is nil if t carries an error that left it unknown. Calls may return different pointers for one
// stream.
func (t *Tensor) Stream() *Stream {
	if t == nil || t.v.Home() == nil {
		return nil
	}
	return &Stream{t.v.Home()}
}

// Eval computes t: it runs the ops that t needs and returns when t's elements are in memory. It
// returns the error that t carries, if any. Reading t does the same, so Eval is only needed to
// measure, or to choose the moment of the computation.
func (t *Tensor) Eval() error {
	if !t.made() {
		return failure("eval", errNilTensor)
	}
	return stream.Flush(&t.v)
}

// EvalContext is [Tensor.Eval] with a limit: when ctx is done, it returns ctx's error at once,
// even if the device is busy. A nil ctx sets no limit. The computation of t continues, the stream
// stays usable, and a later call may wait for t again.
func (t *Tensor) EvalContext(ctx context.Context) error {
	if !t.made() {
		return failure("eval", errNilTensor)
	}
	return stream.FlushContext(ctx, &t.v)
}

// Release says that the program will not use this handle again. The memory can then be reused at
// once, without waiting for Go's collector. Any later use of the handle is ErrReleased, and that
// error names the line of the Release. Releasing twice is harmless.
//
// Release is optional: a program that never calls it is correct, but holds memory longer. A
// [Scope] releases all tensors that descend from it.
func (t *Tensor) Release() {
	if t.made() {
		stream.Release(&t.v)
	}
}

// Set gives the handle t the value of u and gives up t's old value:
// weights.Set(weights.Sub(step)). Both handles then have the value, which lives until both have
// given it up. A loop that sets one handle again and again should release u, or run in a [Scope],
// so that memory is reused at once. Tensors that were computed from t before keep t's old value
// as their operand. The shapes and dtypes may differ. If u carries an error, t carries it too.
//
// Other goroutines that use t meanwhile get its old value or the new one, never a mixture. Each
// call looks at t's value once, even a call that is made of several ops, such as Softmax. For
// several calls on one value, or to look at t's shape first, use a separate handle, t.To(stream).
func (t *Tensor) Set(u *Tensor) {
	if !t.made() {
		return // nothing to carry the error: Err on t tells it
	}
	if !u.made() {
		u = failed("set", errNilTensor, u)
	}
	stream.Set(&t.v, &u.v)
}

// To returns a handle of t's value in another place: the stream or scope p. The elements are
// copied if the device differs. Shape and dtype are t's. A dtype that the device lacks is
// ErrUnsupported.
//
// To(scope) makes a handle that the scope owns, so that the scope releases what is computed from
// it.
func (t *Tensor) To(p Place) *Tensor {
	if !t.made() {
		return failed("to", errNilTensor, t)
	}
	if followed(t) {
		return whole("to", "to", nil, func(in []*Tensor) *Tensor { return in[0].To(p) }, t)
	}
	place, err := placeOf(p)
	if err != nil {
		return failed("to", err, t)
	}
	r := newLike(t)
	stream.To(&r.v, place, &t.v)
	r.signedAs("to", nil, []*Tensor{t})
	return r
}

// Explain describes how t is computed: the segment of ops that t belongs to, its kernels with
// their source, and why pairs of kernels were not fused. It runs pending ops. For a tensor that
// carries an error it returns the error's text.
func (t *Tensor) Explain() string {
	if !t.made() {
		return failure("explain", errNilTensor).Error()
	}
	return stream.Explain(&t.v)
}
