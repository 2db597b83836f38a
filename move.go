package millrace

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Concat joins tensors along an axis: NumPy's concatenate, PyTorch's cat. They have one dtype, of
// any kind (else ErrDType), one rank above 0, and equal sizes along the other axes (else
// ErrShape). A negative axis counts from the last. Without tensors the result is ErrShape. Each
// element is read and written once. A kernel that computes an operand writes it directly into the
// result, if no other op needs the operand.
func Concat(axis int, ts ...*Tensor) (r *Tensor) {
	const name = "concat"
	if len(ts) == 0 {
		return failed(name, shapeErr("no tensors were given"))
	}
	ts, c := composeAll(name, ts)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	list, err := axesOf([]int{axis}, ts[0].Rank())
	if err == nil {
		err = oneKind(ts, func(i int) bool { return i == list[0] })
	}
	if err != nil {
		return failed(name, err, ts...)
	}
	if len(ts) == 1 {
		return ts[0].Reshape(ts[0].shape()...)
	}
	hs := make([]*stream.Value, len(ts))
	for i, t := range ts {
		hs[i] = &t.v
	}
	defer stream.Whole(hs...)()
	return concat(list, ts)
}

// oneKind returns an error for tensors of different dtypes or ranks, or of different sizes along
// an axis that may not differ.
func oneKind(ts []*Tensor, may func(axis int) bool) error {
	first := ts[0].shape()
	for _, t := range ts[1:] {
		s := t.shape()
		if t.DType() != ts[0].DType() {
			return dtypeErr("the tensors have dtypes %v and %v; use Cast", ts[0].DType(), t.DType())
		}
		same := len(s) == len(first)
		for i := 0; same && i < len(s); i++ {
			same = s[i] == first[i] || may(i)
		}
		if !same {
			return shapeErr("%v and %v cannot be joined", first, s)
		}
	}
	return nil
}

// concat joins halves recursively, so each element passes few selections.
func concat(axis []int, ts []*Tensor) (r *Tensor) {
	if len(ts) == 1 {
		return ts[0]
	}
	defer within(ts...).end(&r)
	half := len(ts) / 2
	a, b := concat(axis, ts[:half]), concat(axis, ts[half:])
	args := [...]stream.Arg{arg(a), arg(b)}
	return record(ir.Concat, ir.Invalid, nil, &ir.Attr{Axes: axis}, args[:])
}

// Stack joins tensors of one shape and dtype along a new axis of the result: NumPy's and
// PyTorch's stack. A negative axis counts from the result's last. Different dtypes are ErrDType.
// No tensors, different shapes, an axis that does not exist, and a result of more than 8
// dimensions are ErrShape.
func Stack(axis int, ts ...*Tensor) (r *Tensor) {
	const name = "stack"
	if len(ts) == 0 {
		return failed(name, shapeErr("no tensors were given"))
	}
	ts, c := composeAll(name, ts)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	err := oneKind(ts, func(int) bool { return false })
	rank := ts[0].Rank() + 1
	switch {
	case err != nil:
	case rank > ir.MaxRank:
		err = shapeErr("%v along a new axis has more than %d dimensions", ts[0].shape(), ir.MaxRank)
	case axis < -rank || axis >= rank:
		err = shapeErr("axis %d does not exist in a result of rank %d", axis, rank)
	}
	if err != nil {
		return failed(name, err, ts...)
	}
	parts := make([]*Tensor, len(ts))
	for i, t := range ts {
		parts[i] = t.Unsqueeze(axis)
	}
	if axis < 0 {
		axis += rank
	}
	return Concat(axis, parts...)
}

// Padding says how many elements Pad adds before and after a dimension, and between each two
// neighbours. A negative Before or After removes elements at that end, after Between has added
// its elements. A negative Between is ErrShape.
type Padding struct{ Before, After, Between int }

// Pad adds elements of one value around t and between its elements: NumPy's and PyTorch's pad,
// XLA's Pad. The value takes t's dtype as in [Tensor.AddScalar]. Each dimension has a padding; if
// fewer are given than t has dimensions, they are for the last ones. More paddings than
// dimensions are ErrShape, and so is removing more elements than there are.
func (t *Tensor) Pad(value float64, pads ...Padding) (r *Tensor) {
	const name = "pad"
	c := compose(name, nil, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	if len(pads) > t.Rank() {
		return failed(name, shapeErr("%d paddings were given for %v", len(pads), t.shape()), t)
	}
	bits, ok := scalarBits(t.DType(), value)
	if !ok {
		return unheld(ir.Pad, t, value)
	}
	return t.padded(name, bits, pads)
}

// size returns how many elements n become: out without removals, grown without additions at the
// ends. It returns false if no int can hold that number.
func (p Padding) size(n int) (out, grown int, ok bool) {
	before, after := max(0, p.Before), max(0, p.After)
	if n > 1 && p.Between > (math.MaxInt-n)/(n-1) {
		return 0, 0, false
	}
	grown = n + max(0, n-1)*p.Between
	if before > math.MaxInt-grown || after > math.MaxInt-grown-before {
		return 0, 0, false
	}
	return grown + before + after, grown, true
}

// padded is Pad with the value as bits of t's dtype.
func (t *Tensor) padded(name string, bits uint64, pads []Padding) *Tensor {
	in := t.shape()
	pads = append(make([]Padding, len(in)-len(pads)), pads...)
	attr := &ir.Attr{Start: make([]int, len(in)), Step: make([]int, len(in))}
	out, cut, cutting := slices.Clone(in), make([]Range, len(in)), false
	for i, p := range pads {
		if p.Between < 0 || p.Between == math.MaxInt {
			return failed(name, shapeErr("%d elements cannot be put between the elements of dimension %d", p.Between, i), t)
		}
		size, grown, ok := p.size(in[i])
		if !ok {
			return failed(name, shapeErr("%v with %+v in dimension %d has more elements than can be addressed", in, p, i), t)
		}
		attr.Start[i], attr.Step[i], out[i] = max(0, p.Before), 1+p.Between, size
		if p.Before < 0 || p.After < 0 {
			if grown+p.Before+p.After < 0 {
				return failed(name, shapeErr("%v cannot be cropped by %d and %d in dimension %d", in, -p.Before, -p.After, i), t)
			}
			cutting = true
			cut[i] = R(max(0, -p.Before), out[i]-max(0, -p.After))
		}
	}
	if err := out.Check(); err != nil {
		return failed(name, shapeErr("%v", err), t)
	}
	args := [...]stream.Arg{arg(t), {Bits: bits}}
	r := record(ir.Pad, ir.Invalid, out, attr, args[:])
	if !cutting {
		return r
	}
	return r.Slice(cut...)
}

// Assign returns t with the elements that the ranges select, as in [Tensor.Slice], replaced by
// u's: NumPy's t[ranges] = u. u broadcasts to the shape of the selection (else ErrShape) and has
// t's dtype (else ErrDType). t itself does not change. If nothing needs t any more, the result
// reuses t's memory.
func (t *Tensor) Assign(u *Tensor, ranges ...Range) (r *Tensor) {
	const name = "assign"
	c := compose(name, nil, &t, &u)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	shape, full, attr, err := sliced(t.shape(), ranges)
	if err != nil {
		return failed(name, err, t, u)
	}
	switch {
	case u.DType() != t.DType():
		return failed(name, dtypeErr("elements of %v cannot go into a tensor of %v; use Cast", u.DType(), t.DType()), t, u)
	case !broadcastsTo(u.shape(), shape):
		return failed(name, shapeErr("%v does not broadcast to the selection %v of %v", u.shape(), shape, t.shape()), t, u)
	}
	args := [...]stream.Arg{arg(t), arg(u.Expand(shape...).Reshape(full...))}
	return record(ir.Assign, ir.Invalid, nil, attr, args[:])
}

// AssignScalar is [Tensor.Assign] of a number. A number that t's dtype cannot hold is ErrDType, as
// in [Tensor.AddScalar].
func (t *Tensor) AssignScalar(value float64, ranges ...Range) (r *Tensor) {
	c := compose("assign", nil, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	if _, ok := scalarBits(t.DType(), value); !ok {
		return unheld(ir.Assign, t, value)
	}
	return t.Assign(FullOn(beside(t), t.DType(), value), ranges...)
}

// Tile repeats t as a whole, reps times along each dimension: NumPy's and PyTorch's tile. If
// fewer numbers are given than t has dimensions, they are for the last ones. More numbers add
// dimensions in front. A negative number, or a result that is too large, is ErrShape.
func (t *Tensor) Tile(reps ...int) (r *Tensor) {
	const name = "tile"
	c := compose(name, nil, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	if i := slices.IndexFunc(reps, func(n int) bool { return n < 0 }); i >= 0 {
		return failed(name, shapeErr("the number of times %d is negative", reps[i]), t)
	}
	in := slices.Clone(t.shape())
	rank := max(len(in), len(reps))
	in = append(slices.Repeat([]int{1}, rank-len(in)), in...)
	reps = append(slices.Repeat([]int{1}, rank-len(reps)), reps...)
	return t.repeated(name, in, reps, true)
}

// Repeat repeats each element n times along an axis: NumPy's repeat, PyTorch's repeat_interleave.
// The dtype is t's, which may be any. A negative axis counts from the last. An axis that does not
// exist, or a negative n, is ErrShape.
func (t *Tensor) Repeat(n, axis int) (r *Tensor) {
	const name = "repeat"
	c := compose(name, nil, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	list, err := axesOf([]int{axis}, t.Rank())
	if err == nil && n < 0 {
		err = shapeErr("the number of times %d is negative", n)
	}
	if err != nil {
		return failed(name, err, t)
	}
	reps := slices.Repeat([]int{1}, t.Rank())
	reps[list[0]] = n
	return t.repeated(name, slices.Clone(t.shape()), reps, false)
}

// repeated expands a view of t, of shape in, that has a dimension of size 1 before or after each
// repeated dimension.
func (t *Tensor) repeated(name string, in, reps []int, before bool) *Tensor {
	var split, wide []int
	var out ir.Shape
	for i, n := range in {
		if n > 0 && reps[i] > math.MaxInt/n {
			return failed(name, shapeErr("%d times %d elements are more than can be addressed", reps[i], n), t)
		}
		out = append(out, n*reps[i])
		switch {
		case reps[i] == 1:
			split, wide = append(split, n), append(wide, n)
		case before:
			split, wide = append(split, 1, n), append(wide, reps[i], n)
		default:
			split, wide = append(split, n, 1), append(wide, n, reps[i])
		}
	}
	if err := out.Check(); err != nil {
		return failed(name, shapeErr("%v", err), t)
	}
	if len(split) > ir.MaxRank {
		return t.repeatedInTurn(name, in, reps, before)
	}
	return t.Reshape(split...).Expand(wide...).Reshape(out...)
}

// repeatedInTurn repeats one dimension after another. It is for tensors that would need too many
// dimensions if all were repeated at once.
func (t *Tensor) repeatedInTurn(name string, in, reps []int, before bool) *Tensor {
	return inTurn(len(in), t.Reshape(in...), func(x *Tensor, i int) *Tensor {
		if reps[i] == 1 {
			return x
		}
		merged := []int{1, in[i], 1}
		for _, n := range in[:i] {
			merged[0] *= n
		}
		for _, n := range in[i+1:] {
			merged[2] *= n
		}
		in = slices.Clone(in)
		in[i] *= reps[i]
		return x.Reshape(merged...).repeated(name, merged, []int{1, reps[i], 1}, before).Reshape(in...)
	})
}

// Roll moves the elements n places along an axis; elements that leave one end enter at the other:
// NumPy's and PyTorch's roll. Shape and dtype are t's. A negative axis counts from the last. An
// axis that does not exist is ErrShape.
func (t *Tensor) Roll(n, axis int) (r *Tensor) {
	const name = "roll"
	c := compose(name, nil, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	list, err := axesOf([]int{axis}, t.Rank())
	if err != nil {
		return failed(name, err, t)
	}
	size := t.shape()[list[0]]
	if size > 0 {
		n = (n%size + size) % size
	}
	if size == 0 || n == 0 {
		return t
	}
	head, tail := make([]Range, list[0]+1), make([]Range, list[0]+1)
	head[list[0]], tail[list[0]] = R(0, size-n), R(size-n, size)
	a, b := t.Slice(head...), t.Slice(tail...)
	return Concat(list[0], b, a)
}

// Triu keeps the elements on and above diagonal k of the last two dimensions and makes the others
// 0, or false: NumPy's and PyTorch's triu. Diagonal 0 is the main one, and positive ones are above
// it. Shape and dtype are t's. A rank below 2 is ErrShape.
func (t *Tensor) Triu(k int) *Tensor { return t.triangle("triu", k, (*Tensor).Ge) }

// Tril keeps the elements on and below diagonal k and makes the others 0, or false: NumPy's and
// PyTorch's tril. Diagonals, dtypes and errors are as for [Tensor.Triu].
func (t *Tensor) Tril(k int) *Tensor { return t.triangle("tril", k, (*Tensor).Le) }

func (t *Tensor) triangle(name string, k int, keep func(col, row *Tensor) *Tensor) (r *Tensor) {
	c := compose(name, nil, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	in := t.shape()
	if len(in) < 2 {
		return failed(name, shapeErr("%v is not a matrix", in), t)
	}
	m, n := in[len(in)-2], in[len(in)-1]
	k = min(max(k, -m), n) // all diagonals further out select the same
	col := ArangeOn(beside(t), Int32, 0, float64(n), 1)
	diagonal := ArangeOn(beside(t), Int32, float64(k), float64(k+m), 1)
	return WhereScalar(keep(col, diagonal.Unsqueeze(-1)), t, 0)
}

// MaskedFill returns t with the elements where mask is true replaced by a value: PyTorch's
// masked_fill. The value takes t's dtype as in [Tensor.AddScalar]. The two broadcast; mask is
// Bool, else ErrDType.
func (t *Tensor) MaskedFill(mask *Tensor, value float64) *Tensor {
	return ScalarWhere(mask, value, t)
}

// OneHot adds a last dimension of n elements to the result: 1 at the position that t's element
// names, and 0 elsewhere. It is PyTorch's one_hot. For a position out of range, all n are 0. t
// has integers (else ErrDType), and the result has dtype dt, any dtype of tensors (else
// ErrDType). A negative n, or a result of more than 8 dimensions, is ErrShape.
func (t *Tensor) OneHot(dt DType, n int) (r *Tensor) {
	const name = "onehot"
	c := compose(name, nil, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	switch {
	case !t.DType().IsInt():
		return failed(name, dtypeErr("%v is not an integer dtype", t.DType()), t)
	case !dt.Tensor():
		return failed(name, dtypeErr("%v is not a tensor dtype", dt), t)
	case n < 0:
		return failed(name, shapeErr("the number of classes %d is negative", n), t)
	case t.Rank() == ir.MaxRank:
		return failed(name, shapeErr("%v with a dimension of classes has more than %d dimensions", t.shape(), ir.MaxRank), t)
	}
	at := t.Unsqueeze(-1)
	if t.DType().Bits() < 32 { // it may not hold n
		at = at.Cast(Int32)
	}
	return at.Eq(ArangeOn(beside(t), at.DType(), 0, float64(n), 1)).Cast(dt)
}
