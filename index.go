package millrace

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// IndexMode says how a gather or a scatter treats an index out of range.
type IndexMode = ir.IndexMode

// The modes of gathers and scatters.
const (
	// IndexError makes the result carry an error that wraps [ErrIndex] and names the index. The
	// error is known when the result is computed; a GPU must wait for it. It is the default.
	IndexError IndexMode = ir.IndexError
	// IndexClamp uses the nearest index in range.
	IndexClamp IndexMode = ir.IndexClamp
	// IndexDrop reads 0 in a gather, and writes nothing in a scatter.
	IndexDrop IndexMode = ir.IndexDrop
	// IndexFromEnd counts negative indices from the last element, as NumPy does. Other indices
	// out of range are errors, as with IndexError.
	IndexFromEnd IndexMode = 128
)

// TakeAlong takes for every position of indices one element of t: the element at that position,
// but with the index as its place along axis. It is NumPy's take_along_axis, PyTorch's gather.
// Indices are integers (else ErrDType; those of 64 bits need a device that has them) and have t's
// rank. Along the other dimensions, t and indices broadcast (else ErrShape). The dtype is t's. A
// negative axis counts from the last. The mode says what an index out of range does, negative
// ones too; without one it is [IndexError]. With [IndexFromEnd], negative indices count from the
// last element.
func (t *Tensor) TakeAlong(indices *Tensor, axis int, mode ...IndexMode) (r *Tensor) {
	const name = "takealong"
	c := compose(name, nil, &t, &indices)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	list, err := axesOf([]int{axis}, t.Rank())
	if err != nil {
		return failed(name, err, t, indices)
	}
	return t.gather(indices, list[0], mode)
}

// Take takes slices of t at the indices along axis: NumPy's take, PyTorch's index_select and
// embedding look-up. The dimensions of indices replace t's dimension axis in the result. Dtypes
// and modes are as for [Tensor.TakeAlong]. A result of more than 8 dimensions is ErrShape.
func (t *Tensor) Take(indices *Tensor, axis int, mode ...IndexMode) (r *Tensor) {
	const name = "take"
	c := compose(name, nil, &t, &indices)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	list, err := axesOf([]int{axis}, t.Rank())
	if err != nil {
		return failed(name, err, t, indices)
	}
	a, in, at := list[0], t.shape(), indices.shape()
	if len(in)-1+len(at) > ir.MaxRank {
		return failed(name, shapeErr("%v taken at %v indices has more than %d dimensions", in, at, ir.MaxRank), t, indices)
	}
	// t gets a dimension of 1 for each dimension of the indices except the last. The indices get
	// a dimension of 1 for each other dimension of t.
	if len(at) == 0 {
		return t.Take(indices.Reshape(1), a, mode...).Squeeze(a)
	}
	wide := slices.Concat(in[:a], slices.Repeat([]int{1}, len(at)-1), in[a:])
	flat := slices.Concat(slices.Repeat([]int{1}, a), at, slices.Repeat([]int{1}, len(in)-a-1))
	return t.Reshape(wide...).gather(indices.Reshape(flat...), a+len(at)-1, mode)
}

func (t *Tensor) gather(indices *Tensor, axis int, mode []IndexMode) *Tensor {
	m, err := modeOf(mode)
	if err == nil && !indices.DType().IsInt() {
		err = dtypeErr("indices cannot have dtype %v, only integers", indices.DType())
	}
	if err != nil {
		return failed("gather", err, t, indices)
	}
	args := [...]stream.Arg{arg(t), arg(indices.asIndices(t.shape()[axis], m))}
	return record(ir.Gather, ir.Invalid, nil, &ir.Attr{Axes: []int{axis}, Mode: plainMode(m)}, args[:])
}

// asIndices returns indices that the engine takes: signed integers of 32 or 64 bits, none of
// which counts from the end of n elements. It is t itself if t is such.
func (t *Tensor) asIndices(n int, mode IndexMode) (r *Tensor) {
	defer within(t).end(&r)
	to := t.DType()
	if ir.IndexDTypes.Has(to) && mode != IndexFromEnd {
		return t
	}
	switch {
	case ir.IndexDTypes.Has(to):
	case to.Bits() < 32, to == Uint32 && !t.Stream().Device().Supports(Int64): // a number that is too large stays too large
		to = Int32
	default:
		to = Int64
	}
	if to == Int32 && n > math.MaxInt32 && mode == IndexFromEnd {
		to = Int64
	}
	i := inDType(t, to)
	if mode != IndexFromEnd || !t.DType().IsSigned() {
		return i
	}
	// An index further from the end stays as it is, because the error must name it as the program gave it.
	behind := i.LtScalar(0).And(i.GeScalar(-float64(n)))
	return Where(behind, i.AddScalar(float64(n)), i)
}

// plainMode returns a mode that the engine knows.
func plainMode(m IndexMode) IndexMode {
	if m == IndexFromEnd {
		return IndexError
	}
	return m
}

func modeOf(mode []IndexMode) (IndexMode, error) {
	switch {
	case len(mode) == 0:
		return IndexError, nil
	case len(mode) > 1 || mode[0] >= ir.NumIndexModes && mode[0] != IndexFromEnd:
		return 0, shapeErr("index modes %v are not one known mode", mode)
	}
	return mode[0], nil
}

// DynamicSlice takes sizes[i] elements along each dimension i, beginning at starts[i]: XLA's
// DynamicSlice. starts is a vector of Int32 or Int64 (else ErrDType) with one element per
// dimension (else ErrShape). Its values are needed only when the result is computed. Starts are
// clamped so that the slice is inside t.
func (t *Tensor) DynamicSlice(starts *Tensor, sizes ...int) (r *Tensor) {
	const name = "dynamicslice"
	c := compose(name, nil, &t, &starts)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	if r := t.dynamic(name, starts, sizes); r != nil {
		return r
	}
	return inTurn(len(sizes), t, func(x *Tensor, i int) *Tensor {
		if sizes[i] == t.shape()[i] {
			return x
		}
		return x.Take(dynamicIndex(starts, i, sizes[i], t.shape()[i]), i)
	})
}

// DynamicUpdate returns t with the elements from starts on replaced by u: XLA's
// DynamicUpdateSlice. u has t's rank and dtype, and is no larger than t. Starts and errors are as
// for [Tensor.DynamicSlice].
func (t *Tensor) DynamicUpdate(u, starts *Tensor) (r *Tensor) {
	const name = "dynamicupdate"
	c := compose(name, nil, &t, &u, &starts)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	if r := t.dynamic(name, starts, u.shape()); r != nil {
		return r
	}
	if u.DType() != t.DType() {
		return failed(name, dtypeErr("updates of %v cannot go into a tensor of %v; use Cast", u.DType(), t.DType()), t, u)
	}
	if t.Rank() == 0 {
		return u.Reshape()
	}
	// Inside the window, an element is u's at its distance from the start.
	in := t.shape()
	var mask *Tensor
	moved, p := u, within(t)
	for i, n := range u.shape() {
		off := ArangeOn(beside(t), starts.DType(), 0, float64(in[i]), 1).Sub(dynamicStart(starts, i, n, in[i]))
		moved = moved.Take(off, i, IndexDrop)
		inside := off.GeScalar(0).And(off.LtScalar(float64(n)))
		shape := slices.Repeat([]int{1}, len(in))
		shape[i] = in[i]
		if inside = inside.Reshape(shape...); i > 0 {
			inside = mask.And(inside)
		}
		mask = inside
		p.end(&mask, &moved)
	}
	return Where(mask, moved, t)
}

// dynamic checks the operands that dynamic slices and updates share. It returns nil if they are
// valid.
func (t *Tensor) dynamic(name string, starts *Tensor, sizes []int) *Tensor {
	in := t.shape()
	switch {
	case len(sizes) != len(in) || !starts.shape().Equal(ir.Shape{len(in)}):
		return failed(name, shapeErr("starts of shape %v and %d sizes do not fit %v", starts.shape(), len(sizes), in), t, starts)
	case !ir.IndexDTypes.Has(starts.DType()):
		return failed(name, dtypeErr("starts cannot have dtype %v, only Int32 or Int64", starts.DType()), t, starts)
	}
	for i, n := range sizes {
		if n < 0 || n > in[i] {
			return failed(name, shapeErr("%d of the %d elements of dimension %d cannot be selected", n, in[i], i), t, starts)
		}
	}
	return nil
}

// dynamicStart returns starts[i], clamped.
func dynamicStart(starts *Tensor, i, n, size int) *Tensor {
	return starts.Slice(At(i)).ClampScalar(0, float64(size-n))
}

// dynamicIndex returns the n positions from starts[i] on.
func dynamicIndex(starts *Tensor, i, n, size int) *Tensor {
	from := dynamicStart(starts, i, n, size)
	return ArangeOn(beside(starts), starts.DType(), 0, float64(n), 1).Add(from)
}

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

// ScatterSet is [Tensor.Scatter] with [CombineSet]: of several updates of one element, the last one
// remains. t may have any dtype.
func (t *Tensor) ScatterSet(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.scatterAlong("scatterset", indices, updates, axis, CombineSet, mode)
}

// ScatterAdd is [Tensor.Scatter] with [CombineAdd]. Numbers only, else ErrDType.
func (t *Tensor) ScatterAdd(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.scatterAlong("scatteradd", indices, updates, axis, CombineAdd, mode)
}

// ScatterMax is [Tensor.Scatter] with [CombineMax]. Numbers only, else ErrDType.
func (t *Tensor) ScatterMax(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.scatterAlong("scattermax", indices, updates, axis, CombineMax, mode)
}

// ScatterMin is [Tensor.Scatter] with [CombineMin]. Numbers only, else ErrDType.
func (t *Tensor) ScatterMin(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.scatterAlong("scattermin", indices, updates, axis, CombineMin, mode)
}

// ScatterMul is [Tensor.Scatter] with [CombineMul]. Numbers only, else ErrDType.
func (t *Tensor) ScatterMul(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.scatterAlong("scattermul", indices, updates, axis, CombineMul, mode)
}

func (t *Tensor) scatterAlong(name string, indices, updates *Tensor, axis int, how Combine, mode []IndexMode) (r *Tensor) {
	c := compose(name, nil, &t, &indices, &updates)
	defer c.end(&r)
	a, m, bad := t.scatters(name, c.bad, indices, updates, axis, how, mode)
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
		return failed(name, shapeErr("updates %v do not fit indices %v of %v along axis %d", u, at, in, a), t, indices, updates)
	}
	return t.scatter(indices.Expand(shape...), updates.Expand(shape...), a, how, m)
}

// Put returns t with the slices along axis that the indices name combined with updates. It is the
// opposite of [Tensor.Take]: PyTorch's index_add and index_copy. The updates broadcast to t's shape
// with the dimensions of indices in place of dimension axis (else ErrShape, and so are more than 8
// dimensions). Indices are integers, and updates have t's dtype (else ErrDType). The result has t's
// shape and dtype. Otherwise it is like [Tensor.Scatter]: slices are combined one after another, in
// the row-major order of the indices.
//
// The gradient of an embedding look-up table.Take(ids, 0) is Zeros(…).Put(ids, grad, 0,
// CombineAdd).
func (t *Tensor) Put(indices, updates *Tensor, axis int, how Combine, mode ...IndexMode) *Tensor {
	return t.put("put", indices, updates, axis, how, mode)
}

// IndexSet is [Tensor.Put] with [CombineSet]: of several slices for one place, the last one
// remains. t may have any dtype.
func (t *Tensor) IndexSet(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.put("indexset", indices, updates, axis, CombineSet, mode)
}

// IndexAdd is [Tensor.Put] with [CombineAdd]. Numbers only, else ErrDType.
func (t *Tensor) IndexAdd(indices, updates *Tensor, axis int, mode ...IndexMode) *Tensor {
	return t.put("indexadd", indices, updates, axis, CombineAdd, mode)
}

func (t *Tensor) put(name string, indices, updates *Tensor, axis int, how Combine, mode []IndexMode) (r *Tensor) {
	c := compose(name, nil, &t, &indices, &updates)
	defer c.end(&r)
	a, m, bad := t.scatters(name, c.bad, indices, updates, axis, how, mode)
	if bad != nil {
		return bad
	}
	in, at, u := t.shape(), indices.shape(), updates.shape()
	full := slices.Concat(in[:a], at, in[a+1:])
	if len(full) > ir.MaxRank {
		return failed(name, shapeErr("%v with %v indices has more than %d dimensions", in, at, ir.MaxRank), t, indices, updates)
	}
	if !broadcastsTo(u, full) {
		return failed(name, shapeErr("updates %v do not fit %v indices of %v along axis %d", u, at, in, a), t, indices, updates)
	}
	// Merge the dimensions of the indices into one, and expand the indices along all other
	// dimensions.
	rows := slices.Concat(in[:a], []int{at.Elems()}, in[a+1:])
	flat := slices.Concat(slices.Repeat([]int{1}, a), []int{at.Elems()}, slices.Repeat([]int{1}, len(in)-a-1))
	one, wide := indices.Reshape(flat...), updates.Expand(full...)
	i, v := one.Expand(rows...), wide.Reshape(rows...)
	return t.scatter(i, v, a, how, m)
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
		err = shapeErr("way %d to combine does not exist", how)
	case !indices.DType().IsInt():
		err = dtypeErr("indices cannot have dtype %v, only integers", indices.DType())
	case updates.DType() != t.DType():
		err = dtypeErr("updates of %v cannot go into a tensor of %v; use Cast", updates.DType(), t.DType())
	case op != ir.OpInvalid && !op.Info().In.Has(t.DType()):
		err = dtypeErr("%v cannot be combined by %v", t.DType(), how)
	}
	if err != nil {
		return 0, 0, failed(name, err, t, indices, updates)
	}
	return list[0], m, nil
}

func (t *Tensor) scatter(indices, updates *Tensor, axis int, how Combine, mode IndexMode) *Tensor {
	args := [...]stream.Arg{arg(t), arg(indices.asIndices(t.shape()[axis], mode)), arg(updates)}
	return record(ir.Scatter, ir.Invalid, nil, &ir.Attr{Axes: []int{axis}, Mode: plainMode(mode), Combine: how}, args[:])
}
