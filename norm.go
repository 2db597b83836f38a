package millrace

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/ir"
)

// Softmax is exp(t - max) / sum(exp(t - max)) along an axis: positive numbers that add up to 1.
// It is PyTorch's softmax. t has floats, else ErrDType. A negative axis counts from the last. An
// axis that does not exist or has no elements is ErrShape. A row with a NaN or +Inf, or with only
// -Inf, gives NaN. Use [Tensor.MaskedSoftmax] for scores in which -Inf hides elements, if it may
// hide a whole row.
//
// It is written from public ops and fuses like them with ops before and after it.
func (t *Tensor) Softmax(axis int) *Tensor {
	return overFullRows("softmax", adhook.Softmax{Axis: axis}, t, []int{axis}, func(x *Tensor, axes []int) *Tensor { return softmax(x, axes, false) })
}

// LogSoftmax is the logarithm of [Tensor.Softmax], with the same dtypes and errors: PyTorch's
// log_softmax. It is computed as t - max - log(sum(exp(t - max))), which stays accurate where the
// softmax is close to 0. It is NaN where the softmax is NaN: see [Tensor.MaskedLogSoftmax].
func (t *Tensor) LogSoftmax(axis int) *Tensor {
	return overFullRows("logsoftmax", adhook.LogSoftmax{Axis: axis}, t, []int{axis}, func(x *Tensor, axes []int) *Tensor { return logSoftmax(x, axes, false) })
}

// MaskedSoftmax is [Tensor.Softmax] over the visible elements: those where mask is false and t is
// not -Inf. Hidden elements give 0 and get no gradient. A row without visible elements gives 0
// everywhere, as in PyTorch's scaled_dot_product_attention, while Softmax gives NaN. All other
// rows have Softmax's bits. mask is Bool, else ErrDType, and broadcasts to t's shape, else
// ErrShape. A nil mask hides no element, so only those of -Inf are hidden.
func (t *Tensor) MaskedSoftmax(mask *Tensor, axis int) *Tensor {
	return overSeen("maskedsoftmax", adhook.MaskedSoftmax{Axis: axis}, t, mask, axis, softmax)
}

// MaskedLogSoftmax is the logarithm of [Tensor.MaskedSoftmax], computed like [Tensor.LogSoftmax].
// It is -Inf at hidden elements, which get no gradient, and everywhere in a row without visible
// elements. Dtypes and errors are those of MaskedSoftmax.
func (t *Tensor) MaskedLogSoftmax(mask *Tensor, axis int) *Tensor {
	return overSeen("maskedlogsoftmax", adhook.MaskedLogSoftmax{Axis: axis}, t, mask, axis, logSoftmax)
}

// overSeen computes f along an axis of t, with -Inf where mask is true.
func overSeen(name string, rule adhook.Composite, t, mask *Tensor, axis int, f func(x *Tensor, axes []int, bare bool) *Tensor) (r *Tensor) {
	if mask != nil {
		c := compose(name, nil, &t, &mask)
		defer c.end(&r)
		switch {
		case c.bad != nil:
			return c.bad
		case mask.DType() != Bool:
			return failed(name, dtypeErr("the mask has dtype %v, not Bool", mask.DType()), t, mask)
		case !t.DType().IsFloat():
			return failed(name, dtypeErr("%v is not a float dtype; use Cast", t.DType()), t, mask)
		case !broadcastsTo(mask.shape(), t.shape()):
			return failed(name, shapeErr("a mask of %v does not broadcast to %v", mask.shape(), t.shape()), t, mask)
		}
		t = t.MaskedFill(mask, math.Inf(-1))
	}
	return overFullRows(name, rule, t, []int{axis}, func(x *Tensor, axes []int) *Tensor { return f(x, axes, true) })
}

// softmax is the softmax of x's rows. If bare is set, a row of only -Inf gives 0.
func softmax(x *Tensor, axes []int, bare bool) *Tensor {
	_, e, sum := exps(x, axes, bare)
	return e.Div(sum)
}

// logSoftmax is the logarithm of the softmax of x's rows. If bare is set, a row of only -Inf
// gives -Inf.
func logSoftmax(x *Tensor, axes []int, bare bool) *Tensor {
	d, _, sum := exps(x, axes, bare)
	return d.Sub(sum.Log())
}

// exps returns d, x less its rows' largest elements; e, the exponential of d; and the sum of e.
// If bare is set, a row of only -Inf gives a d of -Inf, an e of 0, and a sum that is not 0. The
// two bounds change no other row, because its maximum is finite, +Inf or NaN, and its sum is at
// least 1.
func exps(x *Tensor, axes []int, bare bool) (d, e, sum *Tensor) {
	defer within(x).end(&d, &e, &sum)
	top := reduce(ir.Max, x, axes, true)
	if bare {
		top = top.MaximumScalar(-largest(x.DType()))
	}
	d = x.Sub(top)
	e = d.Exp()
	sum = reduce(ir.Sum, e, axes, true)
	if bare {
		sum = sum.MaximumScalar(0.5)
	}
	return d, e, sum
}

// LayerNorm scales t to mean 0 and variance 1 along the axes, or along the last one if none is
// given: (t - mean) / sqrt(var + eps), times weight, plus bias. It is PyTorch's layer_norm.
// Weight and bias may be nil; otherwise they have t's dtype (else ErrDType) and broadcast to t's
// shape (else ErrShape). t has floats, else ErrDType. Axes are as for [Tensor.Sum].
func (t *Tensor) LayerNorm(weight, bias *Tensor, eps float64, axes ...int) *Tensor {
	return normalised("layernorm", adhook.LayerNorm{Axes: axes, Eps: eps}, t, axes, weight, bias, func(x *Tensor, list []int) *Tensor {
		d := centred(x, list)
		return d.Mul(mean(d.Square(), list, true).AddScalar(eps).Rsqrt())
	})
}

// RMSNorm is t / sqrt(mean(t*t) + eps) along the axes, times weight, which may be nil (Zhang and
// Sennrich, 2019; PyTorch's rms_norm). Axes, dtypes and errors are as for [Tensor.LayerNorm].
func (t *Tensor) RMSNorm(weight *Tensor, eps float64, axes ...int) *Tensor {
	return normalised("rmsnorm", adhook.RMSNorm{Axes: axes, Eps: eps}, t, axes, weight, nil, func(x *Tensor, list []int) *Tensor {
		return x.Mul(mean(x.Square(), list, true).AddScalar(eps).Rsqrt())
	})
}

// normalised does what all norms share: the checks, the weight and the bias.
func normalised(name string, rule adhook.Composite, t *Tensor, axes []int, weight, bias *Tensor, f func(x *Tensor, list []int) *Tensor) (r *Tensor) {
	c := compose(name, rule, &t, optional(&weight), optional(&bias))
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	if len(axes) == 0 && t.Rank() > 0 {
		axes = []int{-1}
	}
	for _, p := range []*Tensor{weight, bias} {
		switch {
		case p == nil:
		case p.DType() != t.DType():
			return failed(name, dtypeErr("the tensor has dtype %v, its parameters have %v", t.DType(), p.DType()), t, p)
		case !broadcastsTo(p.shape(), t.shape()):
			return failed(name, shapeErr("parameters of %v do not broadcast to %v", p.shape(), t.shape()), t, p)
		}
	}
	return overRows(name, nil, t, axes, func(x *Tensor, list []int) *Tensor {
		p := within(x)
		x = f(x, list)
		p.end(&x)
		x = applied(x, weight, (*Tensor).Mul)
		p.end(&x)
		return applied(x, bias, (*Tensor).Add)
	})
}

// applied returns f(x, p), with p in x's dtype, or x itself if p is nil.
func applied(x, p *Tensor, f func(x, p *Tensor) *Tensor) *Tensor {
	if p == nil {
		return x
	}
	return f(x, inDType(p, x.DType()))
}

// broadcastsTo reports whether shape from broadcasts to shape to.
func broadcastsTo(from, to ir.Shape) bool {
	if len(from) > len(to) {
		return false
	}
	for i, n := range from {
		if n != 1 && n != to[len(to)-len(from)+i] {
			return false
		}
	}
	return true
}

// CrossEntropy is the negative logarithm of the softmax at the target, for every row of logits
// along the last axis: logsumexp(row) - row[target]. It is PyTorch's cross_entropy without a
// reduction. Targets are Int32 or Int64 (else ErrDType). They have the shape of logits without
// the last axis, and so has the result; the last axis must have elements (else ErrShape). A
// target out of range is ErrIndex when the result is computed. Logits are floats, else ErrDType.
func CrossEntropy(logits, targets *Tensor) (r *Tensor) {
	const name = "crossentropy"
	c := compose(name, adhook.CrossEntropy{}, &logits, &targets)
	defer c.end(&r)
	shape := logits.shape()
	switch {
	case c.bad != nil:
		return c.bad
	case len(shape) == 0 || !slices.Equal(shape[:len(shape)-1], targets.shape()):
		return failed(name, shapeErr("logits %v do not fit targets %v", shape, targets.shape()), logits, targets)
	case !ir.IndexDTypes.Has(targets.DType()):
		return failed(name, dtypeErr("targets cannot have dtype %v, only Int32 or Int64", targets.DType()), logits, targets)
	}
	return overFullRows(name, nil, logits, []int{-1}, func(x *Tensor, axes []int) *Tensor {
		return logSumExp(x, axes, true).Sub(x.TakeAlong(targets.Unsqueeze(-1), -1)).Squeeze(-1)
	})
}
