package millrace

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Sum adds the elements along the axes, which it removes, or all elements into a 0-d tensor if no
// axis is given: NumPy's and PyTorch's sum. Numbers only, else ErrDType; the dtype is t's, and
// integers wrap around. A negative axis counts from the last. An axis that does not exist or is
// given twice is ErrShape.
//
// The order of the additions depends only on the elements' logical positions, so the bits depend
// only on shape and values. The sum of no elements is +0.
func (t *Tensor) Sum(axes ...int) *Tensor { return reduce(ir.Sum, t, axes, false) }

// SumKeep is [Tensor.Sum] with the axes kept as dimensions of size 1.
func (t *Tensor) SumKeep(axes ...int) *Tensor { return reduce(ir.Sum, t, axes, true) }

// SumAs is [Tensor.Sum] of the elements converted to a dtype of numbers (else ErrDType), which is
// the result's too: NumPy's sum with a dtype. It sums small integers that would wrap around,
// counts the true elements of bools, and sums 16-bit floats in a wider dtype. The conversion is
// that of [Tensor.Cast].
func (t *Tensor) SumAs(dt DType, axes ...int) *Tensor {
	const name = "sumas"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	list, err := reducedAxes(axes, t.Rank())
	if !ir.Numbers.Has(dt) {
		err = dtypeErr("a sum of %v", dt)
	}
	if err != nil {
		return failed(name, err, t)
	}
	wide := t.Cast(dt)
	r := reduce(ir.Sum, wide, list, false)
	done(wide)
	return r
}

// Max is the largest element along the axes, which it removes, or of all elements as a 0-d tensor
// if no axis is given: NumPy's max, PyTorch's amax. Numbers only, else ErrDType; the dtype is
// t's. A NaN among the elements makes the result NaN, and -0 is less than +0. The maximum of no
// elements is ErrShape. Axes are as for [Tensor.Sum]. The larger of two tensors' elements is
// [Tensor.Maximum].
func (t *Tensor) Max(axes ...int) *Tensor { return reduce(ir.Max, t, axes, false) }

// MaxKeep is [Tensor.Max] with the axes kept as dimensions of size 1.
func (t *Tensor) MaxKeep(axes ...int) *Tensor { return reduce(ir.Max, t, axes, true) }

// Prod multiplies the elements along the axes, which it removes, or all elements if no axis is
// given: NumPy's and PyTorch's prod. Numbers only, else ErrDType; the dtype is t's, and integers
// wrap around. The product of no elements is 1. Axes and the order of the multiplications are as
// for [Tensor.Sum].
func (t *Tensor) Prod(axes ...int) *Tensor { return reduce(ir.Prod, t, axes, false) }

// ProdKeep is [Tensor.Prod] with the axes kept as dimensions of size 1.
func (t *Tensor) ProdKeep(axes ...int) *Tensor { return reduce(ir.Prod, t, axes, true) }

// Min is the smallest element: NumPy's min, PyTorch's amin. Otherwise it is like [Tensor.Max].
func (t *Tensor) Min(axes ...int) *Tensor { return reduce(ir.Min, t, axes, false) }

// MinKeep is [Tensor.Min] with the axes kept as dimensions of size 1.
func (t *Tensor) MinKeep(axes ...int) *Tensor { return reduce(ir.Min, t, axes, true) }

// Any is true where at least one element along the axes is true: NumPy's and PyTorch's any. It
// removes the axes; if none is given, it is over all elements. Bool only, else ErrDType. For no
// elements it is false. Axes are as for [Tensor.Sum].
func (t *Tensor) Any(axes ...int) *Tensor { return reduce(ir.Any, t, axes, false) }

// AnyKeep is [Tensor.Any] with the axes kept as dimensions of size 1.
func (t *Tensor) AnyKeep(axes ...int) *Tensor { return reduce(ir.Any, t, axes, true) }

// All is true where every element along the axes is true: NumPy's and PyTorch's all. It removes
// the axes; if none is given, it is over all elements. Bool only, else ErrDType. For no elements
// it is true. Axes are as for [Tensor.Sum].
func (t *Tensor) All(axes ...int) *Tensor { return reduce(ir.All, t, axes, false) }

// AllKeep is [Tensor.All] with the axes kept as dimensions of size 1.
func (t *Tensor) AllKeep(axes ...int) *Tensor { return reduce(ir.All, t, axes, true) }

// ArgMax is the position of the largest element along the axes, which it removes: its row-major
// number among the elements of those axes. It is NumPy's and PyTorch's argmax. The first NaN
// counts as largest. Of equal elements the first is taken, and -0 is less than +0. The result is
// Int64. Numbers only, else ErrDType; no elements are ErrShape. Axes are as for [Tensor.Sum].
func (t *Tensor) ArgMax(axes ...int) *Tensor { return position(ir.ArgMax, t, Int64, axes) }

// ArgMin is the position of the smallest element: NumPy's and PyTorch's argmin. The first NaN
// counts as smallest. Otherwise it is like [Tensor.ArgMax].
func (t *Tensor) ArgMin(axes ...int) *Tensor { return position(ir.ArgMin, t, Int64, axes) }

// ArgMaxAs is [Tensor.ArgMax] with the result in dt, Int32 or Int64 (else ErrDType), for devices
// without Int64. More elements than an Int32 can number are ErrShape.
func (t *Tensor) ArgMaxAs(dt DType, axes ...int) *Tensor { return position(ir.ArgMax, t, dt, axes) }

// ArgMinAs is [Tensor.ArgMin] with the result in dt, as for [Tensor.ArgMaxAs].
func (t *Tensor) ArgMinAs(dt DType, axes ...int) *Tensor { return position(ir.ArgMin, t, dt, axes) }

func reduce(op ir.Op, t *Tensor, axes []int, keep bool) *Tensor {
	h := hold(op.String(), &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	list, err := reducedAxes(axes, t.Rank())
	if err != nil {
		return failed(op.String(), err, t)
	}
	return view(op, t, nil, &ir.Attr{Axes: list, Keep: keep})
}

func position(op ir.Op, t *Tensor, dt DType, axes []int) *Tensor {
	h := hold(op.String(), &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	list, err := reducedAxes(axes, t.Rank())
	if err != nil {
		return failed(op.String(), err, t)
	}
	args := [...]stream.Arg{arg(t)}
	return record(op, dt, nil, &ir.Attr{Axes: list}, args[:])
}

// reducedAxes resolves axes and sorts them; none means all.
func reducedAxes(axes []int, rank int) ([]int, error) {
	list, err := axesOf(axes, rank)
	if err != nil {
		return nil, err
	}
	if len(axes) == 0 {
		for i := range rank {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return list, nil
}
