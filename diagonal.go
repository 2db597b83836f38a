package millrace

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// Eye makes a matrix of n rows with 1, or true, on its main diagonal and 0, or false, elsewhere:
// NumPy's and PyTorch's eye. It has n columns, or as many as given. [Tensor.Diag] makes other
// diagonals. A dtype that tensors cannot have is ErrDType. A negative number, or more than one
// number of columns, is ErrShape.
func Eye(dt DType, n int, columns ...int) *Tensor { return eye(anywhere{}, dt, n, columns) }

// EyeOn is [Eye] in a place.
func EyeOn(p Place, dt DType, n int, columns ...int) *Tensor { return eye(p, dt, n, columns) }

func eye(p Place, dt DType, n int, columns []int) *Tensor {
	const op = "eye"
	place, err := placeOf(p)
	if err == nil && !dt.Tensor() {
		err = dtypeErr("%v is no dtype of tensors", dt)
	}
	if err == nil && len(columns) > 1 {
		err = shapeErr("columns %v", columns)
	}
	shape := ir.Shape{n, n}
	if len(columns) == 1 {
		shape[1] = columns[0]
	}
	if err == nil {
		if e := shape.Check(); e != nil {
			err = shapeErr("%v", e)
		} else if max(shape[0], shape[1]) > math.MaxInt32 {
			err = shapeErr("%v: more than %d rows or columns", shape, math.MaxInt32)
		}
	}
	if err != nil {
		return failedAt(place, op, err)
	}
	row := create(place, op, ir.Iota, Int32, []int{shape[0], 1}, 0, 1, 2)
	flat := create(place, op, ir.Iota, Int32, []int{shape[1]}, 0, 1, 2)
	hit := row.Eq(flat)
	r := hit.Cast(dt)
	done(row, flat, hit)
	return r
}

// Diag turns a vector into a square matrix with the vector on diagonal k and 0, or false,
// elsewhere: NumPy's and PyTorch's diag. For a matrix it returns diagonal k, as a view; for a
// tensor of more dimensions, the diagonals of its last two. Diagonal 0 is the main one, and
// positive ones are above it. A diagonal outside of the matrix is empty. The dtype is t's, and
// may be any. A rank of 0, or a result that is too large, is ErrShape.
func (t *Tensor) Diag(k int) *Tensor {
	const name = "diag"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	switch t.Rank() {
	case 0:
		return failed(name, shapeErr("%v is neither vector nor matrix", t.shape()), t)
	case 1:
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
		return failed(name, shapeErr("%v on diagonal %d: more elements than can be addressed", t.shape(), k), t)
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
	flat := t.Pad(0, pad)
	r := flat.Reshape(size, size)
	done(flat)
	return r
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
	r := flat.Slice(pick...)
	done(flat)
	return r
}

// Trace sums the main diagonal of a matrix: NumPy's and PyTorch's trace. For a tensor of more
// dimensions it does so for each matrix of the last two dimensions, which it removes. The dtype
// is t's, which must be one of numbers (else ErrDType); integers wrap around. A rank below 2 is
// ErrShape.
func (t *Tensor) Trace() *Tensor {
	const name = "trace"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	switch {
	case t.Rank() < 2:
		return failed(name, shapeErr("%v is no matrix", t.shape()), t)
	case t.DType() == Bool:
		return failed(name, dtypeErr("%v tensor: numbers only", t.DType()), t)
	}
	d := t.diagonalView(0)
	r := d.Sum(-1)
	done(d)
	return r
}

// Outer multiplies each element of vector t by each element of vector u, and gives a matrix with
// a row for each element of t: NumPy's and PyTorch's outer. Dtypes are as for [Tensor.Mul].
// Another rank than 1 is ErrShape.
func Outer(t, u *Tensor) *Tensor {
	const name = "outer"
	h := hold(name, &t, &u)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	switch {
	case t.Rank() != 1 || u.Rank() != 1:
		return failed(name, shapeErr("%v and %v: two vectors", t.shape(), u.shape()), t, u)
	case t.DType() != u.DType():
		return failed(name, dtypeErr("%v and %v; use Cast", t.DType(), u.DType()), t, u)
	case t.DType() == Bool:
		return failed(name, dtypeErr("%v tensors: numbers only", t.DType()), t, u)
	}
	column := t.Unsqueeze(-1)
	r := column.Mul(u)
	done(column)
	return r
}
