package millrace

import (
	"fmt"
	"math"

	"github.com/millrace-go/millrace/ir"
)

// BinCount counts how often each whole number from 0 on occurs in t: NumPy's and PyTorch's
// bincount. t may have any shape and has integers (else ErrDType). The result is a vector of
// dtype dt, a dtype of numbers. It has an element for each number up to the largest in t, and at
// least n. A dtype that cannot hold a count exactly is ErrDType: Int8 above 127, Float16 above
// 2048 for an odd count. A negative n is ErrShape, and a negative element is ErrIndex. For
// weighted counts, or a known number of them, use ZerosOn(…, n).ScatterAdd(t, weights, 0). There
// is no gradient.
//
// BinCount reads the largest element when it is called, as [NonZero] reads a number. If dt cannot
// hold the number of t's elements, it also reads whether dt holds all counts.
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

// counted counts how often each number below n occurs in a vector of indices, and ignores other
// numbers. It is an error if dt cannot hold a count. It reads nothing if dt can hold any possible
// count.
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

// wholesOf returns the largest n such that dt holds every whole number up to n.
func wholesOf(dt DType) float64 {
	if !dt.IsFloat() {
		bits := dt.Bits()
		if dt.IsSigned() {
			bits--
		}
		return math.Ldexp(1, bits) - 1
	}
	// The first whole number that a float dtype lacks is one above a power of two.
	n := 1.0
	for n+1 != n && ir.BitsFloat(dt, ir.FloatBits(dt, n+1)) == n+1 {
		n *= 2
	}
	return n
}

// extremes reads the least and the greatest element of integers.
func (t *Tensor) extremes() (lo, hi int64, err error) {
	low, high := t.Min(), t.Max()
	defer done(low, high)
	if lo, err = wholeItem(low); err == nil {
		hi, err = wholeItem(high)
	}
	return lo, hi, err
}

// Histogram counts the elements of t, of any shape, in bins of equal width from lo to hi: NumPy's
// histogram, PyTorch's histc. A bin includes its lower edge, and the last bin both edges. NaN and
// elements outside of the range are not counted. The counts have dtype dt, a dtype of numbers,
// and are exact, else ErrDType as for [BinCount]. The edges, bins+1 of them as [Linspace] makes
// them, have t's dtype, or Float32 for 16-bit floats. t has floats, else ErrDType. There is no
// gradient.
//
// If lo and hi are both 0, the range is that of the elements, which Histogram reads when it is
// called, as [NonZero] reads a number. That range is 0 to 1 if t has no elements, and ErrShape if
// an element is not finite. A range of one number is widened by a half on both sides; if that
// changes nothing, because the number is large, the last bin counts it. Fewer than one bin is
// ErrShape, and so is a range that is not finite or ends before it begins.
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
	if edges.Err() != nil { // the distance between the ends is not finite
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

// span reads the least and the greatest element, which are the range.
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
