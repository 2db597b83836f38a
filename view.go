package millrace

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// Views say where elements are found and compute nothing. A view of a tensor in memory is only
// metadata. The dtype of a view is its operand's.

// Reshape gives the same elements, in row-major order, another shape with as many elements: NumPy's
// and PyTorch's reshape. The dtype is t's. One dimension may be -1; it is computed from the others.
// Without dimensions the result is 0-d. A shape of another number of elements is ErrShape.
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
// of the result is dimension axes[i] of t. The dtype is t's, and nothing is copied. Negative axes
// count from the last. Axes that do not name every dimension once are ErrShape.
func (t *Tensor) Permute(axes ...int) *Tensor {
	h := hold("permute", &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	order, err := axesOf(axes, t.Rank())
	if err == nil && len(order) != t.Rank() {
		err = shapeErr("%d axes were given for %v", len(order), t.shape())
	}
	if err != nil {
		return failed("permute", err, t)
	}
	return view(ir.Permute, t, nil, &ir.Attr{Axes: order})
}

// T reverses the order of the dimensions: the transpose of a matrix, and NumPy's T. The dtype is
// t's, and nothing is copied. It fails only if t carries an error.
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
// broadcast_to, PyTorch's expand. The dtype is t's, and nothing is copied. A dimension that is
// neither 1 nor the wanted size is ErrShape, and so are more than 8 dimensions.
func (t *Tensor) Expand(dims ...int) *Tensor {
	h := hold("expand", &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	return view(ir.Expand, t, append(ir.Shape{}, dims...), nil)
}

// Flip reverses the order of the elements along the axes, or along all axes if none is given:
// NumPy's and PyTorch's flip. Shape and dtype are t's, and nothing is copied. Negative axes count
// from the last. An axis that does not exist or is given twice is ErrShape.
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
// NumPy's and PyTorch's squeeze. The dtype is t's. Negative axes count from the last. An axis of
// another size is ErrShape, and so is one that does not exist or is given twice.
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
// unsqueeze, NumPy's expand_dims. The dtype is t's. A negative axis counts from the result's last,
// so -1 appends one. An axis outside [-rank-1, rank], or a result of more than 8 dimensions, is
// ErrShape.
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
		return failed("unsqueeze", shapeErr("axis %d is not a place in %v", axis, in), t)
	}
	return view(ir.Reshape, t, slices.Insert(slices.Clone(in), i, 1), nil)
}

// axesOf resolves negative axes, and returns an error for an axis that does not exist or is given
// twice.
func axesOf(axes []int, rank int) ([]int, error) {
	list := make([]int, len(axes))
	for i, a := range axes {
		if a < -rank || a >= rank {
			return nil, shapeErr("axis %d does not exist in a tensor of rank %d", a, rank)
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

// Transpose swaps dimensions i and j: PyTorch's transpose, NumPy's swapaxes. The dtype is t's, and
// nothing is copied. [Tensor.Permute] puts all dimensions in any order, and [Tensor.T] reverses
// them. A negative axis counts from the last. An axis that does not exist is ErrShape.
func (t *Tensor) Transpose(i, j int) *Tensor {
	return t.reordered("transpose", i, j, func(order []int, i, j int) []int {
		order[i], order[j] = order[j], order[i]
		return order
	})
}

// MoveAxis moves dimension from to place to; the dimensions between them move by one place to fill
// the gap: NumPy's moveaxis, PyTorch's movedim. The dtype is t's, and nothing is copied. A negative
// axis counts from the last. An axis that does not exist is ErrShape.
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

// Flatten merges the dimensions from first to last, both included, into one: PyTorch's flatten. The
// dtype is t's. Flatten(0, -1) gives a vector of all elements, NumPy's ravel; for a 0-d tensor the
// vector has one element. A negative axis counts from the last. An axis that does not exist, or a
// last before first, is ErrShape.
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
		err = shapeErr("axes %d to %d of %v are not in order", first, last, in)
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

// Range selects positions along one dimension: see [All], [R] and [At].
type Range struct {
	start, stop, step int
	kind              rangeKind
}

type rangeKind uint8

const (
	rangeAll rangeKind = iota // the zero Range is All
	rangeSpan
	rangeAt
)

// All selects a whole dimension.
var All = Range{}

// End as the stop of a range means as far as possible in the direction of the step: R(2, End)
// selects all positions from 2 on, and R(-1, End, -1) all positions backwards.
const End = math.MaxInt

// R selects start, start+step, … before stop: NumPy's start:stop:step. The step is 1 unless
// given. A negative start or stop counts from the end. Both are clipped to the dimension, so a
// range may select nothing. A step of 0, or more than one step, is ErrShape when the range is
// used.
func R(start, stop int, step ...int) Range {
	r := Range{start: start, stop: stop, step: 1, kind: rangeSpan}
	switch len(step) {
	case 0:
	case 1:
		r.step = step[0]
	default:
		r.step = 0
	}
	return r
}

// At selects one position and removes the dimension. A negative position counts from the end. A
// position that does not exist is ErrShape when it is used.
func At(i int) Range { return Range{start: i, kind: rangeAt} }

// String returns the text that NumPy uses between brackets.
func (r Range) String() string {
	switch r.kind {
	case rangeAt:
		return fmt.Sprint(r.start)
	case rangeSpan:
		var b strings.Builder
		fmt.Fprintf(&b, "%d:", r.start)
		if r.stop != End {
			fmt.Fprint(&b, r.stop)
		}
		if r.step != 1 {
			fmt.Fprintf(&b, ":%d", r.step)
		}
		return b.String()
	}
	return ":"
}

// on applies the range to a dimension of size n. It returns the first position, the step and the
// number of positions.
func (r Range) on(n int) (start, step, count int, err error) {
	switch r.kind {
	case rangeAll:
		return 0, 1, n, nil
	case rangeAt:
		i := r.start
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return 0, 0, 0, fmt.Errorf("position %d does not exist in a dimension of size %d", r.start, n)
		}
		return i, 1, 1, nil
	}
	if r.step == 0 {
		return 0, 0, 0, fmt.Errorf("the range has step 0, or several steps")
	}
	// A downward range is within [-1, n-1], an upward one within [0, n]; -1 and n are only ever
	// the stop.
	lo, hi := 0, n
	if r.step < 0 {
		lo, hi = -1, n-1
	}
	clip := func(i int) int {
		if i < 0 {
			i += n
		}
		return min(max(i, lo), hi)
	}
	start = clip(r.start)
	stop := hi
	switch {
	case r.stop != End:
		stop = clip(r.stop)
	case r.step < 0:
		stop = lo
	}
	span := stop - start
	if span == 0 || span < 0 != (r.step < 0) {
		return 0, 1, 0, nil
	}
	count = (abs(span)-1)/abs(r.step) + 1
	if count == 1 {
		return start, 1, 1, nil // a step that is never taken may be any number
	}
	return start, r.step, count, nil
}

func abs(i int) int {
	if i < 0 {
		return -i
	}
	return i
}

// Slice selects a range of each dimension; a dimension without a range is selected whole. It is
// NumPy's indexing by slices and numbers. The dtype is t's, and nothing is copied. More ranges
// than dimensions are ErrShape, and so are a position that does not exist and a step of 0.
//
//	t.Slice(millrace.R(0, 10), millrace.At(-1))   // NumPy's t[0:10, -1]
//	t.Slice(millrace.All, millrace.R(-1, millrace.End, -2))   // t[:, -1::-2]
func (t *Tensor) Slice(ranges ...Range) (r *Tensor) {
	c := compose("slice", nil, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	final, out, attr, err := sliced(t.shape(), ranges)
	if err != nil {
		return failed("slice", err, t)
	}
	x := view(ir.Slice, t, out, attr)
	if len(final) == len(out) {
		return x
	}
	return view(ir.Reshape, x, final, nil)
}

// sliced applies ranges to a shape. It returns the resulting shape, the same with the dimensions
// that At removes, and where the ranges start and how they step.
func sliced(in ir.Shape, ranges []Range) (final, full ir.Shape, attr *ir.Attr, err error) {
	if len(ranges) > len(in) {
		return nil, nil, nil, shapeErr("%d ranges were given for %v", len(ranges), in)
	}
	final, full = ir.Shape{}, slices.Clone(in)
	attr = &ir.Attr{Start: make([]int, len(in)), Step: make([]int, len(in))}
	for i, n := range in {
		var r Range
		if i < len(ranges) {
			r = ranges[i]
		}
		if attr.Start[i], attr.Step[i], full[i], err = r.on(n); err != nil {
			return nil, nil, nil, shapeErr("%v, dimension %d: %v", in, i, err)
		}
		if r.kind != rangeAt {
			final = append(final, full[i])
		}
	}
	return final, full, attr, nil
}

// Split cuts t along an axis into parts of the given sizes, which are views: PyTorch's split. It is
// the opposite of [Concat]. NumPy's split takes positions instead of sizes. A negative axis counts
// from the last. There is one part for each size. Sizes that are negative or do not add up to the
// axis are ErrShape, and so are no sizes and an axis that does not exist. All parts, at least one,
// then carry the error. The dtype is t's.
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
			err = shapeErr("%v cannot be split into %v along axis %d", t.shape(), sizes, list[0])
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
// axis divided by n, rounded up, so the last part may be smaller, and there may be fewer parts. An
// empty axis gives one part. Parts are views, as for [Split]. A negative axis counts from the last.
// An axis that does not exist, or an n below 1, is ErrShape, and the result is one part with the
// error. The dtype is t's.
func Chunk(t *Tensor, n, axis int) []*Tensor {
	const name = "chunk"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return []*Tensor{h.bad}
	}
	list, err := axesOf([]int{axis}, t.Rank())
	if err == nil && n < 1 {
		err = shapeErr("the number of parts %d is below 1", n)
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

// Eye makes a matrix of n rows with 1, or true, on its main diagonal and 0, or false, elsewhere:
// NumPy's and PyTorch's eye. It has n columns, or as many as given. [Tensor.Diag] makes other
// diagonals. A dtype that tensors cannot have is ErrDType. A negative number, or more than one
// number of columns, is ErrShape.
func Eye(dt DType, n int, columns ...int) *Tensor { return eye(anywhere{}, dt, n, columns) }

// EyeOn is [Eye] in a place, with the same shapes, dtypes and errors. A nil place, or one that was
// not opened, gives a tensor with an error.
func EyeOn(p Place, dt DType, n int, columns ...int) *Tensor { return eye(p, dt, n, columns) }

func eye(p Place, dt DType, n int, columns []int) (r *Tensor) {
	const op = "eye"
	place, err := placeOf(p)
	if err == nil && !dt.Tensor() {
		err = dtypeErr("%v is not a tensor dtype", dt)
	}
	if err == nil && len(columns) > 1 {
		err = shapeErr("columns %v are more than one number", columns)
	}
	shape := ir.Shape{n, n}
	if len(columns) == 1 {
		shape[1] = columns[0]
	}
	if err == nil {
		if e := shape.Check(); e != nil {
			err = shapeErr("%v", e)
		} else if max(shape[0], shape[1]) > math.MaxInt32 {
			err = shapeErr("%v has more than %d rows or columns", shape, math.MaxInt32)
		}
	}
	if err != nil {
		return failedAt(place, op, err)
	}
	place, c := composeIn(op, place)
	defer c.end(&r)
	row := create(place, op, ir.Iota, Int32, []int{shape[0], 1}, 0, 1, 2)
	column := create(place, op, ir.Iota, Int32, []int{shape[1]}, 0, 1, 2)
	return row.Eq(column).Cast(dt)
}

// Diag turns a vector into a square matrix with the vector on diagonal k and 0, or false,
// elsewhere: NumPy's and PyTorch's diag. For a matrix it returns diagonal k, as a view; for a
// tensor of more dimensions, the diagonals of its last two. Diagonal 0 is the main one, and
// positive ones are above it. A diagonal outside of the matrix is empty. The dtype is t's, and
// may be any. A rank of 0, or a result that is too large, is ErrShape.
func (t *Tensor) Diag(k int) (r *Tensor) {
	const name = "diag"
	c := compose(name, nil, &t)
	defer c.end(&r)
	switch {
	case c.bad != nil:
		return c.bad
	case t.Rank() == 0:
		return failed(name, shapeErr("%v is neither vector nor matrix", t.shape()), t)
	case t.Rank() == 1:
		return t.onDiagonal(name, k)
	}
	return t.diagonalView(k)
}

// onDiagonal writes a vector into a matrix of zeros. In row-major order, the elements of a
// diagonal are a row and one element apart.
func (t *Tensor) onDiagonal(name string, k int) *Tensor {
	n := t.Len()
	size, ok := n, k > -math.MaxInt && abs(k) <= math.MaxInt-n
	if ok {
		size += abs(k)
		ok = size == 0 || size <= math.MaxInt/size
	}
	if !ok || (ir.Shape{size, size}).Check() != nil {
		return failed(name, shapeErr("%v on diagonal %d has more elements than can be addressed", t.shape(), k), t)
	}
	before := max(k, 0)
	if k < 0 {
		before = -k * size
	}
	pad := Padding{Before: before, Between: size, After: size * size}
	if n > 0 {
		pad.After = size*size - before - (n-1)*(size+1) - 1
	} else {
		pad.Before = 0
	}
	return t.Pad(0, pad).Reshape(size, size)
}

// diagonalView returns diagonal k of the last two dimensions, as a view.
func (t *Tensor) diagonalView(k int) *Tensor {
	in := t.shape()
	m, n := in[len(in)-2], in[len(in)-1]
	outer := in[:len(in)-2]
	k = min(max(k, -m), n)
	row, col := max(-k, 0), max(k, 0)
	count := min(m-row, n-col)
	flat := t.Reshape(append(slices.Clone(outer), m*n)...)
	first := row*n + col
	pick := make([]Range, len(outer)+1)
	pick[len(outer)] = R(first, min(first+count*(n+1), m*n), n+1)
	if count == 0 {
		pick[len(outer)] = R(0, 0)
	}
	return flat.Slice(pick...)
}

// Trace sums the main diagonal of a matrix: NumPy's and PyTorch's trace. For a tensor of more
// dimensions it does so for each matrix of the last two dimensions, which it removes. The dtype
// is t's, which must be one of numbers (else ErrDType); integers wrap around. A rank below 2 is
// ErrShape.
func (t *Tensor) Trace() (r *Tensor) {
	const name = "trace"
	c := compose(name, nil, &t)
	defer c.end(&r)
	switch {
	case c.bad != nil:
		return c.bad
	case t.Rank() < 2:
		return failed(name, shapeErr("%v is not a matrix", t.shape()), t)
	case t.DType() == Bool:
		return failed(name, dtypeErr("%v is not a number dtype", t.DType()), t)
	}
	return t.diagonalView(0).Sum(-1)
}

// Outer multiplies each element of vector t by each element of vector u, and gives a matrix with
// a row for each element of t: NumPy's and PyTorch's outer. Dtypes are as for [Tensor.Mul].
// Another rank than 1 is ErrShape.
func Outer(t, u *Tensor) (r *Tensor) {
	const name = "outer"
	c := compose(name, nil, &t, &u)
	defer c.end(&r)
	switch {
	case c.bad != nil:
		return c.bad
	case t.Rank() != 1 || u.Rank() != 1:
		return failed(name, shapeErr("%v and %v are not two vectors", t.shape(), u.shape()), t, u)
	case t.DType() != u.DType():
		return failed(name, dtypeErr("the vectors have dtypes %v and %v; use Cast", t.DType(), u.DType()), t, u)
	case t.DType() == Bool:
		return failed(name, dtypeErr("%v is not a number dtype", t.DType()), t, u)
	}
	return t.Unsqueeze(-1).Mul(u)
}
