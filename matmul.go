package millrace

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// MatMul is the matrix product, as NumPy's matmul: of (…, m, k) and (…, k, n)
// it is (…, m, n), where the leading dimensions broadcast. A vector on the left
// is a row, on the right a column, and its dimension is missing from the
// result; two vectors give a 0-d tensor. Both have one dtype of numbers, which
// is the result's (else ErrDType; integers wrap); a 0-d operand, or inner
// dimensions that differ, are ErrShape.
//
// Each element of the result is summed in an order that depends on k only
// (docs/numerics.md), so a row of a batch has the bits it has alone. Transposed
// operands are read as they lie: use [Tensor.T] or [Tensor.Permute] freely.
func (t *Tensor) MatMul(u *Tensor) *Tensor {
	const name = "matmul"
	for _, x := range []*Tensor{t, u} {
		if r := unknown(name, x); r != nil {
			return r
		}
	}
	a, b := t.shape(), u.shape()
	if len(a) == 0 || len(b) == 0 {
		return failed(name, shapeErr("%v and %v: a 0-d tensor is no matrix", a, b), t, u)
	}
	inner := len(b) - 2
	if len(b) == 1 {
		inner = 0
	}
	if a[len(a)-1] != b[inner] {
		return failed(name, shapeErr("%v and %v: %d columns and %d rows", a, b, a[len(a)-1], b[inner]), t, u)
	}
	// Labels of the dimensions: the last two of a are m and k, of b k and n; the
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

// leading are the labels of n leading dimensions.
func leading(n int) []int {
	var ls []int
	for i := range max(n, 0) {
		ls = append(ls, i-n)
	}
	return ls
}

// DotGeneral multiplies the elements of t and u that have equal positions along
// pairs of batch axes and of contracted axes, and sums over the contracted ones.
// The result has the batch dimensions in the order given, then the other
// dimensions of t, then those of u. Axes are given for t and for u, pairwise,
// and negative ones count from the last; pairs of different size, lists of
// different length, and axes that are not there or given twice are ErrShape.
// Dtypes and order are as for [Tensor.MatMul].
func (t *Tensor) DotGeneral(u *Tensor, batchT, batchU, contractT, contractU []int) *Tensor {
	const name = "dotgeneral"
	for _, x := range []*Tensor{t, u} {
		if r := unknown(name, x); r != nil {
			return r
		}
	}
	if len(batchT) != len(batchU) || len(contractT) != len(contractU) {
		return failed(name, shapeErr("%d and %d batch axes, %d and %d contracted ones", len(batchT), len(batchU), len(contractT), len(contractU)), t, u)
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
	// Pairs are labelled first, then what is left of t and of u.
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

// labelled gives axis axes[i] the label i, and the others -1.
func labelled(rank int, axes []int) []int {
	ls := make([]int, rank)
	for i := range ls {
		ls[i] = slices.Index(axes, i)
	}
	return ls
}

// contract is the one way to a contraction: each dimension has a label, equal
// labels are walked together, those in out are the result's dimensions, in that
// order, and those in sum are summed over. Every label of out and sum is in lt
// or lu, and no operand has a label twice. Sizes of equal labels are equal or 1.
func contract(name string, t *Tensor, lt []int, u *Tensor, lu []int, out, sum []int) *Tensor {
	if t.DType() != u.DType() {
		return failed(name, dtypeErr("%v and %v; use Cast", t.DType(), u.DType()), t, u)
	}
	all := slices.Concat(out, sum)
	if len(all) > ir.MaxRank {
		return failed(name, shapeErr("%v and %v: %d dimensions in all, %d are possible", t.shape(), u.shape(), len(all), ir.MaxRank), t, u)
	}
	shape := make([]int, len(all))
	for i, l := range all {
		shape[i] = 1
		for _, o := range []struct {
			ls []int
			in ir.Shape
		}{{lt, t.shape()}, {lu, u.shape()}} {
			if d := slices.Index(o.ls, l); d >= 0 && o.in[d] != 1 {
				if shape[i] != 1 && shape[i] != o.in[d] {
					return failed(name, shapeErr("%v and %v: dimensions of %d and %d elements", t.shape(), u.shape(), shape[i], o.in[d]), t, u)
				}
				shape[i] = o.in[d]
			}
		}
	}
	axes := make([]int, len(sum))
	for i := range axes {
		axes[i] = len(out) + i
	}
	x, y := spread(t, lt, all, shape), spread(u, lu, all, shape)
	var r *Tensor
	if len(axes) > 0 {
		r = dot(x, y, axes)
	} else {
		r = x.Mul(y)
	}
	for _, v := range []*Tensor{x, y} {
		if v != t && v != u {
			done(v)
		}
	}
	return r
}

// spread views t with a dimension for every label of all, in that order, of the
// sizes given; t itself where it is so already.
func spread(t *Tensor, labels, all, shape []int) *Tensor {
	var order []int
	grown := make([]int, len(all))
	for i, l := range all {
		grown[i] = 1
		if d := slices.Index(labels, l); d >= 0 {
			order = append(order, d)
			grown[i] = t.shape()[d]
		}
	}
	r := t
	step := func(v *Tensor) {
		if r != t {
			done(r)
		}
		r = v
	}
	if !slices.IsSorted(order) {
		step(r.Permute(order...))
	}
	if !slices.Equal(grown, r.shape()) {
		step(r.Reshape(grown...))
	}
	if !slices.Equal(shape, r.shape()) {
		step(r.Expand(shape...))
	}
	return r
}
