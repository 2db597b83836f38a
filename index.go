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
func (t *Tensor) TakeAlong(indices *Tensor, axis int, mode ...IndexMode) *Tensor {
	const name = "takealong"
	h := hold(name, &t, &indices)
	defer h.end()
	if h.bad != nil {
		return h.bad
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
func (t *Tensor) Take(indices *Tensor, axis int, mode ...IndexMode) *Tensor {
	const name = "take"
	h := hold(name, &t, &indices)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	list, err := axesOf([]int{axis}, t.Rank())
	if err != nil {
		return failed(name, err, t, indices)
	}
	a, in, at := list[0], t.shape(), indices.shape()
	if len(in)-1+len(at) > ir.MaxRank {
		return failed(name, shapeErr("%v by %v indices: more than %d dimensions", in, at, ir.MaxRank), t, indices)
	}
	// t gets a dimension of 1 for each dimension of the indices except the last. The indices get
	// a dimension of 1 for each other dimension of t.
	if len(at) == 0 {
		one := indices.Reshape(1)
		many := t.Take(one, a, mode...)
		r := many.Squeeze(a)
		done(one, many)
		return r
	}
	wide := slices.Concat(in[:a], slices.Repeat([]int{1}, len(at)-1), in[a:])
	flat := slices.Concat(slices.Repeat([]int{1}, a), at, slices.Repeat([]int{1}, len(in)-a-1))
	x, i := t.Reshape(wide...), indices.Reshape(flat...)
	r := x.gather(i, a+len(at)-1, mode)
	done(x, i)
	return r
}

func (t *Tensor) gather(indices *Tensor, axis int, mode []IndexMode) *Tensor {
	m, err := modeOf(mode)
	if err == nil && !indices.DType().IsInt() {
		err = dtypeErr("%v indices: integers only", indices.DType())
	}
	if err != nil {
		return failed("gather", err, t, indices)
	}
	own := indices.asIndices(t.shape()[axis], m)
	args := [...]stream.Arg{arg(t), arg(own)}
	r := record(ir.Gather, ir.Invalid, nil, &ir.Attr{Axes: []int{axis}, Mode: plainMode(m)}, args[:])
	if own != indices {
		done(own)
	}
	return r
}

// asIndices returns indices that the engine takes: signed integers of 32 or 64 bits, none of
// which counts from the end of n elements. It is t itself if t is such, else a new handle.
func (t *Tensor) asIndices(n int, mode IndexMode) *Tensor {
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
	r := still(t)
	if to != t.DType() {
		done(r)
		r = t.Cast(to)
	}
	if mode != IndexFromEnd || !t.DType().IsSigned() {
		return r
	}
	below := r.LtScalar(0)
	within := r.GeScalar(-float64(n)) // else the error must name the index as the program gave it
	behind := below.And(within)
	moved := r.AddScalar(float64(n))
	s := Where(behind, moved, r)
	done(r, below, within, behind, moved)
	return s
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
		return 0, shapeErr("index modes %v", mode)
	}
	return mode[0], nil
}

// DynamicSlice takes sizes[i] elements along each dimension i, beginning at starts[i]: XLA's
// DynamicSlice. starts is a vector of Int32 or Int64 (else ErrDType) with one element per
// dimension (else ErrShape). Its values are needed only when the result is computed. Starts are
// clamped so that the slice is inside t.
func (t *Tensor) DynamicSlice(starts *Tensor, sizes ...int) *Tensor {
	const name = "dynamicslice"
	h := hold(name, &t, &starts)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	if r := t.dynamic(name, starts, sizes); r != nil {
		return r
	}
	r := t.Reshape(t.shape()...)
	for i, n := range sizes {
		if n == t.shape()[i] {
			continue
		}
		at := dynamicIndex(starts, i, n, t.shape()[i])
		next := r.Take(at, i)
		done(r, at)
		r = next
	}
	return r
}

// DynamicUpdate returns t with the elements from starts on replaced by u: XLA's
// DynamicUpdateSlice. u has t's rank and dtype, and is no larger than t. Starts and errors are as
// for [Tensor.DynamicSlice].
func (t *Tensor) DynamicUpdate(u, starts *Tensor) *Tensor {
	const name = "dynamicupdate"
	h := hold(name, &t, &u, &starts)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	if r := t.dynamic(name, starts, u.shape()); r != nil {
		return r
	}
	if u.DType() != t.DType() {
		return failed(name, dtypeErr("%v into %v", u.DType(), t.DType()), t, u)
	}
	if t.Rank() == 0 {
		return u.Reshape()
	}
	// Inside the window, an element is u's at its distance from the start.
	in := t.shape()
	var mask *Tensor
	moved := u.Reshape(u.shape()...)
	for i, n := range u.shape() {
		pos := ArangeOn(t.Stream(), starts.DType(), 0, float64(in[i]), 1)
		from := dynamicStart(starts, i, n, in[i])
		off := pos.Sub(from)
		next := moved.Take(off, i, IndexDrop)
		low := off.GeScalar(0)
		high := off.LtScalar(float64(n))
		inside := low.And(high)
		shape := slices.Repeat([]int{1}, len(in))
		shape[i] = in[i]
		part := inside.Reshape(shape...)
		done(moved, pos, from, off, low, high, inside)
		moved = next
		if mask == nil {
			mask = part
			continue
		}
		both := mask.And(part)
		done(mask, part)
		mask = both
	}
	r := Where(mask, moved, t)
	done(mask, moved)
	return r
}

// dynamic checks the operands that dynamic slices and updates share. It returns nil if they are
// valid.
func (t *Tensor) dynamic(name string, starts *Tensor, sizes []int) *Tensor {
	in := t.shape()
	switch {
	case len(sizes) != len(in) || !starts.shape().Equal(ir.Shape{len(in)}):
		return failed(name, shapeErr("%v starts and %d sizes for %v", starts.shape(), len(sizes), in), t, starts)
	case !ir.IndexDTypes.Has(starts.DType()):
		return failed(name, dtypeErr("%v starts: Int32 or Int64", starts.DType()), t, starts)
	}
	for i, n := range sizes {
		if n < 0 || n > in[i] {
			return failed(name, shapeErr("%d of the %d elements of dimension %d", n, in[i], i), t, starts)
		}
	}
	return nil
}

// dynamicStart returns starts[i], clamped.
func dynamicStart(starts *Tensor, i, n, size int) *Tensor {
	own := starts.Slice(At(i))
	r := own.ClampScalar(0, float64(size-n))
	done(own)
	return r
}

// dynamicIndex returns the n positions from starts[i] on.
func dynamicIndex(starts *Tensor, i, n, size int) *Tensor {
	from := dynamicStart(starts, i, n, size)
	pos := ArangeOn(starts.Stream(), starts.DType(), 0, float64(n), 1)
	r := pos.Add(from)
	done(from, pos)
	return r
}
