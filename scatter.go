package millrace

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Combine says how a scatter changes an element that an index names.
type Combine = ir.Combine

// The ways to combine the old element and the update. Bool tensors can only be set.
const (
	CombineSet Combine = ir.CombineSet // the update replaces it
	CombineAdd Combine = ir.CombineAdd // their sum; integers wrap
	CombineMax Combine = ir.CombineMax // the larger; NaN stays, -0 is below +0
	CombineMin Combine = ir.CombineMin // the smaller; NaN stays
	CombineMul Combine = ir.CombineMul // their product; integers wrap
)

// Scatter returns t with elements along axis combined with updates. The element of updates at a
// position goes to the element of t at that position, but with the index as its place along axis.
// Scatter is the opposite of [Tensor.TakeAlong]: PyTorch's scatter and scatter_reduce, NumPy's
// put_along_axis.
//
// Indices are integers, and updates have t's dtype (else ErrDType). Both broadcast to a shape
// that is t's except along axis; indices have t's rank (else ErrShape). A negative axis counts
// from the last.
//
// If several updates go to one element, they are combined with it one after another, in the
// row-major order of the indices. With [CombineSet] the last one remains. Sums of floats have the
// same bits with any number of threads, fused or not. The mode says what an index out of range
// does, negative ones too; without one it is [IndexError]. With [IndexFromEnd], negative indices
// count from the last element.
//
// The result has t's shape and dtype. t itself does not change. If nothing needs t any more, the
// result reuses t's memory, and only the elements that the indices name are written.
func (t *Tensor) Scatter(indices, updates *Tensor, axis int, how Combine, mode ...IndexMode) *Tensor {
	return t.scatterAlong("scatter", indices, updates, axis, how, mode)
}

// ScatterSet is [Tensor.Scatter] with [CombineSet]: of several updates of one element, the last
// one remains.
func (t *Tensor) ScatterSet(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.scatterAlong("scatterset", indices, updates, axis, CombineSet, mode)
}

// ScatterAdd is [Tensor.Scatter] with [CombineAdd].
func (t *Tensor) ScatterAdd(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.scatterAlong("scatteradd", indices, updates, axis, CombineAdd, mode)
}

// ScatterMax is [Tensor.Scatter] with [CombineMax].
func (t *Tensor) ScatterMax(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.scatterAlong("scattermax", indices, updates, axis, CombineMax, mode)
}

// ScatterMin is [Tensor.Scatter] with [CombineMin].
func (t *Tensor) ScatterMin(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.scatterAlong("scattermin", indices, updates, axis, CombineMin, mode)
}

// ScatterMul is [Tensor.Scatter] with [CombineMul].
func (t *Tensor) ScatterMul(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.scatterAlong("scattermul", indices, updates, axis, CombineMul, mode)
}

func (t *Tensor) scatterAlong(name string, indices, updates *Tensor, axis int, how Combine, mode []IndexMode) *Tensor {
	h := hold(name, &t, &indices, &updates)
	defer h.end()
	a, m, bad := t.scatters(name, h.bad, indices, updates, axis, how, mode)
	if bad != nil {
		return bad
	}
	in, at, u := t.shape(), indices.shape(), updates.shape()
	shape := slices.Clone(in)
	if len(at) == len(in) {
		shape[a] = at[a]
		if d := a - len(in) + len(u); at[a] == 1 && d >= 0 {
			shape[a] = u[d]
		}
	}
	if len(at) != len(in) || !broadcastsTo(at, shape) || !broadcastsTo(u, shape) {
		return failed(name, shapeErr("%v at %v of %v along axis %d", u, at, in, a), t, indices, updates)
	}
	i, v := indices.Expand(shape...), updates.Expand(shape...)
	r := t.scatter(i, v, a, how, m)
	done(i, v)
	return r
}

// Put returns t with the slices along axis that the indices name combined with updates. It is the
// opposite of [Tensor.Take]: PyTorch's index_add and index_copy. The updates broadcast to t's
// shape with the dimensions of indices in place of dimension axis (else ErrShape, and so are more
// than 8 dimensions). Otherwise it is like [Tensor.Scatter]: slices are combined one after
// another, in the row-major order of the indices.
//
// The gradient of an embedding look-up table.Take(ids, 0) is Zeros(…).Put(ids, grad, 0,
// CombineAdd).
func (t *Tensor) Put(indices, updates *Tensor, axis int, how Combine, mode ...IndexMode) *Tensor {
	return t.put("put", indices, updates, axis, how, mode)
}

// IndexSet is [Tensor.Put] with [CombineSet]: of several slices for one place, the last one
// remains.
func (t *Tensor) IndexSet(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.put("indexset", indices, updates, axis, CombineSet, mode)
}

// IndexAdd is [Tensor.Put] with [CombineAdd].
func (t *Tensor) IndexAdd(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.put("indexadd", indices, updates, axis, CombineAdd, mode)
}

func (t *Tensor) put(name string, indices, updates *Tensor, axis int, how Combine, mode []IndexMode) *Tensor {
	h := hold(name, &t, &indices, &updates)
	defer h.end()
	a, m, bad := t.scatters(name, h.bad, indices, updates, axis, how, mode)
	if bad != nil {
		return bad
	}
	in, at, u := t.shape(), indices.shape(), updates.shape()
	full := slices.Concat(in[:a], at, in[a+1:])
	if len(full) > ir.MaxRank {
		return failed(name, shapeErr("%v at %v indices: more than %d dimensions", in, at, ir.MaxRank), t, indices, updates)
	}
	if !broadcastsTo(u, full) {
		return failed(name, shapeErr("%v at %v indices of %v along axis %d", u, at, in, a), t, indices, updates)
	}
	// Merge the dimensions of the indices into one, and expand the indices along all other
	// dimensions.
	rows := slices.Concat(in[:a], []int{at.Elems()}, in[a+1:])
	flat := slices.Concat(slices.Repeat([]int{1}, a), []int{at.Elems()}, slices.Repeat([]int{1}, len(in)-a-1))
	one, wide := indices.Reshape(flat...), updates.Expand(full...)
	i, v := one.Expand(rows...), wide.Reshape(rows...)
	r := t.scatter(i, v, a, how, m)
	done(one, wide, i, v)
	return r
}

// scatters checks the operands that all scatters share. bad is the result if they are invalid.
func (t *Tensor) scatters(name string, unusable, indices, updates *Tensor, axis int, how Combine, mode []IndexMode) (a int, m IndexMode, bad *Tensor) {
	if unusable != nil {
		return 0, 0, unusable
	}
	list, err := axesOf([]int{axis}, t.Rank())
	if err == nil {
		m, err = modeOf(mode)
	}
	switch op := how.Op(); {
	case err != nil:
	case how >= ir.NumCombines:
		err = shapeErr("no way %d to combine", how)
	case !indices.DType().IsInt():
		err = dtypeErr("%v indices: integers only", indices.DType())
	case updates.DType() != t.DType():
		err = dtypeErr("%v into %v; use Cast", updates.DType(), t.DType())
	case op != ir.OpInvalid && !op.Info().In.Has(t.DType()):
		err = dtypeErr("%v cannot be combined by %v", t.DType(), how)
	}
	if err != nil {
		return 0, 0, failed(name, err, t, indices, updates)
	}
	return list[0], m, nil
}

func (t *Tensor) scatter(indices, updates *Tensor, axis int, how Combine, mode IndexMode) *Tensor {
	own := indices.asIndices(t.shape()[axis], mode)
	args := [...]stream.Arg{arg(t), arg(own), arg(updates)}
	r := record(ir.Scatter, ir.Invalid, nil, &ir.Attr{Axes: []int{axis}, Mode: plainMode(mode), Combine: how}, args[:])
	if own != indices {
		done(own)
	}
	return r
}
