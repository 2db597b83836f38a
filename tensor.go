package millrace

import (
	"context"
	"math"
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
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
func (t *Tensor) To(p Place) (r *Tensor) {
	if !t.made() {
		return failed("to", errNilTensor, t)
	}
	if followed(t) {
		c := compose("to", adhook.To{}, &t)
		defer c.end(&r)
	}
	place, err := placeOf(p)
	if err != nil {
		return failed("to", err, t)
	}
	r = newLike(t)
	stream.To(&r.v, place.Place, &t.v)
	t.steps().add(r)
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

// bytesOf returns the memory of a slice. A bool is one byte, 0 or 1, in Go as on a CPU device, so
// this works for every Element.
func bytesOf[T Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// scalarBits returns the value of s in a dtype, as the bits that the engine stores. A float dtype
// rounds to nearest; every other dtype must hold s exactly. For the unknown dtype of a tensor
// that carries an error, any s is accepted.
func scalarBits(dt DType, s float64) (bits uint64, ok bool) {
	switch {
	case dt.IsFloat():
		return ir.FloatBits(dt, s), true
	case dt == Bool:
		return uint64(uint8(s)), s == 0 || s == 1
	case !dt.IsInt():
		return 0, dt == Invalid
	}
	// The first number above the range is a power of two, so float64 holds it exactly. It may not
	// hold the greatest number of the range.
	lo, above := 0.0, math.Ldexp(1, dt.Bits())
	if dt.IsSigned() {
		above /= 2
		lo = -above
	}
	switch {
	case !(s >= lo && s < above) || s != math.Trunc(s): // NaN is in no range
		return 0, false
	case s < 0:
		return uint64(int64(s)) << (64 - dt.Bits()) >> (64 - dt.Bits()), true
	}
	return uint64(s), true
}

// holding has the operands of an op that looks at them more than once, in handles of its own. The
// op sees one value of each operand, even if another goroutine calls Set meanwhile.
type holding struct {
	given, own [3]*Tensor
	n          int
	bad        *Tensor // the result where an operand carries an error, was released, or was never made
}

// hold makes the variables, up to three, point at handles that keep their value until end.
// Several variables may be the same tensor. An op that calls other ops calls hold first, so that
// errors name the op that the program called.
func hold(op string, ts ...**Tensor) (h holding) {
	for _, t := range ts {
		h.add(op, t)
	}
	return h
}

func (h *holding) add(op string, t **Tensor) {
	given := *t
	if given.steps() != nil { // nobody else has it, so nobody sets it
		if h.bad == nil {
			h.bad = unusable(op, given)
		}
		return
	}
	if k := slices.Index(h.given[:h.n], given); k >= 0 {
		*t = h.own[k]
		return
	}
	*t = still(given)
	h.given[h.n], h.own[h.n] = given, *t
	h.n++
	if h.bad == nil {
		h.bad = unusable(op, *t)
	}
}

func (h *holding) end() { done(h.own[:h.n]...) }

// still returns another handle of the value that t names now, or nil if t is nil. done ends the
// handle.
func still(t *Tensor) *Tensor {
	if t == nil {
		return nil
	}
	if t.v.Marks() != 0 {
		return markedHandle(t)
	}
	r := new(Tensor)
	stream.Same(&r.v, &t.v)
	return r
}

// markedHandle is still for a tensor that may have marks: the new handle carries t's node.
func markedHandle(t *Tensor) *Tensor {
	if t.v.Marks()&stream.MarkLeaf == 0 { // a node is found by the value
		r := &new(stepped).Tensor
		stream.Same(&r.v, &t.v)
		return r
	}
	r := &new(marked).Tensor
	r.extra().node = t.node()
	stream.Same(&r.v, &t.v)
	return r
}

// unusable returns the result of an op on a tensor that carries an error, was released or was
// never made. For other tensors it returns nil.
func unusable(op string, t *Tensor) *Tensor {
	if !t.made() || t.v.Cause() != nil {
		return failed(op, errNilTensor, t)
	}
	return nil
}

// init sets the hooks by which other packages of this module work with tensors. Only host
// adapters may use memory of Go's heap, because they know when the program may write to it: see
// internal/hostapi.
func init() {
	hostapi.Drop = func(t any) { done(t.(*Tensor)) }
	hostapi.Shares = func(d any, dt ir.DType) bool { return d.(*Device).d.Shares(dt) }
	hostapi.Share = func(d any, dt ir.DType, shape []int) (any, []byte, error) {
		p, err := d.(*Device).place()
		if err != nil {
			return nil, nil, err
		}
		t := new(Tensor)
		data, err := stream.Share(&t.v, p.Place, dt, ir.Shape(shape))
		return t, data, err
	}
	hostapi.Value = func(t any) any { return t.(*Tensor).v.Now() }
	hostapi.Fail = func(op string, err error, operands []any) any {
		ts := make([]*Tensor, len(operands))
		for i, t := range operands {
			ts[i] = t.(*Tensor)
		}
		return failed(op, err, ts...)
	}
	hostapi.Site = func(scope any, text string) { scope.(*Scope).sc.SetSite(text) }
	hostapi.Beside = func(tensors []any) (any, bool) {
		hs := make([]*stream.Value, len(tensors))
		for i, t := range tensors {
			hs[i] = &t.(*Tensor).v
		}
		p, ok := stream.Beside(hs...)
		return at{Place: p}, ok
	}
	hostapi.Lend = func(t any, use func(dev, buf any, off int64) error) error {
		x, ok := t.(*Tensor)
		if !ok || !x.made() {
			return failure("lend", errNilTensor)
		}
		err := stream.Lend(&x.v, func(dev runtime.Device, b runtime.Buffer, off int64) error { return use(dev, b, off) })
		if err != nil {
			return failure("lend", err, x)
		}
		return nil
	}
	hostapi.HostLane = func(d any) any { return d.(*Device).d.NewHostLane() }
	hostapi.HostOp = func(lane any, name string, operand any, dt ir.DType, shape []int, begin func() stream.HostFunc) any {
		t := operand.(*Tensor)
		if !t.made() {
			return failed(name, errNilTensor, t)
		}
		r := new(Tensor)
		stream.HostOp{Lane: lane.(*stream.HostLane), Name: name, DT: dt, Shape: append(ir.Shape{}, shape...), Begin: begin}.Record(&r.v, &t.v)
		return r
	}
	hostapi.Shared = func(t any) ([]byte, bool) { return stream.Shared(&t.(*Tensor).v) }
}

// beside is the place of tensors that a composite needs beside its step t: t's stream.
func beside(t *Tensor) Place { return at{stream.Place{S: t.v.Home()}, t.steps()} }

// tensor returns a new tensor that is going to be made here.
func (p at) tensor() *Tensor {
	if p.steps == nil && !signing() {
		return new(Tensor)
	}
	r := newStepped()
	p.steps.add(r)
	return r
}
