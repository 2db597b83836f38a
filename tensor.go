package millrace

import (
	"context"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Tensor is a handle of an n-dimensional array whose elements may not have
// been computed yet. Ops return new tensors and never change their operands;
// only [Tensor.Set] gives a handle another value. A Tensor is used by pointer
// and must not be copied. All methods are safe for concurrent use.
//
// A tensor may carry an error in place of a value: see the package
// documentation. Methods on a nil *Tensor behave as if it carried one.
type Tensor struct {
	v stream.Value
}

// made reports that an op made t: it is not nil and not the zero Tensor.
func (t *Tensor) made() bool {
	return t != nil && (t.v.Home() != nil || t.v.Err() != nil)
}

// DType is the type of the elements. It never waits. It is Invalid where the
// tensor carries an error that left it unknown.
func (t *Tensor) DType() DType {
	if t == nil {
		return Invalid
	}
	return t.v.DType()
}

// Shape is a copy of the dimensions, outermost first; it is empty for a 0-d
// tensor. It never waits. It is empty where the tensor carries an error that
// left it unknown.
func (t *Tensor) Shape() []int {
	if t == nil {
		return []int{}
	}
	return append([]int{}, t.v.Shape()...)
}

// Rank is the number of dimensions, 0 to 8.
func (t *Tensor) Rank() int { return len(t.shape()) }

// Dim is the size of one dimension; negative ones count from the last. It is 0
// for a dimension that is not there.
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

// Err is the error that t carries, or nil. It does not run anything, so an
// error that only running finds (memory, a lost device) may come later.
func (t *Tensor) Err() error {
	if !t.made() {
		return failure("err", errNilTensor)
	}
	return t.v.Err()
}

// Stream is the stream that t belongs to, a place for tensors that should go
// where t is. It is nil where t carries an error that left it unknown. Calls
// may return different pointers for one stream.
func (t *Tensor) Stream() *Stream {
	if t == nil || t.v.Home() == nil {
		return nil
	}
	return &Stream{t.v.Home()}
}

// Eval runs what t needs and returns when its elements are in memory, or the
// error t carries. Reading does the same by itself: Eval is for measuring and
// for choosing the moment.
func (t *Tensor) Eval() error {
	if !t.made() {
		return failure("eval", errNilTensor)
	}
	return stream.Flush(&t.v)
}

// EvalContext is [Tensor.Eval] for a caller who gives up when ctx is done, which may
// be nil: it returns ctx's error then, at once, whatever the device is busy with.
// What t needs goes on being computed, the stream stays usable, and t may be asked
// for again.
func (t *Tensor) EvalContext(ctx context.Context) error {
	if !t.made() {
		return failure("eval", errNilTensor)
	}
	return stream.FlushContext(ctx, &t.v)
}

// Release says that this handle will not be used again, so that memory can be
// reused at once instead of when Go's collector finds it. Any later use is
// ErrReleased and names this line. Releasing twice is harmless.
//
// Release is optional: a program that never calls it is right, but holds
// memory longer. A [Scope] releases everything that was made in it.
func (t *Tensor) Release() {
	if t.made() {
		stream.Release(&t.v)
	}
}

// Set gives the handle t the value of u and gives up t's old one:
// weights.Set(weights.Sub(step)). Both have the value then, and it stays until each
// has given it up: a loop that sets one handle again and again should release u, or be
// in a [Scope], so that memory is reused at once. Tensors computed from t before
// keep what they were computed from. The shapes and dtypes may differ. An
// error that u carries is carried by t too.
//
// Others who use t meanwhile get its old value or the new one, never a mixture: each
// call looks once at what t is, also those made of several ops, such as Softmax. Who
// makes several calls on one value, or asks for t's shape first, does so on a handle of
// his own, t.To(stream).
func (t *Tensor) Set(u *Tensor) {
	if !t.made() {
		return // nothing to carry the error: Err on t tells it
	}
	if !u.made() {
		u = failed("set", errNilTensor, u)
	}
	stream.Set(&t.v, &u.v)
}

// To is t's value in another place: a handle that belongs to that stream or
// scope, with the elements copied where the device differs. Shape and dtype are
// t's; a dtype the device lacks is ErrUnsupported.
//
// To(scope) makes a handle that the scope owns, so that what is computed from
// it is released with the scope.
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

// Explain says how t is computed: the segment that it is part of, its kernels
// with their source, which pairs of kernels are not one and why. It runs what
// is pending. For a tensor that carries an error it is the error's text.
func (t *Tensor) Explain() string {
	if !t.made() {
		return failure("explain", errNilTensor).Error()
	}
	return stream.Explain(&t.v)
}
