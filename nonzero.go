package millrace

import (
	"fmt"
	"math"
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// The ops of this file and of unique.go have results whose sizes depend on values. They
// run what their operand needs and read how many elements there are, one number, before they
// return; the elements stay where they are.

// NonZero gives the positions, of dtype Int32 or Int64 (else ErrDType), of the elements of t
// that are not 0, or are true, in row-major order: a matrix with a row for each of them and a
// column for each dimension of t. It is PyTorch's nonzero and NumPy's argwhere. NaN is not 0. There
// is no gradient.
//
// How many there are is read: what t needs is run when NonZero is called, and the function of a
// [Recording] that calls it is called in every run, as for other reads.
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

// isTrue is where t is not 0; of bools another handle.
func (t *Tensor) isTrue() *Tensor {
	if t.DType() == Bool {
		return t.same()
	}
	return t.NeScalar(0)
}

// MaskedSelect gives the elements of t where a mask is true, in row-major order: PyTorch's
// masked_select, NumPy's t[mask]. The mask is Bool (else ErrDType) and has the shape of t, or
// of its first dimensions (else ErrShape); the result has one dimension in place of these, and
// t's others. The dtype is t's, any. The gradient goes to the elements that were selected.
//
// How many there are is read, as by [NonZero].
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
	r := rows.Take(at, 0, IndexClamp) // they are in range: nobody has to look
	done(rows, at)
	return r
}

// truePositions are where a vector of bools is true.
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

// wholeItem reads a tensor of one integer. Its caller has not been told of errors that t
// carries.
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
