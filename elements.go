package millrace

import (
	"iter"

	"github.com/millrace-go/millrace/ir"
)

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
		bad = failed(op, shapeErr("axis %d of %v", axis, t.shape()), t)
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
