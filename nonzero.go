package millrace

import (
	"fmt"
	"math"
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// The ops of this file and of unique.go have results whose sizes depend on values. Before they
// return, they run the ops that their operand needs and read one number, the number of elements.
// The elements themselves are not read.

// NonZero returns the positions of the elements of t that are not 0, or are true, in row-major
// order: PyTorch's nonzero, NumPy's argwhere. The result is a matrix of dtype dt, Int32 or Int64
// (else ErrDType), with a row for each such element and a column for each dimension of t. NaN is
// not 0. There is no gradient.
//
// NonZero reads the number of these elements. Calling it therefore runs the ops that t needs. A
// [Recording] whose function calls it calls the function in every run, as for other reads.
func NonZero(dt DType, t *Tensor) *Tensor {
	const name = "nonzero"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	if !ir.IndexDTypes.Has(dt) {
		return failed(name, dtypeErr("positions of %v: Int32 or Int64", dt), t)
	}
	mask := t.isTrue()
	flat := mask.Reshape(t.Len())
	at, err := truePositions(flat)
	done(mask, flat)
	if err != nil {
		return failed(name, err, t)
	}
	defer done(at)
	shape := t.shape()
	if len(shape) == 0 {
		return ZerosOn(t.Stream(), dt, at.Len(), 0)
	}
	columns := make([]*Tensor, len(shape))
	stride := 1
	for d := len(shape) - 1; d >= 0; d-- {
		rows := at.DivScalar(float64(stride))
		place := rows.RemScalar(float64(max(shape[d], 1)))
		columns[d] = place.Cast(dt)
		stride *= max(shape[d], 1)
		done(rows, place)
	}
	r := Stack(-1, columns...)
	done(columns...)
	return r
}

// isTrue returns where t is not 0. For bools it is another handle of t.
func (t *Tensor) isTrue() *Tensor {
	if t.DType() == Bool {
		return t.same()
	}
	return t.NeScalar(0)
}

// MaskedSelect returns the elements of t where a mask is true, in row-major order: PyTorch's
// masked_select, NumPy's t[mask]. The mask is Bool (else ErrDType) and has the shape of t, or of
// t's first dimensions (else ErrShape). The result has one dimension in place of these, then t's
// other dimensions. The dtype is t's, and may be any. The gradient goes to the selected elements.
//
// MaskedSelect reads the number of selected elements, as [NonZero] does.
func MaskedSelect(t, mask *Tensor) *Tensor {
	const name = "maskedselect"
	h := hold(name, &t, &mask)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	in, m := t.shape(), mask.shape()
	switch {
	case mask.DType() != Bool:
		return failed(name, dtypeErr("a mask of %v", mask.DType()), t, mask)
	case len(m) > len(in) || !slices.Equal(m, in[:len(m)]):
		return failed(name, shapeErr("%v by a mask of %v", in, m), t, mask)
	case len(m) == 0 && len(in) == ir.MaxRank:
		return failed(name, shapeErr("%v by a mask of one element: more than %d dimensions", in, ir.MaxRank), t, mask)
	}
	flat := mask.Reshape(mask.Len())
	at, err := truePositions(flat)
	done(flat)
	if err != nil {
		return failed(name, err, t, mask)
	}
	rows := t.Reshape(slices.Concat([]int{mask.Len()}, in[len(m):])...)
	r := rows.Take(at, 0, IndexClamp) // the positions are in range, so no check is needed
	done(rows, at)
	return r
}

// truePositions returns the positions at which a vector of bools is true.
func truePositions(mask *Tensor) (*Tensor, error) {
	n, dt := mask.Len(), Int32
	if n > math.MaxInt32 {
		dt = Int64
	}
	if n == 0 {
		return ZerosOn(mask.Stream(), dt, 0), nil
	}
	ones := mask.Cast(dt)
	upTo := ones.CumSum(0)
	last := upTo.Slice(At(n - 1))
	defer done(ones, upTo, last)
	count, err := wholeItem(last)
	if err != nil {
		return nil, err
	}
	below := upTo.SubScalar(1)
	none := mask.Not()
	place := below.MaskedFill(none, -1)
	all := ArangeOn(mask.Stream(), dt, 0, float64(n), 1)
	empty := ZerosOn(mask.Stream(), dt, int(count))
	r := empty.ScatterSet(place, all, 0, IndexDrop)
	done(below, none, place, all, empty)
	return r, nil
}

// wholeItem reads a tensor with one integer. A number above the largest int64 is ErrIndex, and
// the error of t or of reading is returned without the name of an op.
func wholeItem(t *Tensor) (int64, error) {
	d, err := dense(t)
	if err != nil {
		return 0, err
	}
	dt, bits := t.DType(), d.At(0)
	if !dt.IsSigned() {
		if bits > math.MaxInt64 {
			return 0, fmt.Errorf("%w: %d", ErrIndex, bits)
		}
		return int64(bits), nil
	}
	n := 64 - dt.Bits()
	return int64(bits<<n) >> n, nil
}
