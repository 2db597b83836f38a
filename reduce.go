package millrace

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Sum adds the elements along the axes, which it removes, or all elements into a 0-d tensor if no
// axis is given: NumPy's and PyTorch's sum. Numbers only, else ErrDType; the dtype is t's, and
// integers wrap around. A negative axis counts from the last. An axis that does not exist or is
// given twice is ErrShape.
//
// The order of the additions depends only on the elements' logical positions, so the bits depend
// only on shape and values. The sum of no elements is +0.
func (t *Tensor) Sum(axes ...int) *Tensor { return reduce(ir.Sum, t, axes, false) }

// SumKeep is [Tensor.Sum] with the axes kept as dimensions of size 1. Dtypes and errors are the
// same.
func (t *Tensor) SumKeep(axes ...int) *Tensor { return reduce(ir.Sum, t, axes, true) }

// SumAs is [Tensor.Sum] of the elements converted to a dtype of numbers (else ErrDType), which is
// the result's too: NumPy's sum with a dtype. It sums small integers that would wrap around,
// counts the true elements of bools, and sums 16-bit floats in a wider dtype. The conversion is
// that of [Tensor.Cast].
func (t *Tensor) SumAs(dt DType, axes ...int) (r *Tensor) {
	const name = "sumas"
	c := compose(name, nil, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	list, err := reducedAxes(axes, t.Rank())
	if !ir.Numbers.Has(dt) {
		err = dtypeErr("the sum cannot have dtype %v, only numbers", dt)
	}
	if err != nil {
		return failed(name, err, t)
	}
	return reduce(ir.Sum, t.Cast(dt), list, false)
}

// Max is the largest element along the axes, which it removes, or of all elements as a 0-d tensor
// if no axis is given: NumPy's max, PyTorch's amax. Numbers only, else ErrDType; the dtype is
// t's. A NaN among the elements makes the result NaN, and -0 is less than +0. The maximum of no
// elements is ErrShape. Axes are as for [Tensor.Sum]. The larger of two tensors' elements is
// [Tensor.Maximum].
func (t *Tensor) Max(axes ...int) *Tensor { return reduce(ir.Max, t, axes, false) }

// MaxKeep is [Tensor.Max] with the axes kept as dimensions of size 1. Dtypes and errors are the
// same.
func (t *Tensor) MaxKeep(axes ...int) *Tensor { return reduce(ir.Max, t, axes, true) }

// Prod multiplies the elements along the axes, which it removes, or all elements if no axis is
// given: NumPy's and PyTorch's prod. Numbers only, else ErrDType; the dtype is t's, and integers
// wrap around. The product of no elements is 1. Axes and the order of the multiplications are as
// for [Tensor.Sum].
func (t *Tensor) Prod(axes ...int) *Tensor { return reduce(ir.Prod, t, axes, false) }

// ProdKeep is [Tensor.Prod] with the axes kept as dimensions of size 1. Dtypes and errors are the
// same.
func (t *Tensor) ProdKeep(axes ...int) *Tensor { return reduce(ir.Prod, t, axes, true) }

// Min is the smallest element: NumPy's min, PyTorch's amin. Axes, dtypes and errors are as for
// [Tensor.Max], and the minimum of no elements is ErrShape.
func (t *Tensor) Min(axes ...int) *Tensor { return reduce(ir.Min, t, axes, false) }

// MinKeep is [Tensor.Min] with the axes kept as dimensions of size 1. Dtypes and errors are the
// same.
func (t *Tensor) MinKeep(axes ...int) *Tensor { return reduce(ir.Min, t, axes, true) }

// Any is true where at least one element along the axes is true: NumPy's and PyTorch's any. It
// removes the axes; if none is given, it is over all elements. Bool only, else ErrDType. For no
// elements it is false. Axes are as for [Tensor.Sum].
func (t *Tensor) Any(axes ...int) *Tensor { return reduce(ir.Any, t, axes, false) }

// AnyKeep is [Tensor.Any] with the axes kept as dimensions of size 1. Dtypes and errors are the
// same.
func (t *Tensor) AnyKeep(axes ...int) *Tensor { return reduce(ir.Any, t, axes, true) }

// All is true where every element along the axes is true: NumPy's and PyTorch's all. It removes
// the axes; if none is given, it is over all elements. Bool only, else ErrDType. For no elements
// it is true. Axes are as for [Tensor.Sum].
func (t *Tensor) All(axes ...int) *Tensor { return reduce(ir.All, t, axes, false) }

// AllKeep is [Tensor.All] with the axes kept as dimensions of size 1. Dtypes and errors are the
// same.
func (t *Tensor) AllKeep(axes ...int) *Tensor { return reduce(ir.All, t, axes, true) }

// ArgMax is the position of the largest element along the axes, which it removes: its row-major
// number among the elements of those axes. It is NumPy's and PyTorch's argmax. The first NaN
// counts as largest. Of equal elements the first is taken, and -0 is less than +0. The result is
// Int64. Numbers only, else ErrDType; no elements are ErrShape. Axes are as for [Tensor.Sum].
func (t *Tensor) ArgMax(axes ...int) *Tensor { return position(ir.ArgMax, t, Int64, axes) }

// ArgMin is the position of the smallest element, Int64: NumPy's and PyTorch's argmin. The first
// NaN counts as smallest. Axes, ties, dtypes and errors are as for [Tensor.ArgMax].
func (t *Tensor) ArgMin(axes ...int) *Tensor { return position(ir.ArgMin, t, Int64, axes) }

// ArgMaxAs is [Tensor.ArgMax] with the result in dt, Int32 or Int64 (else ErrDType), for devices
// without Int64. More elements than an Int32 can number are ErrShape.
func (t *Tensor) ArgMaxAs(dt DType, axes ...int) *Tensor { return position(ir.ArgMax, t, dt, axes) }

// ArgMinAs is [Tensor.ArgMin] with the result in dt. Its dtypes and errors are those of
// [Tensor.ArgMaxAs].
func (t *Tensor) ArgMinAs(dt DType, axes ...int) *Tensor { return position(ir.ArgMin, t, dt, axes) }

func reduce(op ir.Op, t *Tensor, axes []int, keep bool) *Tensor {
	h := hold(op.String(), &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	list, err := reducedAxes(axes, t.Rank())
	if err != nil {
		return failed(op.String(), err, t)
	}
	return view(op, t, nil, &ir.Attr{Axes: list, Keep: keep})
}

func position(op ir.Op, t *Tensor, dt DType, axes []int) *Tensor {
	h := hold(op.String(), &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	list, err := reducedAxes(axes, t.Rank())
	if err != nil {
		return failed(op.String(), err, t)
	}
	args := [...]stream.Arg{arg(t)}
	return record(op, dt, nil, &ir.Attr{Axes: list}, args[:])
}

// reducedAxes resolves axes and sorts them; none means all.
func reducedAxes(axes []int, rank int) ([]int, error) {
	list, err := axesOf(axes, rank)
	if err != nil {
		return nil, err
	}
	if len(axes) == 0 {
		for i := range rank {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return list, nil
}

// The functions of this file are written from public ops and fuse like these. 16-bit floats are
// computed in float32 and rounded once, at the end.

// Mean is the sum of the elements along the axes, which it removes, divided by their number:
// NumPy's and PyTorch's mean. If no axis is given, it is over all elements. Floats only, else
// ErrDType. The mean of no elements is NaN. Axes are as for [Tensor.Sum].
func (t *Tensor) Mean(axes ...int) *Tensor { return statistic("mean", nil, t, axes, false, mean) }

// MeanKeep is [Tensor.Mean] with the axes kept as dimensions of size 1. Dtypes and errors are the
// same.
func (t *Tensor) MeanKeep(axes ...int) *Tensor { return statistic("mean", nil, t, axes, true, mean) }

// Var is the variance along the axes, which it removes, or of all elements if no axis is given:
// NumPy's and PyTorch's var. It is the sum of the squared differences from the mean, divided by
// the number of elements less ddof: 0 for the variance of a population, 1 for that of a sample. A
// second term corrects the rounding of the mean, so the variance of equal elements is 0. If the
// divisor is not positive, the result is NaN or an infinity. Floats only, else ErrDType. Axes are
// as for [Tensor.Sum].
func (t *Tensor) Var(ddof int, axes ...int) *Tensor {
	return statistic("var", adhook.Var{Axes: axes, Ddof: ddof}, t, axes, false, varianceOf(ddof))
}

// VarKeep is [Tensor.Var] with the axes kept as dimensions of size 1. Dtypes and errors are the
// same.
func (t *Tensor) VarKeep(ddof int, axes ...int) *Tensor {
	return statistic("var", adhook.Var{Axes: axes, Ddof: ddof}, t, axes, true, varianceOf(ddof))
}

// Std is the standard deviation, the square root of [Tensor.Var], with the same axes, dtypes and
// errors: NumPy's and PyTorch's std.
func (t *Tensor) Std(ddof int, axes ...int) *Tensor {
	return statistic("std", adhook.Std{Axes: axes, Ddof: ddof}, t, axes, false, deviationOf(ddof))
}

// StdKeep is [Tensor.Std] with the axes kept as dimensions of size 1. Dtypes and errors are the
// same.
func (t *Tensor) StdKeep(ddof int, axes ...int) *Tensor {
	return statistic("std", adhook.Std{Axes: axes, Ddof: ddof}, t, axes, true, deviationOf(ddof))
}

// LogSumExp is the logarithm of the sum of the exponentials along the axes, which it removes:
// PyTorch's logsumexp. If no axis is given, it is over all elements. The largest element is
// subtracted before the exponential, so nothing overflows. For elements that are all -Inf it is
// -Inf. Floats only, else ErrDType; no elements are ErrShape. Axes are as for [Tensor.Sum].
func (t *Tensor) LogSumExp(axes ...int) *Tensor {
	return overFullRows("logsumexp", adhook.LogSumExp{Axes: axes}, t, axes, func(x *Tensor, list []int) *Tensor { return logSumExp(x, list, false) })
}

// LogSumExpKeep is [Tensor.LogSumExp] with the axes kept as dimensions of size 1. Dtypes and errors
// are the same.
func (t *Tensor) LogSumExpKeep(axes ...int) *Tensor {
	return overFullRows("logsumexp", adhook.LogSumExp{Axes: axes}, t, axes, func(x *Tensor, list []int) *Tensor { return logSumExp(x, list, true) })
}

// Norm1 is the sum of the absolute values along the axes, which it removes, or of all elements if
// no axis is given. Floats only, else ErrDType. Axes are as for [Tensor.Sum].
func (t *Tensor) Norm1(axes ...int) *Tensor { return statistic("norm1", nil, t, axes, false, norm1) }

// Norm1Keep is [Tensor.Norm1] with the axes kept as dimensions of size 1. Dtypes and errors are the
// same.
func (t *Tensor) Norm1Keep(axes ...int) *Tensor { return statistic("norm1", nil, t, axes, true, norm1) }

// Norm2 is the square root of the sum of the squares. Axes, dtypes and errors are as for
// [Tensor.Norm1]. The squares are not scaled, so they may overflow or become 0.
func (t *Tensor) Norm2(axes ...int) *Tensor {
	return statistic("norm2", adhook.Norm2{Axes: axes}, t, axes, false, norm2)
}

// Norm2Keep is [Tensor.Norm2] with the axes kept as dimensions of size 1. Dtypes and errors are the
// same.
func (t *Tensor) Norm2Keep(axes ...int) *Tensor {
	return statistic("norm2", adhook.Norm2{Axes: axes}, t, axes, true, norm2)
}

// rowFunc computes a statistic along axes. t's dtype needs no wider one to compute in, and the
// axes are resolved.
type rowFunc func(t *Tensor, axes []int, keep bool) *Tensor

// overFullRows is [overRows] for functions that have no value for a row without elements.
func overFullRows(name string, rule adhook.Composite, t *Tensor, axes []int, f func(x *Tensor, list []int) *Tensor) *Tensor {
	return overRows(name, rule, t, axes, func(x *Tensor, list []int) *Tensor {
		for _, a := range list {
			if x.shape()[a] == 0 {
				return failed(name, shapeErr("axis %d of %v is empty", a, x.shape()), x)
			}
		}
		return f(x, list)
	})
}

func statistic(name string, rule adhook.Composite, t *Tensor, axes []int, keep bool, f rowFunc) *Tensor {
	return overRows(name, rule, t, axes, func(x *Tensor, list []int) *Tensor { return f(x, list, keep) })
}

// overRows checks the operand and the axes of a composite, and calls f with t in the dtype that
// computes it. No axes means all axes.
func overRows(name string, rule adhook.Composite, t *Tensor, axes []int, f func(x *Tensor, list []int) *Tensor) (r *Tensor) {
	c := compose(name, rule, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	dt := t.DType()
	if !dt.IsFloat() {
		return failed(name, dtypeErr("%v is not a float dtype; use Cast", dt), t)
	}
	list, err := reducedAxes(axes, t.Rank())
	if err != nil {
		return failed(name, err, t)
	}
	return inDType(f(inDType(t, dt.Compute()), list), dt)
}

// done releases the intermediate results of a composite. No other handle may have them.
func done(ts ...*Tensor) {
	for _, t := range ts {
		if t.made() {
			stream.Drop(&t.v)
		}
	}
}

// count returns the number of elements in a row.
func count(t *Tensor, axes []int) float64 {
	n := 1
	for _, a := range axes {
		n *= t.shape()[a]
	}
	return float64(n)
}

func mean(t *Tensor, axes []int, keep bool) (r *Tensor) {
	defer within(t).end(&r)
	return reduce(ir.Sum, t, axes, keep).DivScalar(count(t, axes))
}

// centred returns t less its mean.
func centred(t *Tensor, axes []int) (r *Tensor) {
	defer within(t).end(&r)
	return t.Sub(mean(t, axes, true))
}

// varianceOf is the corrected two-pass algorithm (Chan, Golub and LeVeque, 1983). The differences
// from a rounded mean have a mean of their own, whose square it subtracts. For equal elements
// this gives exactly 0.
func varianceOf(ddof int) rowFunc {
	return func(t *Tensor, axes []int, keep bool) (r *Tensor) {
		defer within(t).end(&r)
		n := count(t, axes)
		d := centred(t, axes)
		sum, off := reduce(ir.Sum, d.Square(), axes, keep), reduce(ir.Sum, d, axes, keep)
		extra := off.Mul(off.DivScalar(n))
		finite := extra.MinimumScalar(largest(t.DType())) // infinity less infinity would be NaN
		return sum.Sub(finite).MaximumScalar(0).DivScalar(max(0, n-float64(ddof)))
	}
}

// largest returns the largest finite number of the dtype that computes dt: 16-bit floats are
// computed in float32.
func largest(dt DType) float64 {
	if dt == Float64 {
		return math.MaxFloat64
	}
	return math.MaxFloat32
}

func deviationOf(ddof int) rowFunc {
	return func(t *Tensor, axes []int, keep bool) *Tensor { return varianceOf(ddof)(t, axes, keep).Sqrt() }
}

func logSumExp(t *Tensor, axes []int, keep bool) (r *Tensor) {
	p := within(t)
	defer p.end(&r)
	top := reduce(ir.Max, t, axes, true)
	// Do not subtract an infinite maximum: -Inf less -Inf would be NaN.
	shift := WhereScalar(top.IsFinite(), top, 0)
	r = reduce(ir.Sum, t.Sub(shift).Exp(), axes, true).Log().Add(shift)
	if keep {
		return r
	}
	p.end(&r)
	return r.Squeeze(axes...)
}

func norm1(t *Tensor, axes []int, keep bool) *Tensor { return reduce(ir.Sum, t.Abs(), axes, keep) }

func norm2(t *Tensor, axes []int, keep bool) *Tensor {
	return reduce(ir.Sum, t.Square(), axes, keep).Sqrt()
}

// Median is the middle one of the sorted elements along the axes, which it removes, or of all
// elements if no axis is given: NumPy's median. For an even number of elements it is the mean of
// the middle two. It is [Tensor.Quantile] of 0.5, with the same dtypes and errors.
func (t *Tensor) Median(axes ...int) *Tensor { return t.quantile("median", 0.5, axes, false) }

// MedianKeep is [Tensor.Median] with the axes kept as dimensions of size 1. Dtypes and errors are
// the same.
func (t *Tensor) MedianKeep(axes ...int) *Tensor { return t.quantile("median", 0.5, axes, true) }

// Quantile is the number below which a share q of the elements along the axes is: NumPy's and
// PyTorch's quantile with the linear method. It removes the axes; if none is given, it is over
// all elements. Of n sorted elements it is the one at position q·(n-1). Between two elements, it
// is their mean, weighted by nearness, and never outside of the two. It is NaN if an element is
// NaN. t has floats, else ErrDType. A q outside [0, 1] is ErrShape, and so are no elements and an
// axis that does not exist or is given twice.
func (t *Tensor) Quantile(q float64, axes ...int) *Tensor {
	return t.quantile("quantile", q, axes, false)
}

// QuantileKeep is [Tensor.Quantile] with the axes kept as dimensions of size 1. Dtypes and errors
// are the same.
func (t *Tensor) QuantileKeep(q float64, axes ...int) *Tensor {
	return t.quantile("quantile", q, axes, true)
}

func (t *Tensor) quantile(name string, q float64, axes []int, keep bool) *Tensor {
	return overRows(name, nil, t, axes, func(x *Tensor, list []int) *Tensor {
		n := int(count(x, list))
		if !(q >= 0 && q <= 1) || n == 0 {
			return failed(name, shapeErr("quantile %v of %d elements does not exist", q, n), x)
		}
		sorted := x.rowsOf(list).Sort(-1)
		column := func(i int) *Tensor {
			ranges := slices.Repeat([]Range{All}, sorted.Rank())
			ranges[len(ranges)-1] = At(i)
			return sorted.Slice(ranges...)
		}
		place := q * float64(n-1)
		low := min(int(place), n-1)
		r := column(low)
		if share := place - math.Floor(place); share > 0 {
			r = between(r, column(low+1), share)
		}
		last := column(n - 1) // NaN is sorted to the end
		y := Where(last.IsNaN(), last, r)
		if !keep {
			return y
		}
		kept := slices.Clone(x.shape())
		for _, a := range list {
			kept[a] = 1
		}
		return y.Reshape(kept...)
	})
}

// between returns a·(1-share) + b·share for a ≤ b, never a number outside of the two.
func between(a, b *Tensor, share float64) (r *Tensor) {
	c := compose("quantile", adhook.Between{Share: share}, &a, &b)
	defer c.end(&r)
	// Do not add a share of the difference to a: for two infinities the difference is NaN.
	mean := a.MulScalar(1 - share).Add(b.MulScalar(share))
	// The products and their sum are rounded, so the mean may be slightly outside of the two
	// numbers.
	within := mean.Maximum(a).Minimum(b)
	return Where(a.Eq(b), a, within)
}

// rowsOf merges the axes into one dimension, the last.
func (t *Tensor) rowsOf(axes []int) *Tensor {
	var order, shape []int
	n := 1
	for d, size := range t.shape() {
		if slices.Contains(axes, d) {
			n *= size
			continue
		}
		order, shape = append(order, d), append(shape, size)
	}
	return t.Permute(append(order, axes...)...).Reshape(append(shape, n)...)
}
