package millrace

import (
	"math"

	"github.com/millrace-go/millrace/internal/follow"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// The functions of this file are written from public ops and fuse like these. 16-bit floats are
// computed in float32 and rounded once, at the end.

// Mean is the sum of the elements along the axes, which it removes, divided by their number:
// NumPy's and PyTorch's mean. If no axis is given, it is over all elements. Floats only, else
// ErrDType. The mean of no elements is NaN. Axes are as for [Tensor.Sum].
func (t *Tensor) Mean(axes ...int) *Tensor { return statistic("mean", t, axes, false, mean) }

// MeanKeep is [Tensor.Mean] with the axes kept as dimensions of size 1.
func (t *Tensor) MeanKeep(axes ...int) *Tensor { return statistic("mean", t, axes, true, mean) }

// Var is the variance along the axes, which it removes, or of all elements if no axis is given:
// NumPy's and PyTorch's var. It is the sum of the squared differences from the mean, divided by
// the number of elements less ddof: 0 for the variance of a population, 1 for that of a sample. A
// second term corrects the rounding of the mean, so the variance of equal elements is 0. If the
// divisor is not positive, the result is NaN or an infinity. Floats only, else ErrDType. Axes are
// as for [Tensor.Sum].
func (t *Tensor) Var(ddof int, axes ...int) *Tensor {
	if followed(t) {
		return whole("var", "var", follow.Norm{List: axes, Ddof: ddof}, func(in []*Tensor) *Tensor { return in[0].Var(ddof, axes...) }, t)
	}
	return statistic("var", t, axes, false, varianceOf(ddof))
}

// VarKeep is [Tensor.Var] with the axes kept as dimensions of size 1.
func (t *Tensor) VarKeep(ddof int, axes ...int) *Tensor {
	if followed(t) {
		return whole("var", "var", follow.Norm{List: axes, Keep: true, Ddof: ddof}, func(in []*Tensor) *Tensor { return in[0].VarKeep(ddof, axes...) }, t)
	}
	return statistic("var", t, axes, true, varianceOf(ddof))
}

// Std is the standard deviation, the square root of [Tensor.Var]: NumPy's and PyTorch's std.
func (t *Tensor) Std(ddof int, axes ...int) *Tensor {
	if followed(t) {
		return whole("std", "std", follow.Norm{List: axes, Ddof: ddof}, func(in []*Tensor) *Tensor { return in[0].Std(ddof, axes...) }, t)
	}
	return statistic("std", t, axes, false, deviationOf(ddof))
}

// StdKeep is [Tensor.Std] with the axes kept as dimensions of size 1.
func (t *Tensor) StdKeep(ddof int, axes ...int) *Tensor {
	if followed(t) {
		return whole("std", "std", follow.Norm{List: axes, Keep: true, Ddof: ddof}, func(in []*Tensor) *Tensor { return in[0].StdKeep(ddof, axes...) }, t)
	}
	return statistic("std", t, axes, true, deviationOf(ddof))
}

// LogSumExp is the logarithm of the sum of the exponentials along the axes, which it removes:
// PyTorch's logsumexp. If no axis is given, it is over all elements. The largest element is
// subtracted before the exponential, so nothing overflows. For elements that are all -Inf it is
// -Inf. Floats only, else ErrDType; no elements are ErrShape. Axes are as for [Tensor.Sum].
func (t *Tensor) LogSumExp(axes ...int) *Tensor {
	if followed(t) {
		return whole("logsumexp", "logsumexp", follow.Norm{List: axes}, func(in []*Tensor) *Tensor { return in[0].LogSumExp(axes...) }, t)
	}
	return overFullRows("logsumexp", t, axes, func(x *Tensor, list []int) *Tensor { return logSumExp(x, list, false) })
}

// LogSumExpKeep is [Tensor.LogSumExp] with the axes kept as dimensions of size 1.
func (t *Tensor) LogSumExpKeep(axes ...int) *Tensor {
	if followed(t) {
		return whole("logsumexp", "logsumexp", follow.Norm{List: axes, Keep: true}, func(in []*Tensor) *Tensor { return in[0].LogSumExpKeep(axes...) }, t)
	}
	return overFullRows("logsumexp", t, axes, func(x *Tensor, list []int) *Tensor { return logSumExp(x, list, true) })
}

// Norm1 is the sum of the absolute values along the axes, which it removes, or of all elements if
// no axis is given. Floats only, else ErrDType. Axes are as for [Tensor.Sum].
func (t *Tensor) Norm1(axes ...int) *Tensor { return statistic("norm1", t, axes, false, norm1) }

// Norm1Keep is [Tensor.Norm1] with the axes kept as dimensions of size 1.
func (t *Tensor) Norm1Keep(axes ...int) *Tensor { return statistic("norm1", t, axes, true, norm1) }

// Norm2 is the square root of the sum of the squares. Otherwise it is like [Tensor.Norm1]. The
// squares are not scaled, so they may overflow or become 0.
func (t *Tensor) Norm2(axes ...int) *Tensor {
	if followed(t) {
		return whole("norm2", "norm2", follow.Norm{List: axes, Keep: false}, func(in []*Tensor) *Tensor { return in[0].Norm2(axes...) }, t)
	}
	return statistic("norm2", t, axes, false, norm2)
}

// Norm2Keep is [Tensor.Norm2] with the axes kept as dimensions of size 1.
func (t *Tensor) Norm2Keep(axes ...int) *Tensor {
	if followed(t) {
		return whole("norm2", "norm2", follow.Norm{List: axes, Keep: true}, func(in []*Tensor) *Tensor { return in[0].Norm2Keep(axes...) }, t)
	}
	return statistic("norm2", t, axes, true, norm2)
}

// rowFunc computes a statistic along axes. t's dtype needs no wider one to compute in, and the
// axes are resolved.
type rowFunc func(t *Tensor, axes []int, keep bool) *Tensor

// overFullRows is [overRows] for functions that have no value for a row without elements.
func overFullRows(name string, t *Tensor, axes []int, f func(x *Tensor, list []int) *Tensor) *Tensor {
	return overRows(name, t, axes, func(x *Tensor, list []int) *Tensor {
		for _, a := range list {
			if x.shape()[a] == 0 {
				return failed(name, shapeErr("axis %d of %v is empty", a, x.shape()), x)
			}
		}
		return f(x, list)
	})
}

func statistic(name string, t *Tensor, axes []int, keep bool, f rowFunc) *Tensor {
	return overRows(name, t, axes, func(x *Tensor, list []int) *Tensor { return f(x, list, keep) })
}

// overRows checks the operand and the axes of a composite, and calls f with t in the dtype that
// computes it. No axes means all axes.
func overRows(name string, t *Tensor, axes []int, f func(x *Tensor, list []int) *Tensor) *Tensor {
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	if !t.DType().IsFloat() {
		return failed(name, dtypeErr("%v tensor: floats only, use Cast", t.DType()), t)
	}
	list, err := reducedAxes(axes, t.Rank())
	if err != nil {
		return failed(name, err, t)
	}
	if !t.DType().Storage() {
		return f(t, list)
	}
	up := t.Cast(t.DType().Compute())
	wide := f(up, list)
	r := wide.Cast(t.DType())
	done(up, wide)
	return r
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

func mean(t *Tensor, axes []int, keep bool) *Tensor {
	sum := reduce(ir.Sum, t, axes, keep)
	r := sum.DivScalar(count(t, axes))
	done(sum)
	return r
}

// centred returns t less its mean.
func centred(t *Tensor, axes []int) *Tensor {
	m := mean(t, axes, true)
	d := t.Sub(m)
	done(m)
	return d
}

// varianceOf is the corrected two-pass algorithm (Chan, Golub and LeVeque, 1983). The differences
// from a rounded mean have a mean of their own, whose square it subtracts. For equal elements
// this gives exactly 0.
func varianceOf(ddof int) rowFunc {
	return func(t *Tensor, axes []int, keep bool) *Tensor {
		n := count(t, axes)
		d := centred(t, axes)
		sq := d.Square()
		sum, off := reduce(ir.Sum, sq, axes, keep), reduce(ir.Sum, d, axes, keep)
		rest := off.DivScalar(n)
		extra := off.Mul(rest)
		finite := extra.MinimumScalar(largest(t.DType())) // infinity less infinity would be NaN
		less := sum.Sub(finite)
		squares := less.MaximumScalar(0)
		r := squares.DivScalar(max(0, n-float64(ddof)))
		done(d, sq, sum, off, rest, extra, finite, less, squares)
		return r
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
	return func(t *Tensor, axes []int, keep bool) *Tensor {
		v := varianceOf(ddof)(t, axes, keep)
		r := v.Sqrt()
		done(v)
		return r
	}
}

func logSumExp(t *Tensor, axes []int, keep bool) *Tensor {
	top := reduce(ir.Max, t, axes, true)
	// Do not subtract an infinite maximum: -Inf less -Inf would be NaN.
	finite := top.IsFinite()
	shift := WhereScalar(finite, top, 0)
	d := t.Sub(shift)
	e := d.Exp()
	sum := reduce(ir.Sum, e, axes, true)
	log := sum.Log()
	r := log.Add(shift)
	done(top, finite, shift, d, e, sum, log)
	if keep {
		return r
	}
	s := r.Squeeze(axes...)
	done(r)
	return s
}

func norm1(t *Tensor, axes []int, keep bool) *Tensor {
	a := t.Abs()
	r := reduce(ir.Sum, a, axes, keep)
	done(a)
	return r
}

func norm2(t *Tensor, axes []int, keep bool) *Tensor {
	sq := t.Square()
	sum := reduce(ir.Sum, sq, axes, keep)
	r := sum.Sqrt()
	done(sq, sum)
	return r
}
