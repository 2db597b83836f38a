package millrace

import (
	"math/bits"

	"github.com/millrace-go/millrace/ir"
)

// SearchSorted gives, for each of the values, the position of dtype Int32 or Int64 (else
// ErrDType) at which it would have to be put into a vector in the order of [Tensor.Sort] to
// keep the order: before elements that equal it, or behind them where right is true. It is
// NumPy's and PyTorch's searchsorted. NaN is behind all numbers. Of a vector that is not
// sorted the result means nothing. The result has the values' shape; both have one dtype
// of numbers (else ErrDType). A sorted that is no vector, or has 2^31 elements, is ErrShape.
// There is no gradient.
func SearchSorted(dt DType, sorted, values *Tensor, right bool) *Tensor {
	const name = "searchsorted"
	h := hold(name, &sorted, &values)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	switch {
	case sorted.Rank() != 1 || sorted.Len() > maxSearch:
		return failed(name, shapeErr("%v is no vector to search in", sorted.shape()), sorted, values)
	case sorted.DType() != values.DType():
		return failed(name, dtypeErr("%v in %v; use Cast", values.DType(), sorted.DType()), sorted, values)
	case sorted.DType() == Bool:
		return failed(name, dtypeErr("%v tensors: numbers only", Bool), sorted, values)
	case !ir.IndexDTypes.Has(dt):
		return failed(name, dtypeErr("positions of %v: Int32 or Int64", dt), sorted, values)
	}
	flat := values.Reshape(values.Len())
	at := search(sorted, flat, right)
	wide := narrowed(at, dt)
	r := wide.Reshape(values.shape()...)
	done(flat, wide)
	return r
}

const maxSearch = 1<<31 - 1

// search finds places along the last dimension of sorted, where the others of both are
// the same: Int32 numbers of values' shape.
func search(sorted, values *Tensor, right bool) *Tensor {
	n := sorted.Dim(-1)
	if n == 0 { // 0 of each value, which may turn out to be an error
		other := values.NeScalar(0)
		number := other.Cast(Int32)
		r := number.MulScalar(0)
		done(other, number)
		return r
	}
	at := ZerosOn(values.Stream(), Int32, values.shape()...)
	// So many elements are known to stand before the value. Steps are halves of one another.
	for step := 1 << (bits.Len(uint(n)) - 1); step > 0; step /= 2 {
		next := at.AddScalar(float64(step))
		last := next.SubScalar(1)
		x := sorted.TakeAlong(last, -1, IndexClamp)
		before := standsBefore(x, values, right)
		there := next.LeScalar(float64(n))
		both := before.And(there)
		further := Where(both, next, at)
		done(at, next, last, x, before, there, both)
		at = further
	}
	return at
}

// standsBefore is whether x has to stay in front of v: is less, or equal where right is true.
func standsBefore(x, v *Tensor, right bool) *Tensor {
	if right { // no more than v, which is everything where v is NaN
		less := x.Le(v)
		if !x.DType().IsFloat() {
			return less
		}
		nan := v.IsNaN()
		r := less.Or(nan)
		done(less, nan)
		return r
	}
	less := x.Lt(v)
	if !x.DType().IsFloat() {
		return less
	}
	nan, other := v.IsNaN(), x.IsNaN()
	number := other.Not()
	under := nan.And(number)
	r := less.Or(under)
	done(less, nan, other, number, under)
	return r
}
