package millrace

import "slices"

// Transpose swaps dimensions i and j: PyTorch's transpose, NumPy's swapaxes. [Tensor.Permute]
// puts all dimensions in any order, and [Tensor.T] reverses them. A negative axis counts from the
// last. An axis that does not exist is ErrShape.
func (t *Tensor) Transpose(i, j int) *Tensor {
	return t.reordered("transpose", i, j, func(order []int, i, j int) []int {
		order[i], order[j] = order[j], order[i]
		return order
	})
}

// MoveAxis moves dimension from to place to; the dimensions between them move by one place to
// fill the gap: NumPy's moveaxis, PyTorch's movedim. A negative axis counts from the last. An
// axis that does not exist is ErrShape.
func (t *Tensor) MoveAxis(from, to int) *Tensor {
	return t.reordered("moveaxis", from, to, func(order []int, from, to int) []int {
		return slices.Insert(slices.Delete(order, from, from+1), to, from)
	})
}

func (t *Tensor) reordered(name string, i, j int, change func(order []int, i, j int) []int) *Tensor {
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	order := make([]int, t.Rank())
	for d := range order {
		order[d] = d
	}
	a, err := axesOf([]int{i}, len(order))
	if err == nil {
		var b []int
		if b, err = axesOf([]int{j}, len(order)); err == nil {
			return t.Permute(change(order, a[0], b[0])...)
		}
	}
	return failed(name, err, t)
}

// Flatten merges the dimensions from first to last, both included, into one: PyTorch's flatten.
// Flatten(0, -1) gives a vector of all elements, NumPy's ravel; for a 0-d tensor the vector has
// one element. A negative axis counts from the last. An axis that does not exist, or a last
// before first, is ErrShape.
func (t *Tensor) Flatten(first, last int) *Tensor {
	const name = "flatten"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	in := t.shape()
	if len(in) == 0 && (first == 0 || first == -1) && (last == 0 || last == -1) {
		return t.Reshape(1)
	}
	a, err := axesOf([]int{first}, len(in))
	var b []int
	if err == nil {
		b, err = axesOf([]int{last}, len(in))
	}
	if err == nil && a[0] > b[0] {
		err = shapeErr("axes %d to %d of %v", first, last, in)
	}
	if err != nil {
		return failed(name, err, t)
	}
	n := 1
	for _, d := range in[a[0] : b[0]+1] {
		n *= d
	}
	return t.Reshape(slices.Concat(in[:a[0]], []int{n}, in[b[0]+1:])...)
}
