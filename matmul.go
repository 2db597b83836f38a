package millrace

import (
	"slices"

	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/ir"
)

// MatMul is the matrix product: NumPy's and PyTorch's matmul. The product of (…, m, k) and (…, k,
// n) is (…, m, n), and the leading dimensions broadcast. A vector on the left is a row, a vector
// on the right is a column, and the result lacks that dimension; two vectors give a 0-d tensor.
// Both operands have one dtype of numbers, which is the result's too (else ErrDType); integers
// wrap around. A 0-d operand is ErrShape, and so are inner dimensions that differ and leading
// ones that do not broadcast.
//
// The order in which an element is summed depends only on k (docs/numerics.md), so a row of a
// batch has the same bits as alone. Transposed operands are read in place, without a copy: use
// [Tensor.T] or [Tensor.Permute] freely.
func (t *Tensor) MatMul(u *Tensor) (r *Tensor) {
	const name = "matmul"
	c := compose(name, nil, &t, &u)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	a, b := t.shape(), u.shape()
	if len(a) == 0 || len(b) == 0 {
		return failed(name, shapeErr("%v and %v: a 0-d tensor is not a matrix", a, b), t, u)
	}
	inner := len(b) - 2
	if len(b) == 1 {
		inner = 0
	}
	if a[len(a)-1] != b[inner] {
		return failed(name, shapeErr("%v has %d columns, %v has %d rows", a, a[len(a)-1], b, b[inner]), t, u)
	}
	// Labels of the dimensions: the last two of a are m and k, those of b are k and n. The
	// leading ones have negative labels, counted from their last.
	const m, n, k = 1, 2, 3
	la := append(leading(len(a)-2), m, k)
	lb := append(leading(len(b)-2), k, n)
	if len(a) == 1 {
		la = []int{k}
	}
	if len(b) == 1 {
		lb = []int{k}
	}
	lead := la[:max(0, len(a)-2)]
	if len(b) > len(a) || len(a) == 1 {
		lead = lb[:max(0, len(b)-2)]
	}
	out := slices.Clone(lead)
	if len(a) > 1 {
		out = append(out, m)
	}
	if len(b) > 1 {
		out = append(out, n)
	}
	return contract(name, t, la, u, lb, out, []int{k})
}

// leading returns the labels of n leading dimensions.
func leading(n int) []int {
	var ls []int
	for i := range max(n, 0) {
		ls = append(ls, i-n)
	}
	return ls
}

// DotGeneral multiplies the elements of t and u that have equal positions along pairs of batch
// axes and of contracted axes, and sums over the contracted ones: XLA's DotGeneral. The result
// has the batch dimensions in the given order, then the other dimensions of t, then those of u.
// The axes of t and of u are given pairwise; negative ones count from the last. A pair of
// different sizes is ErrShape, and so are lists of different lengths and axes that do not exist
// or are given twice. Dtypes and the order of sums are as for [Tensor.MatMul].
func (t *Tensor) DotGeneral(u *Tensor, batchT, batchU, contractT, contractU []int) (r *Tensor) {
	const name = "dotgeneral"
	c := compose(name, nil, &t, &u)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	if len(batchT) != len(batchU) || len(contractT) != len(contractU) {
		return failed(name, shapeErr("the operands have %d and %d batch axes, and %d and %d contracted axes", len(batchT), len(batchU), len(contractT), len(contractU)), t, u)
	}
	axesT, err := axesOf(slices.Concat(batchT, contractT), t.Rank())
	if err != nil {
		return failed(name, err, t, u)
	}
	axesU, err := axesOf(slices.Concat(batchU, contractU), u.Rank())
	if err != nil {
		return failed(name, err, t, u)
	}
	for i := range axesT {
		if p, q := t.shape()[axesT[i]], u.shape()[axesU[i]]; p != q {
			return failed(name, shapeErr("%v and %v: axes %d and %d are of size %d and %d", t.shape(), u.shape(), axesT[i], axesU[i], p, q), t, u)
		}
	}
	// Label the pairs first, then the other dimensions of t and of u.
	lt, lu := labelled(t.Rank(), axesT), labelled(u.Rank(), axesU)
	next := len(axesT)
	var out, sum []int
	for i := range axesT {
		if i < len(batchT) {
			out = append(out, i)
		} else {
			sum = append(sum, i)
		}
	}
	for _, ls := range [][]int{lt, lu} {
		for i, l := range ls {
			if l < 0 {
				ls[i] = next
				out = append(out, next)
				next++
			}
		}
	}
	return contract(name, t, lt, u, lu, out, sum)
}

// labelled gives axis axes[i] the label i, and the other axes -1.
func labelled(rank int, axes []int) []int {
	ls := make([]int, rank)
	for i := range ls {
		ls[i] = slices.Index(axes, i)
	}
	return ls
}

// contract makes every contraction. Each dimension has a label. Dimensions with equal labels are
// iterated together, and their sizes are equal or 1. The labels in out are the result's
// dimensions, in that order; those in sum are summed over. Every label of out and sum is in lt or
// lu, and no operand has a label twice.
func contract(name string, t *Tensor, lt []int, u *Tensor, lu []int, out, sum []int) (r *Tensor) {
	var rule adhook.Composite
	if followed(t, u) {
		rule = adhook.Contraction{T: lt, U: lu, Out: out, Sum: sum}
	}
	c := compose(name, rule, &t, &u)
	defer c.end(&r)
	switch dt := t.DType(); {
	case dt != u.DType():
		return failed(name, dtypeErr("the operands have dtypes %v and %v; use Cast", dt, u.DType()), t, u)
	case dt == Bool:
		return failed(name, dtypeErr("%v is not a number dtype", dt), t, u)
	case len(out) > ir.MaxRank:
		return failed(name, shapeErr("%v and %v give a result of %d dimensions, at most %d are possible", t.shape(), u.shape(), len(out), ir.MaxRank), t, u)
	}
	all := slices.Concat(out, sum)
	size := make(labelSizes, 0, ir.MaxRank)
	for _, o := range []struct {
		labels []int
		shape  ir.Shape
	}{{lt, t.shape()}, {lu, u.shape()}} {
		for d, l := range o.labels {
			n, known := size.of(l)
			if known && n != 1 && o.shape[d] != 1 && n != o.shape[d] {
				return failed(name, shapeErr("%v and %v have %d and %d elements along one dimension", t.shape(), u.shape(), n, o.shape[d]), t, u)
			}
			if !known || n == 1 {
				size.set(l, o.shape[d])
			}
		}
	}
	if len(all) > ir.MaxRank {
		return merged(t, lt, u, lu, out, sum, size)
	}
	return spread(t, lt, all, size).product(spread(u, lu, all, size), len(out), len(all))
}

// labelSizes has the size of each label's dimension. There are few labels, so a linear search is
// faster than a map.
type labelSizes []struct{ label, size int }

func (s labelSizes) of(label int) (size int, known bool) {
	for _, e := range s {
		if e.label == label {
			return e.size, true
		}
	}
	return 0, false
}

func (s labelSizes) at(label int) int {
	n, _ := s.of(label)
	return n
}

func (s *labelSizes) set(label, size int) {
	for i := range *s {
		if e := &(*s)[i]; e.label == label {
			e.size = size
			return
		}
	}
	*s = append(*s, struct{ label, size int }{label, size})
}

// product multiplies two tensors of one shape and sums over axes first to end-1, if there are
// any.
func (t *Tensor) product(u *Tensor, first, end int) *Tensor {
	if first == end {
		return t.Mul(u)
	}
	axes := make([]int, end-first)
	for i := range axes {
		axes[i] = first + i
	}
	return dot(t, u, axes)
}

// merged is contract for labels that would need more dimensions than a tensor can have: it merges
// the dimensions of each kind (batch, rows, columns, summed) into one.
func merged(t *Tensor, lt []int, u *Tensor, lu []int, out, sum []int, size labelSizes) *Tensor {
	var batch, rows, columns []int
	for _, l := range out {
		switch {
		case !slices.Contains(lt, l):
			columns = append(columns, l)
		case !slices.Contains(lu, l):
			rows = append(rows, l)
		default:
			batch = append(batch, l)
		}
	}
	b, m, n, k := elements(batch, size), elements(rows, size), elements(columns, size), elements(sum, size)
	flat := func(t *Tensor, labels, own []int, shape ...int) *Tensor {
		return spread(t, labels, slices.Concat(batch, own, sum), size).Reshape(shape...).Expand(b, m, n, k)
	}
	x, y := flat(t, lt, rows, b, m, 1, k), flat(u, lu, columns, b, 1, n, k)
	r := x.product(y, 3, 4)
	apart := slices.Concat(batch, rows, columns)
	shape, order := make([]int, len(out)), make([]int, len(out))
	for i, l := range apart {
		shape[i] = size.at(l)
		order[slices.Index(out, l)] = i
	}
	return r.Reshape(shape...).Permute(order...)
}

// elements returns the product of the sizes of labels.
func elements(labels []int, size labelSizes) int {
	n := 1
	for _, l := range labels {
		n *= size.at(l)
	}
	return n
}

// spread returns a view of t with one dimension for every label of all, in that order, with the
// given sizes. It returns t itself if t has this form already.
func spread(t *Tensor, labels, all []int, size labelSizes) *Tensor {
	order := make([]int, 0, len(labels))
	shape, grown := make([]int, len(all)), make([]int, len(all))
	for i, l := range all {
		shape[i], grown[i] = size.at(l), 1
		if d := slices.Index(labels, l); d >= 0 {
			order = append(order, d)
			grown[i] = t.shape()[d]
		}
	}
	p := within(t)
	if !slices.IsSorted(order) {
		t = view(ir.Permute, t, nil, &ir.Attr{Axes: order})
	}
	if !slices.Equal(grown, t.shape()) {
		t = view(ir.Reshape, t, grown, nil)
		p.end(&t)
	}
	if !slices.Equal(shape, t.shape()) {
		t = view(ir.Expand, t, shape, nil)
		p.end(&t)
	}
	return t
}
