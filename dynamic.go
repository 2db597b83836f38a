package millrace

import (
	"fmt"
	"math"
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// The ops of this file have results whose sizes depend on values. Before they
// return, they run the ops that their operand needs and read one number, the number of elements.
// The elements themselves are not read.

// NonZero returns the positions of the elements of t that are not 0, or are true, in row-major
// order: PyTorch's nonzero, NumPy's argwhere. The result is a matrix of dtype dt, Int32 or Int64
// (else ErrDType), with a row for each such element and a column for each dimension of t. NaN is
// not 0. There is no gradient.
//
// NonZero reads the number of these elements. Calling it therefore runs the ops that t needs. A
// [Recording] whose function calls it calls the function in every run, as for other reads.
func NonZero(dt DType, t *Tensor) (r *Tensor) {
	const name = "nonzero"
	c := compose(name, nil, &t)
	defer c.end(&r)
	switch {
	case c.bad != nil:
		return c.bad
	case !ir.IndexDTypes.Has(dt):
		return failed(name, dtypeErr("positions cannot have dtype %v, only Int32 or Int64", dt), t)
	}
	at, err := truePositions(t.isTrue().Reshape(t.Len()))
	if err != nil {
		return failed(name, err, t)
	}
	shape := t.shape()
	if len(shape) == 0 {
		return ZerosOn(beside(t), dt, at.Len(), 0)
	}
	columns := make([]*Tensor, len(shape))
	stride := 1
	for d := len(shape) - 1; d >= 0; d-- {
		columns[d] = at.DivScalar(float64(stride)).RemScalar(float64(max(shape[d], 1))).Cast(dt)
		stride *= max(shape[d], 1)
	}
	return Stack(-1, columns...)
}

// isTrue returns where t is not 0: t itself for bools.
func (t *Tensor) isTrue() *Tensor {
	if t.DType() == Bool {
		return t
	}
	return t.NeScalar(0)
}

// MaskedSelect returns the elements of t where a mask is true, in row-major order: PyTorch's
// masked_select, NumPy's t[mask]. The mask is Bool (else ErrDType) and has the shape of t, or of
// t's first dimensions (else ErrShape). The result has one dimension in place of these, then t's
// other dimensions. The dtype is t's, and may be any. The gradient goes to the selected elements.
//
// MaskedSelect reads the number of selected elements, as [NonZero] does.
func MaskedSelect(t, mask *Tensor) (r *Tensor) {
	const name = "maskedselect"
	c := compose(name, nil, &t, &mask)
	defer c.end(&r)
	in, m := t.shape(), mask.shape()
	switch {
	case c.bad != nil:
		return c.bad
	case mask.DType() != Bool:
		return failed(name, dtypeErr("the mask has dtype %v, not Bool", mask.DType()), t, mask)
	case len(m) > len(in) || !slices.Equal(m, in[:len(m)]):
		return failed(name, shapeErr("a tensor of shape %v cannot be selected by a mask of %v", in, m), t, mask)
	case len(m) == 0 && len(in) == ir.MaxRank:
		return failed(name, shapeErr("%v selected by a mask of one element has more than %d dimensions", in, ir.MaxRank), t, mask)
	}
	at, err := truePositions(mask.Reshape(mask.Len()))
	if err != nil {
		return failed(name, err, t, mask)
	}
	rows := t.Reshape(slices.Concat([]int{mask.Len()}, in[len(m):])...)
	return rows.Take(at, 0, IndexClamp) // the positions are in range, so no check is needed
}

// truePositions returns the positions at which a vector of bools is true.
func truePositions(mask *Tensor) (r *Tensor, err error) {
	defer within(mask).end(&r)
	n, dt := mask.Len(), Int32
	if n > math.MaxInt32 {
		dt = Int64
	}
	if n == 0 {
		return ZerosOn(beside(mask), dt, 0), nil
	}
	upTo := mask.Cast(dt).CumSum(0)
	count, err := wholeItem(upTo.Slice(At(n - 1)))
	if err != nil {
		return nil, err
	}
	place := upTo.SubScalar(1).MaskedFill(mask.Not(), -1)
	all := ArangeOn(beside(mask), dt, 0, float64(n), 1)
	return ZerosOn(beside(mask), dt, int(count)).ScatterSet(place, all, 0, IndexDrop), nil
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

// Unique returns the distinct values of t, in the order of [Tensor.Sort]: NumPy's and PyTorch's
// unique. All NaN count as one value, and so do -0 and +0. The result is a vector of t's dtype,
// which may be any. Unique reads the number of values, as [NonZero] does. The gradient of a value
// goes to the first element that has it. It fails if t carries an error, or if computing t finds
// one.
func Unique(t *Tensor) (r *Tensor) {
	const name = "unique"
	c := compose(name, nil, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	sorted := t.sortable().Sort(0)
	return inDType(MaskedSelect(sorted, firstOfRun(sorted)), t.DType())
}

// UniqueAll is [Unique] with two more results of dtype dt, Int32 or Int64 (else ErrDType):
// NumPy's unique_all. inverse has t's shape and says which of the values each element is, so
// values.Take(inverse, 0) is t. counts says how often each value occurs.
func UniqueAll(dt DType, t *Tensor) (values, inverse, counts *Tensor) {
	const name = "uniqueall"
	c := compose(name, nil, &t)
	defer c.end(&values, &inverse, &counts)
	if c.bad == nil && !ir.IndexDTypes.Has(dt) {
		c.bad = failed(name, dtypeErr("positions cannot have dtype %v, only Int32 or Int64", dt), t)
	}
	if c.bad != nil {
		all := failures(name, 3, c.bad)
		return all[0], all[1], all[2]
	}
	x := t.sortable()
	n := x.Len()
	order := x.ArgSortAs(dt, 0, false)
	sorted := x.Take(order, 0, IndexClamp)
	first := firstOfRun(sorted)
	at, err := truePositions(first)
	if n == 1 && err == nil { // with one element, first needs no values, so no error was read yet
		_, err = dense(x)
	}
	if err != nil {
		all := failures(name, 3, failed(name, err, t))
		return all[0], all[1], all[2]
	}
	values = inDType(sorted.Take(at, 0, IndexClamp), t.DType())

	which := first.Cast(dt).CumSum(0).SubScalar(1)
	inverse = ZerosOn(beside(t), dt, n).ScatterSet(order, which, 0, IndexDrop).Reshape(t.shape()...)

	ends := Concat(0, at.Cast(dt), FullOn(beside(t), dt, float64(n), 1))
	from, to := ends.Slice(R(0, -1)), ends.Slice(R(1, End))
	return values, inverse, to.Sub(from)
}

// sortable returns a vector of t's elements in a dtype that can be sorted.
func (t *Tensor) sortable() *Tensor {
	flat := t.Reshape(t.Len())
	if t.DType() == Bool {
		return flat.Cast(Uint8)
	}
	return flat
}

// firstOfRun returns where a sorted vector's element differs from the one before it.
func firstOfRun(x *Tensor) (r *Tensor) {
	defer within(x).end(&r)
	n := x.Len()
	head := OnesOn(beside(x), Bool, min(n, 1))
	if n < 2 {
		return head
	}
	a, b := x.Slice(R(0, -1)), x.Slice(R(1, End))
	other := a.Ne(b)
	if x.DType().IsFloat() { // NaN is last, so all elements after a NaN are NaN
		other = other.And(a.IsNaN().Not())
	}
	return Concat(0, head, other)
}

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
func BinCount(dt DType, t *Tensor, n int) (r *Tensor) {
	const name = "bincount"
	c := compose(name, nil, &t)
	defer c.end(&r)
	switch {
	case c.bad != nil:
		return c.bad
	case !t.DType().IsInt():
		return failed(name, dtypeErr("%v is not an integer dtype", t.DType()), t)
	case !ir.Numbers.Has(dt):
		return failed(name, dtypeErr("counts cannot have dtype %v, only numbers", dt), t)
	case n < 0:
		return failed(name, shapeErr("the number of counts %d is negative", n), t)
	}
	if t.Len() > 0 {
		lo, hi, err := t.extremes()
		if err == nil && lo < 0 {
			err = fmt.Errorf("%w: %d is among the values to count", ErrIndex, lo)
		}
		if err == nil && hi > math.MaxInt-1 {
			err = shapeErr("%d counts are more than can be addressed", uint64(hi)+1)
		}
		if err != nil {
			return failed(name, err, t)
		}
		n = max(n, int(hi)+1)
	}
	r, err := counted(dt, t.Reshape(t.Len()), n)
	if err != nil {
		return failed(name, err, t)
	}
	return r
}

// counted counts how often each number below n occurs in a vector of indices, and ignores other
// numbers. It is an error if dt cannot hold a count. It reads nothing if dt can hold any possible
// count.
func counted(dt DType, at *Tensor, n int) (r *Tensor, err error) {
	defer within(at).end(&r)
	wide := dt
	if float64(at.Len()) > wholesOf(dt) {
		wide = Int32
		if at.Len() > math.MaxInt32 {
			wide = Int64
		}
	}
	counts := ZerosOn(beside(at), wide, n).ScatterAdd(at, OnesOn(beside(at), wide, 1), 0, IndexDrop)
	if wide == dt {
		return counts, nil
	}
	r = counts.Cast(dt)
	held := r.Cast(wide).Eq(counts)
	lost, err := wholeItem(counts.MaskedFill(held, 0).Max())
	if err == nil && lost != 0 {
		err = dtypeErr("%v cannot hold a count of %d", dt, lost)
	}
	if err != nil {
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
	defer within(t).end()
	low, high := t.Min(), t.Max()
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
	c := compose(name, nil, &t)
	defer c.end(&counts, &edges)
	if c.bad != nil {
		return twoFailures(name, c.bad)
	}
	var err error
	switch {
	case !t.DType().IsFloat():
		err = dtypeErr("%v is not a float dtype; use Cast", t.DType())
	case !ir.Numbers.Has(dt):
		err = dtypeErr("counts cannot have dtype %v, only numbers", dt)
	case bins < 1 || bins >= maxSearch:
		err = shapeErr("the number of bins %d is below 1 or too large", bins)
	case lo == 0 && hi == 0:
		lo, hi, err = t.span()
	}
	if err == nil && lo == hi {
		lo, hi = lo-0.5, hi+0.5
	}
	wide := t.DType().Compute()
	if err == nil && !(lo <= hi && finiteIn(wide, lo) && finiteIn(wide, hi)) {
		err = shapeErr("bins cannot go from %v to %v", lo, hi)
	}
	if err != nil {
		return twoFailures(name, failed(name, err, t))
	}
	edges = linspace(beside(t), name, wide, lo, hi, bins+1)
	if edges.Err() != nil { // the distance between the ends is not finite
		return twoFailures(name, edges)
	}
	x := inDType(t.Reshape(t.Len()), wide)
	at := search(edges, x, true).SubScalar(1)
	bin := ScalarWhere(x.EqScalar(hi), float64(bins-1), at)
	if counts, err = counted(dt, bin, bins); err != nil {
		return twoFailures(name, failed(name, err, t))
	}
	return counts, edges
}

// span reads the least and the greatest element, which are the range.
func (t *Tensor) span() (lo, hi float64, err error) {
	if t.Len() == 0 {
		return 0, 1, nil
	}
	defer within(t).end()
	low, high := t.Min(), t.Max()
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
