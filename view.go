package millrace

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// Views say where elements are found and compute nothing. A view of a tensor in memory is only
// metadata. The dtype of a view is its operand's.

// Reshape gives the same elements, in row-major order, another shape with as many elements:
// NumPy's and PyTorch's reshape. One dimension may be -1; it is computed from the others. Without
// dimensions the result is 0-d. A shape of another number of elements is ErrShape.
func (t *Tensor) Reshape(dims ...int) *Tensor {
	h := hold("reshape", &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	shape := append(ir.Shape{}, dims...)
	if i := slices.Index(shape, -1); i >= 0 {
		shape[i] = 1
		rest := 0
		if shape.Check() == nil {
			rest = shape.Elems()
		}
		n := t.Len()
		if rest == 0 || n%rest != 0 {
			return failed("reshape", shapeErr("%v does not fit %v", t.shape(), ir.Shape(slices.Clone(dims))), t)
		}
		shape[i] = n / rest
	}
	return view(ir.Reshape, t, shape, nil)
}

// Permute puts the dimensions in another order: PyTorch's permute, NumPy's transpose. Dimension i
// of the result is dimension axes[i] of t. Negative axes count from the last. Axes that do not
// name every dimension once are ErrShape.
func (t *Tensor) Permute(axes ...int) *Tensor {
	h := hold("permute", &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	order, err := axesOf(axes, t.Rank())
	if err == nil && len(order) != t.Rank() {
		err = shapeErr("%d axes for %v", len(order), t.shape())
	}
	if err != nil {
		return failed("permute", err, t)
	}
	return view(ir.Permute, t, nil, &ir.Attr{Axes: order})
}

// T reverses the order of the dimensions: the transpose of a matrix, and NumPy's T.
func (t *Tensor) T() *Tensor {
	h := hold("permute", &t)
	defer h.end()
	order := make([]int, t.Rank())
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	return t.Permute(order...)
}

// Expand repeats dimensions of size 1, and adds dimensions in front, to reach a shape: NumPy's
// broadcast_to, PyTorch's expand. Nothing is copied. A dimension that is neither 1 nor the wanted
// size is ErrShape.
func (t *Tensor) Expand(dims ...int) *Tensor {
	h := hold("expand", &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	return view(ir.Expand, t, append(ir.Shape{}, dims...), nil)
}

// Flip reverses the order of the elements along the axes, or along all axes if none is given:
// NumPy's and PyTorch's flip. Negative axes count from the last. An axis that does not exist or
// is given twice is ErrShape.
func (t *Tensor) Flip(axes ...int) *Tensor {
	h := hold("flip", &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	in := t.shape()
	list, err := axesOf(axes, len(in))
	if err != nil {
		return failed("flip", err, t)
	}
	attr := &ir.Attr{Start: make([]int, len(in)), Step: make([]int, len(in))}
	for i, n := range in {
		attr.Step[i] = 1
		if n > 0 && (len(axes) == 0 || slices.Contains(list, i)) {
			attr.Start[i], attr.Step[i] = n-1, -1
		}
	}
	return view(ir.Slice, t, slices.Clone(in), attr)
}

// Squeeze removes the axes, each of size 1, or all dimensions of size 1 if no axis is given:
// NumPy's and PyTorch's squeeze. Negative axes count from the last. An axis of another size is
// ErrShape, and so is one that does not exist or is given twice.
func (t *Tensor) Squeeze(axes ...int) *Tensor {
	h := hold("squeeze", &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	in := t.shape()
	list, err := axesOf(axes, len(in))
	if err != nil {
		return failed("squeeze", err, t)
	}
	out := ir.Shape{}
	for i, n := range in {
		chosen := slices.Contains(list, i)
		if chosen && n != 1 {
			return failed("squeeze", shapeErr("axis %d of %v is not of size 1", i, in), t)
		}
		if !chosen && (n != 1 || len(axes) > 0) {
			out = append(out, n)
		}
	}
	return view(ir.Reshape, t, out, nil)
}

// Unsqueeze inserts a dimension of size 1 that becomes dimension axis of the result: PyTorch's
// unsqueeze, NumPy's expand_dims. A negative axis counts from the result's last, so -1 appends
// one. An axis outside [-rank-1, rank], or a result of more than 8 dimensions, is ErrShape.
func (t *Tensor) Unsqueeze(axis int) *Tensor {
	h := hold("unsqueeze", &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	in := t.shape()
	i := axis
	if i < 0 {
		i += len(in) + 1
	}
	if i < 0 || i > len(in) {
		return failed("unsqueeze", shapeErr("axis %d for %v", axis, in), t)
	}
	return view(ir.Reshape, t, slices.Insert(slices.Clone(in), i, 1), nil)
}

// axesOf resolves negative axes, and returns an error for an axis that does not exist or is given
// twice.
func axesOf(axes []int, rank int) ([]int, error) {
	list := make([]int, len(axes))
	for i, a := range axes {
		if a < -rank || a >= rank {
			return nil, shapeErr("axis %d of a tensor of rank %d", a, rank)
		}
		if a < 0 {
			a += rank
		}
		if slices.Contains(list[:i], a) {
			return nil, shapeErr("axis %d is given twice", a)
		}
		list[i] = a
	}
	return list, nil
}
