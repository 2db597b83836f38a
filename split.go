package millrace

// Split cuts t along an axis into parts of the given sizes, which are views: PyTorch's split. It
// is the opposite of [Concat]. NumPy's split takes positions instead of sizes. A negative axis
// counts from the last. There is one part for each size. Sizes that are negative or do not add up
// to the axis are ErrShape, and so are no sizes and an axis that does not exist. All parts, at
// least one, then carry the error.
func Split(t *Tensor, axis int, sizes ...int) []*Tensor {
	const name = "split"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return failures(name, len(sizes), h.bad)
	}
	list, err := axesOf([]int{axis}, t.Rank())
	if err == nil {
		left := t.shape()[list[0]]
		for _, n := range sizes {
			if n < 0 || n > left {
				left = -1
				break
			}
			left -= n
		}
		if left != 0 || len(sizes) == 0 {
			err = shapeErr("%v into %v along axis %d", t.shape(), sizes, list[0])
		}
	}
	if err != nil {
		return failures(name, len(sizes), failed(name, err, t))
	}
	return t.split(list[0], sizes)
}

func (t *Tensor) split(axis int, sizes []int) []*Tensor {
	parts := make([]*Tensor, len(sizes))
	ranges := make([]Range, axis+1)
	at := 0
	for i, n := range sizes {
		ranges[axis] = R(at, at+n)
		parts[i] = t.Slice(ranges...)
		at += n
	}
	return parts
}

// Chunk cuts t along an axis into n parts of equal size: PyTorch's chunk. The size is that of the
// axis divided by n, rounded up, so the last part may be smaller, and there may be fewer parts.
// An empty axis gives one part. Parts are views, as for [Split]. A negative axis counts from the
// last. An axis that does not exist, or an n below 1, is ErrShape, and the result is one part
// with the error.
func Chunk(t *Tensor, n, axis int) []*Tensor {
	const name = "chunk"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return []*Tensor{h.bad}
	}
	list, err := axesOf([]int{axis}, t.Rank())
	if err == nil && n < 1 {
		err = shapeErr("%d parts", n)
	}
	if err != nil {
		return []*Tensor{failed(name, err, t)}
	}
	all := t.shape()[list[0]]
	size := max((all-1)/n+1, 1)
	var sizes []int
	for left := all; left > 0; left -= size {
		sizes = append(sizes, min(size, left))
	}
	if all == 0 {
		sizes = []int{0}
	}
	return t.split(list[0], sizes)
}
