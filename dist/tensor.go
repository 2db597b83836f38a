package dist

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/internal/operror"
)

// AllReduce is the sum of all ranks' t, on all ranks. All have one shape and dtype, which is not
// bool. The parts are added in pairs of neighbours, in an order that depends on the number of ranks
// only: ((t0+t1)+(t2+t3))+t4. float16 and bfloat16 are added in float32 and rounded once.
//
// The derivative is the sum of all ranks' derivatives.
//
// Like the other collectives of tensors, it computes and reads t, waits for all ranks, and makes a
// new tensor beside t. A Recording whose function calls it therefore runs the function each time.
// Each rank sends and receives about twice the bytes of t.
//
// The result carries t's error, which also ends the World, as other ranks cannot go on; ErrDType for
// bool; and a [*RankError] or ErrMismatch if the World failed.
func (w *World) AllReduce(t *millrace.Tensor) *millrace.Tensor {
	return custom(t, w.allReduce, w.AllReduce)
}

// ReduceScatter is this rank's part of the sum of all ranks' t, along axis 0: of n rows, rank r has
// rows r·n/Size to (r+1)·n/Size. n that is not a multiple of Size is ErrShape. The order and errors
// are those of [World.AllReduce], at half its bytes. The derivative is AllGather's.
func (w *World) ReduceScatter(t *millrace.Tensor) *millrace.Tensor {
	return custom(t, w.reduceScatter, w.AllGather)
}

// AllGather is all ranks' t, concatenated along axis 0 in the order of ranks. All have one shape,
// of at least one axis, and one dtype. Errors are those of [World.AllReduce]. The derivative is
// ReduceScatter's.
func (w *World) AllGather(t *millrace.Tensor) *millrace.Tensor {
	return custom(t, w.allGather, w.ReduceScatter)
}

// AllToAll divides t along axis 0 into a part for each rank, and is the parts that this rank
// receives, in the order of ranks. The number of rows is a multiple of Size, else it is ErrShape.
// Other errors are those of [World.AllReduce]. The derivative is AllToAll's.
func (w *World) AllToAll(t *millrace.Tensor) *millrace.Tensor {
	return custom(t, w.allToAll, w.AllToAll)
}

// Broadcast is rank root's t on all ranks. All have a t of one shape and dtype. Errors are those of
// [World.AllReduce], and ErrIndex for a root that is no rank. The derivative is the sum of all
// ranks' derivatives on root, and zeros on the others.
func (w *World) Broadcast(t *millrace.Tensor, root int) *millrace.Tensor {
	forward := func(t *millrace.Tensor) *millrace.Tensor { return w.broadcastTensor(t, root) }
	return custom(t, forward, func(d *millrace.Tensor) *millrace.Tensor {
		sum := w.AllReduce(d)
		if w.info.Rank == root {
			return sum
		}
		return sum.MulScalar(0)
	})
}

// custom is an op with a derivative.
func custom(t *millrace.Tensor, forward, backward func(*millrace.Tensor) *millrace.Tensor) *millrace.Tensor {
	return autodiff.Custom(
		func(in []*millrace.Tensor) []*millrace.Tensor { return []*millrace.Tensor{forward(in[0])} },
		func(_, _, d []*millrace.Tensor) []*millrace.Tensor { return []*millrace.Tensor{backward(d[0])} },
		t)[0]
}

func (w *World) allReduce(t *millrace.Tensor) *millrace.Tensor {
	return w.collective("allreduce", t, checkSum(t.DType()), t.Shape(), func(dst, src []byte) error { return w.sum(t.DType(), dst, src) })
}

func (w *World) reduceScatter(t *millrace.Tensor) *millrace.Tensor {
	bad := checkSum(t.DType())
	shape, err := w.part(t)
	if bad == nil {
		bad = err
	}
	return w.collective("reducescatter", t, bad, shape, func(dst, src []byte) error {
		if w.info.Size == 1 {
			copy(dst, src)
			return nil
		}
		return w.sumPart(t.DType(), dst, src, w.equal(len(dst)))
	})
}

func (w *World) allGather(t *millrace.Tensor) *millrace.Tensor {
	shape, bad := append([]int(nil), t.Shape()...), error(nil)
	if len(shape) == 0 {
		bad = fmt.Errorf("%w: a 0-d tensor has no axis 0", millrace.ErrShape)
	} else {
		shape[0] *= w.info.Size
	}
	return w.collective("allgather", t, bad, shape, func(dst, src []byte) error { return w.gatherInto(dst, src, w.equal(len(src))) })
}

func (w *World) allToAll(t *millrace.Tensor) *millrace.Tensor {
	_, bad := w.part(t)
	return w.collective("alltoall", t, bad, t.Shape(), func(dst, src []byte) error {
		at := w.equal(len(src) / w.info.Size)
		return w.exchange(dst, src, at, at)
	})
}

func (w *World) broadcastTensor(t *millrace.Tensor, root int) *millrace.Tensor {
	var bad error
	if root < 0 || root >= w.info.Size {
		bad = fmt.Errorf("%w: rank %d of %d", millrace.ErrIndex, root, w.info.Size)
	}
	return w.collective(fmt.Sprintf("broadcast from rank %d", root), t, bad, t.Shape(), func(dst, src []byte) error {
		copy(dst, src)
		return w.broadcast(dst, root)
	})
}

// part is the shape of one rank's part of a tensor.
func (w *World) part(t *millrace.Tensor) ([]int, error) {
	shape := append([]int(nil), t.Shape()...)
	if len(shape) == 0 || shape[0]%w.info.Size != 0 {
		return shape, fmt.Errorf("%w: axis 0 of %v cannot be divided among %d ranks", millrace.ErrShape, shape, w.info.Size)
	}
	shape[0] /= w.info.Size
	return shape, nil
}

// equal is the offsets of parts of equal size.
func (w *World) equal(size int) []int {
	at := make([]int, w.info.Size+1)
	for r := range at {
		at[r] = r * size
	}
	return at
}

// collective runs a call on a tensor's bytes. A call that this rank alone can see to be wrong is
// not begun.
func (w *World) collective(op string, t *millrace.Tensor, bad error, shape []int, run func(dst, src []byte) error) *millrace.Tensor {
	if err := t.Err(); errors.Is(err, operror.ErrNoValue) {
		bad = err
	} else if err != nil {
		bad = nil // the other ranks must hear of it
	}
	if bad != nil {
		return hostapi.Fail(op, bad, []any{t}).(*millrace.Tensor)
	}
	src, err := elements(t)
	c := &call{plan: plan{op, []string{form(t)}}, fault: err}
	var dst []byte
	c.run = func() error {
		dst = aligned(product(shape) * t.DType().Size())
		return run(dst, src)
	}
	if err := w.do(context.Background(), c); err != nil {
		return hostapi.Fail(op, err, []any{t}).(*millrace.Tensor)
	}
	place, ok := hostapi.Beside([]any{t})
	if !ok {
		return hostapi.Fail(op, millrace.ErrClosed, []any{t}).(*millrace.Tensor)
	}
	r, err := millrace.FromReaderOn(place.(millrace.Place), bytes.NewReader(dst), t.DType(), shape...)
	if err != nil {
		return hostapi.Fail(op, err, []any{t}).(*millrace.Tensor)
	}
	return r
}

// form is a tensor's line in a plan.
func form(t *millrace.Tensor) string { return fmt.Sprintf("%v %v", t.DType(), t.Shape()) }

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// elements is a copy of a tensor's elements.
func elements(t *millrace.Tensor) ([]byte, error) {
	if err := t.Err(); err != nil {
		return nil, err
	}
	data := aligned(t.Len() * t.DType().Size())
	left := into(data)
	_, err := t.WriteTo(&left)
	return data, err
}

// into is a writer that fills memory.
type into []byte

func (b *into) Write(p []byte) (int, error) {
	n := copy(*b, p)
	*b = (*b)[n:]
	return n, nil
}
