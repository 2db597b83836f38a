package millrace

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// Sum adds the elements along the axes, which are removed, or all elements
// into a 0-d tensor where none is given. Numbers only, else ErrDType; the dtype
// is t's, and integers wrap. Negative axes count from the last; one that is not
// there or given twice is ErrShape.
//
// The order of the additions is fixed by the elements' logical positions, so
// the bits depend on shape and values only. The sum of no elements is +0.
func (t *Tensor) Sum(axes ...int) *Tensor { return reduce(ir.Sum, t, axes, false) }

// SumKeep is [Tensor.Sum] with the axes kept as dimensions of size 1.
func (t *Tensor) SumKeep(axes ...int) *Tensor { return reduce(ir.Sum, t, axes, true) }

// Max is the largest element along the axes, which are removed, or of all
// elements, a 0-d tensor, where none is given. Numbers only, else ErrDType; the
// dtype is t's. A NaN among the elements makes the result NaN, and -0 is less
// than +0. The maximum of no elements is ErrShape. Axes are as for
// [Tensor.Sum]. The larger of two tensors' elements is [Tensor.Maximum].
func (t *Tensor) Max(axes ...int) *Tensor { return reduce(ir.Max, t, axes, false) }

// MaxKeep is [Tensor.Max] with the axes kept as dimensions of size 1.
func (t *Tensor) MaxKeep(axes ...int) *Tensor { return reduce(ir.Max, t, axes, true) }

func reduce(op ir.Op, t *Tensor, axes []int, keep bool) *Tensor {
	if r := unknown(op.String(), t); r != nil {
		return r
	}
	list, err := axesOf(axes, t.Rank())
	if err != nil {
		return failed(op.String(), err, t)
	}
	if len(axes) == 0 {
		for i := range t.Rank() {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return view(op, t, nil, &ir.Attr{Axes: list, Keep: keep})
}
