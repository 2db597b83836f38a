package millrace

import (
	"math"
	"math/bits"
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// CumSum gives each element the sum of the elements up to it along an axis: NumPy's and PyTorch's
// cumsum. The result has t's shape and dtype; integers wrap around. Numbers only, else ErrDType.
// A negative axis counts from the last. An axis that does not exist is ErrShape. The order of the
// additions is fixed (docs/numerics.md), as for all scans.
func (t *Tensor) CumSum(axis int) *Tensor { return along(ir.CumSum, t, Invalid, axis, false) }

// CumProd gives each element the product of the elements up to it: NumPy's and PyTorch's cumprod.
// Shapes, dtypes and errors are those of [Tensor.CumSum].
func (t *Tensor) CumProd(axis int) *Tensor { return along(ir.CumProd, t, Invalid, axis, false) }

// CumMax gives each element the largest of the elements up to it, and NaN from the first NaN on:
// NumPy's maximum.accumulate. Shapes, dtypes and errors are those of [Tensor.CumSum].
func (t *Tensor) CumMax(axis int) *Tensor { return along(ir.CumMax, t, Invalid, axis, false) }

// CumMin gives each element the smallest of the elements up to it, and NaN from the first NaN on:
// NumPy's minimum.accumulate. Shapes, dtypes and errors are those of [Tensor.CumSum].
func (t *Tensor) CumMin(axis int) *Tensor { return along(ir.CumMin, t, Invalid, axis, false) }

// Sort orders the elements along an axis, smallest first, with -0 before +0 and NaN last: NumPy's
// and PyTorch's sort. The result has t's shape and dtype. Numbers only, else ErrDType. A negative
// axis counts from the last. An axis that does not exist is ErrShape.
func (t *Tensor) Sort(axis int) *Tensor { return along(ir.Sort, t, Invalid, axis, false) }

// SortDescending is [Tensor.Sort], largest first; NaN stays last. Shapes, dtypes and errors are the
// same.
func (t *Tensor) SortDescending(axis int) *Tensor { return along(ir.Sort, t, Invalid, axis, true) }

// ArgSort gives the positions, Int64, that put the elements along an axis in the order of
// [Tensor.Sort]: NumPy's and PyTorch's argsort. Equal elements keep their order. The result has t's
// shape; errors are those of Sort.
func (t *Tensor) ArgSort(axis int) *Tensor { return along(ir.ArgSort, t, Int64, axis, false) }

// ArgSortDescending gives the positions, Int64, for [Tensor.SortDescending]; equal elements keep
// their order. The result has t's shape; errors are those of [Tensor.Sort].
func (t *Tensor) ArgSortDescending(axis int) *Tensor { return along(ir.ArgSort, t, Int64, axis, true) }

// ArgSortAs is [Tensor.ArgSort], or [Tensor.ArgSortDescending] if descending is set, with the
// result in dt, Int32 or Int64 (else ErrDType). It is for devices without Int64.
func (t *Tensor) ArgSortAs(dt DType, axis int, descending bool) *Tensor {
	return along(ir.ArgSort, t, dt, axis, descending)
}

// along records an op that works along one axis.
func along(op ir.Op, t *Tensor, dt DType, axis int, descending bool) *Tensor {
	h := hold(op.String(), &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	list, err := axesOf([]int{axis}, t.Rank())
	if err != nil {
		return failed(op.String(), err, t)
	}
	args := [...]stream.Arg{arg(t)}
	return record(op, dt, nil, &ir.Attr{Axes: list, Descending: descending}, args[:])
}

// TopK returns the k largest elements along an axis, largest first, and their positions, Int64:
// PyTorch's topk. Numbers only, else ErrDType. NaN counts as the smallest, as in
// [Tensor.SortDescending], and equal elements keep their order. A k below 0 or above the size of
// the axis is ErrShape. A few elements of a long axis are selected in about the time that reading
// the axis takes; otherwise the axis is sorted.
func TopK(t *Tensor, k, axis int) (values, positions *Tensor) {
	const name = "topk"
	c := compose(name, nil, &t)
	defer c.end(&values, &positions)
	if c.bad != nil {
		return twoFailures(name, c.bad)
	}
	list, err := axesOf([]int{axis}, t.Rank())
	switch {
	case err != nil:
	case k < 0 || k > t.shape()[list[0]]:
		err = shapeErr("%d of the %d elements along axis %d cannot be selected", k, t.shape()[list[0]], list[0])
	case t.DType() == Bool:
		err = dtypeErr("%v is not a number dtype", t.DType())
	}
	if err != nil {
		return twoFailures(name, failed(name, err, t))
	}
	if s, ok := t.selection(k, list[0]); ok {
		return t.selected(s, list[0])
	}
	head := slices.Repeat([]Range{All}, list[0]+1)
	head[list[0]] = R(0, k)
	sorted, order := t.SortDescending(list[0]), t.ArgSortDescending(list[0])
	return sorted.Slice(head...), order.Slice(head...)
}

// selection is a plan to select k of n elements. Each row is cut into chunks of equal length and
// a rest. Each of the k largest elements is in the rest or in one of k chunks: those with the
// largest maxima, earlier ones first if equal. For every other chunk there are k elements outside
// of it that are larger than all of its own, or equal and before them.
type selection struct{ k, n, chunk, chunks int }

// leastSelected is the least length of an axis for which elements are selected.
const leastSelected = 1 << 12

// selection reports whether selecting k elements along an axis is worthwhile. It sorts the maxima
// and the elements of k chunks; their number is least for chunks of √(n/k) elements.
func (t *Tensor) selection(k, axis int) (s selection, ok bool) {
	n := t.shape()[axis]
	if k == 0 || n < leastSelected || n > math.MaxInt32 || t.shape().Elems() == 0 {
		return s, false
	}
	s = selection{k: k, n: n, chunk: (int(math.Sqrt(float64(n/k))) + 15) &^ 15}
	if s.chunk > n {
		return s, false
	}
	s.chunks = n / s.chunk
	dev := t.Stream().Device()
	return s, s.chunks > 2*k && s.chunks+k*s.chunk < n/8 && dev.Supports(Int32) && dev.Supports(Int64) &&
		(!t.DType().IsFloat() || dev.Supports(t.DType().Signed()))
}

// selected is TopK by selection.
func (t *Tensor) selected(s selection, axis int) (values, positions *Tensor) {
	lead := slices.Delete(slices.Clone(t.shape()), axis, axis+1)
	n, b, whole := s.n, lead.Elems(), s.chunks*s.chunk
	rows := t.rowsOf([]int{axis}).Reshape(b, n)

	// Find the k chunks with the largest maxima, and sort them by position.
	most := rows.Slice(All, R(0, whole)).Reshape(b, s.chunks, s.chunk).orderKeys().Max(2)
	best := most.ArgSortAs(Int32, 1, true).Slice(All, R(0, s.k)).Sort(1)

	// Take their elements and the rest, with their positions, in order.
	inside := ArangeOn(beside(t), Int32, 0, float64(s.chunk), 1)
	at := best.MulScalar(float64(s.chunk)).Unsqueeze(2).Add(inside).Reshape(b, s.k*s.chunk)
	if whole < n {
		at = Concat(1, at, ArangeOn(beside(t), Int32, float64(whole), float64(n), 1).Expand(b, n-whole))
	}
	from := rows.TakeAlong(at, 1, IndexClamp)
	place := at.TakeAlong(from.ArgSortAs(Int32, 1, true).Slice(All, R(0, s.k)), 1, IndexClamp)

	back := func(x *Tensor) *Tensor { return x.Reshape(slices.Concat(lead, ir.Shape{s.k})...).MoveAxis(-1, axis) }
	return back(rows.TakeAlong(place, 1, IndexClamp)), back(place.Cast(Int64))
}

// orderKeys returns integers with the order of a descending sort: for floats, -0 is less than 0,
// and NaN less than all others.
func (t *Tensor) orderKeys() *Tensor {
	if !t.DType().IsFloat() {
		return t
	}
	signed := t.DType().Signed()
	bits := t.reinterpret(signed)
	least := -math.Ldexp(1, signed.Bits()-1)
	// The bits of a negative float are larger the smaller the float is, so all bits but the sign
	// are inverted.
	turned := bits.BitNot().AddScalar(least)
	keys := Where(bits.LtScalar(0), turned, bits)
	infinity := FullOn(beside(t), t.DType(), math.Inf(1))
	nan := keys.Gt(infinity.reinterpret(signed))
	return Where(nan, FullOn(beside(t), signed, least), keys)
}

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
func SearchSorted(dt DType, sorted, values *Tensor, side ...Side) (r *Tensor) {
	const name = "searchsorted"
	c := compose(name, nil, &sorted, &values)
	defer c.end(&r)
	switch {
	case c.bad != nil:
		return c.bad
	case len(side) > 1 || len(side) == 1 && side[0] > SideRight:
		return failed(name, shapeErr("side %v is neither SideLeft nor SideRight", side), sorted, values)
	case sorted.Rank() != 1 || sorted.Len() > maxSearch:
		return failed(name, shapeErr("%v is not a vector", sorted.shape()), sorted, values)
	case sorted.DType() != values.DType():
		return failed(name, dtypeErr("values of %v cannot be searched in %v; use Cast", values.DType(), sorted.DType()), sorted, values)
	case sorted.DType() == Bool:
		return failed(name, dtypeErr("%v is not a number dtype", Bool), sorted, values)
	case !ir.IndexDTypes.Has(dt):
		return failed(name, dtypeErr("positions cannot have dtype %v, only Int32 or Int64", dt), sorted, values)
	}
	at := search(sorted, values.Reshape(values.Len()), len(side) == 1 && side[0] == SideRight)
	return inDType(at, dt).Reshape(values.shape()...)
}

const maxSearch = 1<<31 - 1

// search finds positions along the last dimension of sorted; the other dimensions of both
// operands are the same. The result is Int32, of values' shape.
func search(sorted, values *Tensor, right bool) *Tensor {
	n := sorted.Dim(-1)
	if n == 0 { // 0 for each value; computed from the values, because they may carry an error
		return values.NeScalar(0).Cast(Int32).MulScalar(0)
	}
	// at counts the elements known to be before the value. Each step is half of the one before.
	at := ZerosOn(beside(values), Int32, values.shape()...)
	halves := bits.Len(uint(n))
	return inTurn(halves, at, func(at *Tensor, i int) *Tensor {
		next := at.AddScalar(float64(int(1) << (halves - 1 - i)))
		x := sorted.TakeAlong(next.SubScalar(1), -1, IndexClamp)
		there := standsBefore(x, values, right).And(next.LeScalar(float64(n)))
		return Where(there, next, at)
	})
}

// standsBefore reports whether x must stay before v: x is less, or equal if right is true.
func standsBefore(x, v *Tensor, right bool) *Tensor {
	less := (*Tensor).Lt
	if right {
		less = (*Tensor).Le
	}
	r := less(x, v)
	switch {
	case !x.DType().IsFloat():
		return r
	case right: // everything is at most a NaN
		return r.Or(v.IsNaN())
	}
	return r.Or(v.IsNaN().And(x.IsNaN().Not()))
}
