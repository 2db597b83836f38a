package millrace

import (
	"fmt"
	"math"

	"github.com/millrace-go/millrace/ir"
)

// BinCount counts how often each whole number from 0 on is among the elements of t, which are
// integers and may have any shape (else ErrDType): NumPy's and PyTorch's bincount. There are
// as many counts as the largest element asks for, at least n; they have dtype dt, of numbers.
// A dtype that does not hold each count exactly is ErrDType: Int8 above 127, Float16 above 2048
// where a count is odd. A negative n is ErrShape, a negative element ErrIndex. Weighed counts, or
// ones of a known number, are ZerosOn(…, n).ScatterAdd(t, weights, 0). There is no gradient.
//
// The largest element is read, as the number is by [NonZero]. So is whether dt holds all counts,
// where it would not hold the number of t's elements.
func BinCount(dt DType, t *Tensor, n int) *Tensor {
	const name = "bincount"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	switch {
	case !t.DType().IsInt():
		return failed(name, dtypeErr("%v tensor: integers only", t.DType()), t)
	case !ir.Numbers.Has(dt):
		return failed(name, dtypeErr("counts of %v", dt), t)
	case n < 0:
		return failed(name, shapeErr("%d counts", n), t)
	}
	if t.Len() > 0 {
		lo, hi, err := t.extremes()
		if err == nil && lo < 0 {
			err = fmt.Errorf("%w: %d among what is counted", ErrIndex, lo)
		}
		if err == nil && hi > math.MaxInt-1 {
			err = shapeErr("%d counts", uint64(hi)+1)
		}
		if err != nil {
			return failed(name, err, t)
		}
		n = max(n, int(hi)+1)
	}
	flat := t.Reshape(t.Len())
	r, err := counted(dt, flat, n)
	done(flat)
	if err != nil {
		return failed(name, err, t)
	}
	return r
}

// counted is how often each number below n is in a vector of indices; others do not count. It
// is an error where dt does not hold a count. Where it holds all that there may be nothing is read.
func counted(dt DType, at *Tensor, n int) (*Tensor, error) {
	wide := dt
	if float64(at.Len()) > wholesOf(dt) {
		wide = Int32
		if at.Len() > math.MaxInt32 {
			wide = Int64
		}
	}
	none, one := ZerosOn(at.Stream(), wide, n), OnesOn(at.Stream(), wide, 1)
	counts := none.ScatterAdd(at, one, 0, IndexDrop)
	done(none, one)
	if wide == dt {
		return counts, nil
	}
	r := counts.Cast(dt)
	back := r.Cast(wide)
	held := back.Eq(counts)
	lost := counts.MaskedFill(held, 0)
	top := lost.Max()
	defer done(counts, back, held, lost, top)
	count, err := wholeItem(top)
	if err == nil && count != 0 {
		err = dtypeErr("%v cannot hold a count of %d", dt, count)
	}
	if err != nil {
		done(r)
		return nil, err
	}
	return r, nil
}

// wholesOf is the number up to which a dtype of numbers holds all whole ones.
func wholesOf(dt DType) float64 {
	if !dt.IsFloat() {
		bits := dt.Bits()
		if dt.IsSigned() {
			bits--
		}
		return math.Ldexp(1, bits) - 1
	}
	// The first one that is none is one above a power of two.
	n := 1.0
	for n+1 != n && ir.BitsFloat(dt, ir.FloatBits(dt, n+1)) == n+1 {
		n *= 2
	}
	return n
}

// extremes reads the least and the greatest of integers.
func (t *Tensor) extremes() (lo, hi int64, err error) {
	low, high := t.Min(), t.Max()
	defer done(low, high)
	if lo, err = wholeItem(low); err == nil {
		hi, err = wholeItem(high)
	}
	return lo, hi, err
}

// Histogram counts the elements of t, of any shape, in so many bins of one width from lo to
// hi: NumPy's histogram, PyTorch's histc. A bin has its lower edge, the last one both; what
// is outside, and NaN, does not count. The counts have dtype dt, of numbers, and are exact or
// ErrDType, as those of [BinCount]; the edges, one more than there are bins, have t's, or Float32
// where that has 16 bits, and are those of [Linspace].
// Floats only, else ErrDType. There is no gradient.
//
// Where lo and hi both are 0 the range is that of the elements, which are read, as by
// [NonZero]: 0 to 1 where there are none, and ErrShape where one is not finite. A range of
// one number is half a unit more to both sides; where that is the same number, as it is of large
// ones, the last bin has it. Fewer than one bin, and a range that is not finite or ends before it
// begins, are ErrShape.
func Histogram(dt DType, t *Tensor, bins int, lo, hi float64) (counts, edges *Tensor) {
	const name = "histogram"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return twoFailures(name, h.bad)
	}
	var err error
	switch {
	case !t.DType().IsFloat():
		err = dtypeErr("%v tensor: floats only, use Cast", t.DType())
	case !ir.Numbers.Has(dt):
		err = dtypeErr("counts of %v", dt)
	case bins < 1 || bins >= maxSearch:
		err = shapeErr("%d bins", bins)
	case lo == 0 && hi == 0:
		lo, hi, err = t.span()
	}
	if err == nil && lo == hi {
		lo, hi = lo-0.5, hi+0.5
	}
	wide := t.DType().Compute()
	if err == nil && !(lo <= hi && finiteIn(wide, lo) && finiteIn(wide, hi)) {
		err = shapeErr("bins from %v to %v", lo, hi)
	}
	if err != nil {
		return twoFailures(name, failed(name, err, t))
	}
	edges = linspace(t.Stream(), name, wide, lo, hi, bins+1)
	if edges.Err() != nil { // the distance of the ends is no number
		return twoFailures(name, edges)
	}
	flat := t.Reshape(t.Len())
	x := flat
	if t.DType() != wide {
		x = flat.Cast(wide)
		done(flat)
	}
	behind := search(edges, x, true)
	at := behind.SubScalar(1)
	top := x.EqScalar(hi)
	bin := ScalarWhere(top, float64(bins-1), at)
	counts, err = counted(dt, bin, bins)
	done(x, behind, at, top, bin)
	if err != nil {
		done(edges)
		return twoFailures(name, failed(name, err, t))
	}
	return counts, edges
}

// span reads the range of the elements.
func (t *Tensor) span() (lo, hi float64, err error) {
	if t.Len() == 0 {
		return 0, 1, nil
	}
	low, high := t.Min(), t.Max()
	defer done(low, high)
	for _, p := range []struct {
		t  *Tensor
		to *float64
	}{{low, &lo}, {high, &hi}} {
		d, err := dense(p.t)
		if err != nil {
			return 0, 0, err
		}
		*p.to = number(p.t.DType(), d.At(0))
	}
	return lo, hi, nil
}
