package millrace

import (
	"math/bits"

	"github.com/millrace-go/millrace/ir"
)

// Side says which position of several [SearchSorted] gives.
type Side uint8

const (
	SideLeft  Side = iota // before elements equal to the value: the default
	SideRight             // after them
)

// SearchSorted gives, for each value, the position at which a sorted vector would keep its order
// if the value were inserted there: NumPy's and PyTorch's searchsorted. The order is that of
// [Tensor.Sort]. The position is before elements equal to the value, or with
// [SideRight] after them. NaN is after all numbers. For a vector that is not sorted, the positions are meaningless.
// The result has the values' shape and dtype dt, Int32 or Int64 (else ErrDType). The vector and
// the values have one dtype of numbers (else ErrDType). A sorted that is no vector, or has 2^31
// elements or more, is ErrShape, and so is a Side that does not exist, or more than one. There is
// no gradient.
func SearchSorted(dt DType, sorted, values *Tensor, side ...Side) *Tensor {
	const name = "searchsorted"
	h := hold(name, &sorted, &values)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	switch {
	case len(side) > 1 || len(side) == 1 && side[0] > SideRight:
		return failed(name, shapeErr("side %v: SideLeft or SideRight", side), sorted, values)
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
	at := search(sorted, flat, len(side) == 1 && side[0] == SideRight)
	wide := narrowed(at, dt)
	r := wide.Reshape(values.shape()...)
	done(flat, wide)
	return r
}

const maxSearch = 1<<31 - 1

// search finds positions along the last dimension of sorted; the other dimensions of both
// operands are the same. The result is Int32, of values' shape.
func search(sorted, values *Tensor, right bool) *Tensor {
	n := sorted.Dim(-1)
	if n == 0 { // 0 for each value; computed from the values, because they may carry an error
		other := values.NeScalar(0)
		number := other.Cast(Int32)
		r := number.MulScalar(0)
		done(other, number)
		return r
	}
	at := ZerosOn(values.Stream(), Int32, values.shape()...)
	// at counts the elements known to be before the value. Each step is half of the one before.
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

// standsBefore reports whether x must stay before v: x is less, or equal if right is true.
func standsBefore(x, v *Tensor, right bool) *Tensor {
	if right { // x is at most v; everything is at most a NaN
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
