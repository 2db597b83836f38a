package millrace

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// CumSum gives each element the sum of the elements up to it along an axis: NumPy's and PyTorch's
// cumsum. The result has t's shape and dtype; integers wrap around. Numbers only, else ErrDType.
// A negative axis counts from the last. An axis that does not exist is ErrShape. The order of the
// additions is fixed (docs/numerics.md), as for all scans.
func (t *Tensor) CumSum(axis int) *Tensor { return along(ir.CumSum, t, Invalid, axis, false) }

// CumProd gives each element the product of the elements up to it: NumPy's and PyTorch's cumprod.
// Otherwise it is like [Tensor.CumSum].
func (t *Tensor) CumProd(axis int) *Tensor { return along(ir.CumProd, t, Invalid, axis, false) }

// CumMax gives each element the largest of the elements up to it, and NaN from the first NaN on:
// NumPy's maximum.accumulate. Otherwise it is like [Tensor.CumSum].
func (t *Tensor) CumMax(axis int) *Tensor { return along(ir.CumMax, t, Invalid, axis, false) }

// CumMin gives each element the smallest of the elements up to it, and NaN from the first NaN on:
// NumPy's minimum.accumulate. Otherwise it is like [Tensor.CumSum].
func (t *Tensor) CumMin(axis int) *Tensor { return along(ir.CumMin, t, Invalid, axis, false) }

// Sort orders the elements along an axis, smallest first, with -0 before +0 and NaN last: NumPy's
// and PyTorch's sort. The result has t's shape and dtype. Numbers only, else ErrDType. A negative
// axis counts from the last. An axis that does not exist is ErrShape.
func (t *Tensor) Sort(axis int) *Tensor { return along(ir.Sort, t, Invalid, axis, false) }

// SortDescending is [Tensor.Sort], largest first; NaN stays last.
func (t *Tensor) SortDescending(axis int) *Tensor { return along(ir.Sort, t, Invalid, axis, true) }

// ArgSort gives the positions, Int64, that put the elements along an axis in the order of
// [Tensor.Sort]: NumPy's and PyTorch's argsort. Equal elements keep their order.
func (t *Tensor) ArgSort(axis int) *Tensor { return along(ir.ArgSort, t, Int64, axis, false) }

// ArgSortDescending gives the positions for [Tensor.SortDescending]; equal
// elements keep their order.
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
