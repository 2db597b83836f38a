package millrace

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace/internal/follow"
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
	if followed(t) {
		return whole("softmax", "softmax", axis, func(in []*Tensor) *Tensor { return in[0].Softmax(axis) }, t)
	}
	return overFullRows("softmax", t, []int{axis}, func(x *Tensor, axes []int) *Tensor { return softmax(x, axes, false) })
}

// LogSoftmax is the logarithm of [Tensor.Softmax]: PyTorch's log_softmax. It is computed as t -
// max - log(sum(exp(t - max))), which stays accurate where the softmax is close to 0. It is NaN
// where the softmax is NaN: see [Tensor.MaskedLogSoftmax].
func (t *Tensor) LogSoftmax(axis int) *Tensor {
	if followed(t) {
		return whole("logsoftmax", "logsoftmax", axis, func(in []*Tensor) *Tensor { return in[0].LogSoftmax(axis) }, t)
	}
	return overFullRows("logsoftmax", t, []int{axis}, func(x *Tensor, axes []int) *Tensor { return logSoftmax(x, axes, false) })
}

// MaskedSoftmax is [Tensor.Softmax] over the visible elements: those where mask is false and t is
// not -Inf. Hidden elements give 0 and get no gradient. A row without visible elements gives 0
// everywhere, as in PyTorch's scaled_dot_product_attention, while Softmax gives NaN. All other
// rows have Softmax's bits. mask is Bool, else ErrDType, and broadcasts to t's shape, else
// ErrShape. A nil mask hides no element, so only those of -Inf are hidden.
func (t *Tensor) MaskedSoftmax(mask *Tensor, axis int) *Tensor {
	return overSeen("maskedsoftmax", t, mask, axis, softmax)
}

// MaskedLogSoftmax is the logarithm of [Tensor.MaskedSoftmax], computed like [Tensor.LogSoftmax].
// It is -Inf at hidden elements, which get no gradient, and everywhere in a row without visible
// elements.
func (t *Tensor) MaskedLogSoftmax(mask *Tensor, axis int) *Tensor {
	return overSeen("maskedlogsoftmax", t, mask, axis, logSoftmax)
}

// overSeen computes f along an axis of t, with -Inf where mask is true.
func overSeen(name string, t, mask *Tensor, axis int, f func(x *Tensor, axes []int, bare bool) *Tensor) *Tensor {
	if mask != nil {
		h := hold(name, &t, &mask)
		defer h.end()
		switch {
		case h.bad != nil:
			return h.bad
		case mask.DType() != Bool:
			return failed(name, dtypeErr("%v mask: Bool", mask.DType()), t, mask)
		case !t.DType().IsFloat():
			return failed(name, dtypeErr("%v tensor: floats only, use Cast", t.DType()), t, mask)
		case !broadcastsTo(mask.shape(), t.shape()):
			return failed(name, shapeErr("%v mask for %v", mask.shape(), t.shape()), t, mask)
		}
		t = t.MaskedFill(mask, math.Inf(-1))
		defer done(t)
	}
	run := func(t *Tensor) *Tensor {
		return overFullRows(name, t, []int{axis}, func(x *Tensor, axes []int) *Tensor { return f(x, axes, true) })
	}
	if followed(t) {
		return whole(name, name, axis, func(in []*Tensor) *Tensor { return run(in[0]) }, t)
	}
	return run(t)
}

// softmax is the softmax of x's rows. If bare is set, a row of only -Inf gives 0.
func softmax(x *Tensor, axes []int, bare bool) *Tensor {
	d, e, sum := exps(x, axes, bare)
	r := e.Div(sum)
	done(d, e, sum)
	return r
}

// logSoftmax is the logarithm of the softmax of x's rows. If bare is set, a row of only -Inf
// gives -Inf.
func logSoftmax(x *Tensor, axes []int, bare bool) *Tensor {
	d, e, sum := exps(x, axes, bare)
	log := sum.Log()
	r := d.Sub(log)
	done(d, e, sum, log)
	return r
}

// exps returns d, x less its rows' largest elements; e, the exponential of d; and the sum of e.
// If bare is set, a row of only -Inf gives a d of -Inf, an e of 0, and a sum that is not 0. The
// two bounds change no other row, because its maximum is finite, +Inf or NaN, and its sum is at
// least 1.
func exps(x *Tensor, axes []int, bare bool) (d, e, sum *Tensor) {
	top := reduce(ir.Max, x, axes, true)
	if bare {
		all := top
		top = all.MaximumScalar(-largest(x.DType()))
		done(all)
	}
	d = x.Sub(top)
	e = d.Exp()
	sum = reduce(ir.Sum, e, axes, true)
	if bare {
		all := sum
		sum = all.MaximumScalar(0.5)
		done(all)
	}
	done(top)
	return d, e, sum
}

// LayerNorm scales t to mean 0 and variance 1 along the axes, or along the last one if none is
// given: (t - mean) / sqrt(var + eps), times weight, plus bias. It is PyTorch's layer_norm.
// Weight and bias may be nil; otherwise they have t's dtype (else ErrDType) and broadcast to t's
// shape (else ErrShape). t has floats, else ErrDType. Axes are as for [Tensor.Sum].
func (t *Tensor) LayerNorm(weight, bias *Tensor, eps float64, axes ...int) *Tensor {
	if followed(t, weight, bias) {
		return whole("layernorm", "layernorm", follow.Norm{List: axes, Eps: eps}, func(in []*Tensor) *Tensor {
			return in[0].LayerNorm(in[1], in[2], eps, axes...)
		}, t, weight, bias)
	}
	return normalised("layernorm", t, axes, weight, bias, func(x *Tensor, list []int) *Tensor {
		d := centred(x, list)
		sq := d.Square()
		v := mean(sq, list, true)
		shifted := v.AddScalar(eps)
		rs := shifted.Rsqrt()
		r := d.Mul(rs)
		done(d, sq, v, shifted, rs)
		return r
	})
}

// RMSNorm is t / sqrt(mean(t*t) + eps) along the axes, times weight, which may be nil: PyTorch's
// rms_norm. Otherwise it is like [Tensor.LayerNorm].
func (t *Tensor) RMSNorm(weight *Tensor, eps float64, axes ...int) *Tensor {
	if followed(t, weight) {
		return whole("rmsnorm", "rmsnorm", follow.Norm{List: axes, Eps: eps}, func(in []*Tensor) *Tensor {
			return in[0].RMSNorm(in[1], eps, axes...)
		}, t, weight)
	}
	return normalised("rmsnorm", t, axes, weight, nil, func(x *Tensor, list []int) *Tensor {
		sq := x.Square()
		v := mean(sq, list, true)
		shifted := v.AddScalar(eps)
		rs := shifted.Rsqrt()
		r := x.Mul(rs)
		done(sq, v, shifted, rs)
		return r
	})
}

// normalised does what all norms share: the checks, the weight and the bias.
func normalised(name string, t *Tensor, axes []int, weight, bias *Tensor, f func(x *Tensor, list []int) *Tensor) *Tensor {
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	if len(axes) == 0 && t.Rank() > 0 {
		axes = []int{-1}
	}
	for _, p := range []**Tensor{&weight, &bias} {
		if *p == nil {
			continue
		}
		if h.add(name, p); h.bad != nil {
			return h.bad
		}
		p := *p
		if p.DType() != t.DType() {
			return failed(name, dtypeErr("%v tensor with %v parameters", t.DType(), p.DType()), t, p)
		}
		if !broadcastsTo(p.shape(), t.shape()) {
			return failed(name, shapeErr("%v parameters for %v", p.shape(), t.shape()), t, p)
		}
	}
	return overRows(name, t, axes, func(x *Tensor, list []int) *Tensor {
		r := f(x, list)
		r = applied(r, weight, (*Tensor).Mul)
		return applied(r, bias, (*Tensor).Add)
	})
}

// applied returns f(x, p), with p in x's dtype, or x itself if p is nil. It releases x if x is
// not the result.
func applied(x, p *Tensor, f func(x, p *Tensor) *Tensor) *Tensor {
	if p == nil {
		return x
	}
	wide := p
	if p.DType() != x.DType() {
		wide = p.Cast(x.DType())
		defer done(wide)
	}
	r := f(x, wide)
	done(x)
	return r
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
func CrossEntropy(logits, targets *Tensor) *Tensor {
	const name = "crossentropy"
	if followed(logits) {
		return whole(name, name, nil, func(in []*Tensor) *Tensor { return CrossEntropy(in[0], in[1]) }, logits, targets)
	}
	h := hold(name, &logits, &targets)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	shape := logits.shape()
	switch {
	case len(shape) == 0 || !slices.Equal(shape[:len(shape)-1], targets.shape()):
		return failed(name, shapeErr("%v logits with %v targets", shape, targets.shape()), logits, targets)
	case !ir.IndexDTypes.Has(targets.DType()):
		return failed(name, dtypeErr("%v targets: Int32 or Int64", targets.DType()), logits, targets)
	}
	return overFullRows(name, logits, []int{-1}, func(x *Tensor, axes []int) *Tensor {
		all := logSumExp(x, axes, true)
		at := targets.Unsqueeze(-1)
		own := x.TakeAlong(at, -1)
		d := all.Sub(own)
		r := d.Squeeze(-1)
		done(all, at, own, d)
		return r
	})
}
