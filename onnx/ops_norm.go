package onnx

import (
	"slices"

	"github.com/millrace-go/millrace"
)

func init() {
	register(
		op{name: "BatchNormalization", since: 7, run: batchNorm},
		op{name: "Dropout", since: 7, run: dropout, onHost: 1<<1 | 1<<2},
		op{name: "GroupNormalization", since: 18, run: one(groupNorm)},
		op{name: "InstanceNormalization", since: 6, run: one(instanceNorm)},
		op{name: "LayerNormalization", since: 17, run: layerNorm},
		op{name: "LRN", since: 1, run: one(lrn)},
		op{name: "MeanVarianceNormalization", since: 9, run: one(meanVariance)},
		op{name: "NegativeLogLikelihoodLoss", since: 12, run: one(nllLoss)},
		op{name: "RMSNormalization", since: 23, run: one(rmsNorm)},
		op{name: "RotaryEmbedding", since: 23, run: one(rotary)},
		op{name: "SoftmaxCrossEntropyLoss", since: 12, run: crossEntropyLoss},
	)
}

// batchNorm uses the given statistics, or in training mode those of the batch.
func batchNorm(c *call) []*value {
	x, eps := c.t(0), c.float("epsilon", 1e-5)
	scale, bias := c.along(c.t(1), x, 1), c.along(c.t(2), x, 1)
	mean, variance := c.t(3), c.t(4)
	if c.rank(0) < 2 {
		c.shapeFail("shape %v", c.shape(0))
	}
	if c.err != nil {
		return nil
	}
	if c.int("training_mode", 0) == 0 {
		dt := x.DType()
		m, v := c.along(mean.Cast(dt), x, 1), c.along(variance.Cast(dt), x, 1)
		y := x.Sub(m).Mul(scale.Cast(dt).Mul(v.AddScalar(eps).Sqrt().Recip())).Add(bias.Cast(dt))
		return results(y, c.unless(1, mean), c.unless(2, variance))
	}
	axes := slices.Delete(seq(x.Rank()), 1, 2)
	m, v := x.Mean(axes...), x.Var(0, axes...)
	y := x.Sub(c.along(m, x, 1)).Mul(scale).Div(c.along(v.AddScalar(eps).Sqrt(), x, 1)).Add(bias)
	keep := c.float("momentum", 0.9)
	mix := func(old, now *tensor) *tensor { return old.MulScalar(keep).Add(now.MulScalar(1 - keep)) }
	return results(y, mix(mean, m), mix(variance, v))
}

// unless is a further result, if the node wants it.
func (c *call) unless(i int, t *tensor) *tensor {
	if c.want(i) {
		return t
	}
	return nil
}

// dropout does nothing but in training mode, which is refused: its random numbers would differ from
// those of every other program.
func dropout(c *call) []*value {
	if c.n.opset >= 12 && c.has(2) && c.scalar(2) != 0 {
		ratio := 0.5
		if c.has(1) {
			ratio = c.scalar(1)
		}
		if ratio != 0 {
			c.fail("%w: training mode", millrace.ErrUnsupported)
			return nil
		}
	}
	x := c.in[0]
	if !c.want(1) {
		return []*value{x}
	}
	mask := millrace.Bool
	if c.n.opset < 10 {
		mask = c.dtype(0)
	}
	return []*value{x, device(millrace.OnesOn(c.f.r.place, mask, c.shape(0)...))}
}

func groupNorm(c *call) *tensor {
	x, d, groups := c.t(0), c.shape(0), c.int("num_groups", 0)
	if len(d) < 2 || groups < 1 || d[1]%groups != 0 {
		c.shapeFail("%d groups for shape %v", groups, d)
		return nil
	}
	scale, bias := c.t(1), c.t(2)
	y := x.Reshape(d[0], groups, -1).LayerNorm(nil, nil, c.float("epsilon", 1e-5), 2)
	if scale.Len() == groups && groups != d[1] { // opset 18: one for each group
		return y.Mul(scale.Reshape(-1, 1)).Add(bias.Reshape(-1, 1)).Reshape(d...)
	}
	y = y.Reshape(d...)
	return y.Mul(c.along(scale, y, 1)).Add(c.along(bias, y, 1))
}

func instanceNorm(c *call) *tensor {
	x := c.t(0)
	axes := c.spatial()
	if c.err != nil {
		return nil
	}
	y := x.LayerNorm(nil, nil, c.float("epsilon", 1e-5), axes...)
	return y.Mul(c.along(c.t(1), x, 1)).Add(c.along(c.t(2), x, 1))
}

// layerNorm also gives the mean and the reciprocal of the deviation.
func layerNorm(c *call) []*value {
	x, eps := c.t(0), c.float("epsilon", 1e-5)
	axis := c.axis(c.int("axis", -1), c.rank(0))
	if c.err != nil {
		return nil
	}
	axes := seq(c.rank(0))[axis:]
	var bias *tensor
	if c.has(2) {
		bias = c.t(2)
	}
	y := x.LayerNorm(c.t(1), bias, eps, axes...)
	if !c.want(1) && !c.want(2) {
		return results(y)
	}
	wide := x
	if dt := x.DType(); dt != millrace.Float64 {
		wide = x.Cast(c.dtypeAttr("stash_type", millrace.Float32))
	}
	return results(y, wide.MeanKeep(axes...), wide.VarKeep(0, axes...).AddScalar(eps).Rsqrt())
}

func rmsNorm(c *call) *tensor {
	x := c.t(0)
	axis := c.axis(c.int("axis", -1), c.rank(0))
	if c.err != nil {
		return nil
	}
	return x.RMSNorm(c.t(1), c.float("epsilon", 1e-5), seq(c.rank(0))[axis:]...)
}

func lrn(c *call) *tensor {
	x, size := c.t(0), c.int("size", 0)
	if c.rank(0) < 3 || size < 1 || size > 1<<30 {
		c.shapeFail("size %d for shape %v", size, c.shape(0))
		return nil
	}
	w := millrace.Window{Size: size, Before: (size - 1) / 2, After: size - 1 - (size-1)/2}
	d := c.shape(0)
	sum := x.Square().Reshape(d[0], d[1], -1).ReduceWindow(millrace.ReduceSum, w, millrace.Window{Size: 1}).Reshape(d...)
	alpha, beta, bias := c.float("alpha", 1e-4), c.float("beta", 0.75), c.float("bias", 1)
	return x.Div(sum.MulScalar(alpha / float64(size)).AddScalar(bias).PowScalar(beta))
}

func meanVariance(c *call) *tensor {
	axes := c.list("axes")
	if axes == nil {
		axes = []int{0, 2, 3}
	}
	axes = c.axes(axes, c.rank(0))
	if c.err != nil {
		return nil
	}
	x := c.t(0)
	return x.Sub(x.MeanKeep(axes...)).Div(x.StdKeep(0, axes...).AddScalar(1e-9))
}

// nll is the negative log likelihood of classes along axis 1, with weights and an ignored class.
func (c *call) nll(logs, target *tensor, weight int) *tensor {
	if logs.Rank() < 2 {
		c.shapeFail("shape %v has no classes", logs.Shape())
		return nil
	}
	classes := logs.Dim(1)
	ignore, ignored := 0, c.given("ignore_index")
	safe := target
	var keep *tensor
	if ignored {
		ignore = c.int("ignore_index", 0)
		keep = target.NeScalar(float64(ignore))
		safe = millrace.WhereScalar(keep, target, 0)
	}
	loss := logs.TakeAlong(safe.Unsqueeze(1), 1).Squeeze(1).Neg()
	w := millrace.OnesOn(c.f.r.place, logs.DType(), target.Shape()...)
	if c.has(weight) {
		if c.rank(weight) != 1 || c.shape(weight)[0] != classes {
			c.shapeFail("weights of shape %v for %d classes", c.shape(weight), classes)
			return nil
		}
		w = c.t(weight).Take(safe, 0)
	}
	if ignored {
		w = millrace.WhereScalar(keep, w, 0)
	}
	loss = millrace.WhereScalar(w.NeScalar(0), loss.Mul(w), 0)
	switch how := c.str("reduction", "mean"); how {
	case "none":
		return loss
	case "sum":
		return loss.Sum()
	case "mean":
		if !c.has(weight) && !ignored {
			return loss.Mean()
		}
		return loss.Sum().Div(w.Sum())
	default:
		c.fail("reduction %q is unknown", how)
	}
	return nil
}

func nllLoss(c *call) *tensor { return c.nll(c.t(0), c.t(1), 2) }

func crossEntropyLoss(c *call) []*value {
	x := c.t(0)
	if c.rank(0) < 2 {
		c.shapeFail("shape %v has no classes", c.shape(0))
		return nil
	}
	logs := x.LogSoftmax(1)
	loss := c.nll(logs, c.t(1), 2)
	if c.err != nil {
		return nil
	}
	return results(loss, logs)
}

// rotary rotates pairs of elements of each head, of the first rotary_embedding_dim elements.
func rotary(c *call) *tensor {
	x, d := c.t(0), c.shape(0)
	flat := len(d) == 3
	if flat {
		heads := c.int("num_heads", 0)
		if heads < 1 || d[2]%heads != 0 {
			c.shapeFail("%d heads for shape %v", heads, d)
			return nil
		}
		x = x.Reshape(d[0], d[1], heads, d[2]/heads)
	} else if len(d) == 4 {
		x = x.Permute(0, 2, 1, 3)
	} else {
		c.shapeFail("shape %v has neither 3 nor 4 dimensions", d)
		return nil
	}
	size := x.Dim(3)
	part := c.int("rotary_embedding_dim", 0)
	if part == 0 {
		part = size
	}
	if part < 2 || part > size || part%2 != 0 {
		c.shapeFail("rotation of %d of %d elements", part, size)
		return nil
	}
	cos, sin := c.t(1), c.t(2)
	if c.has(3) {
		cos, sin = cos.Take(c.t(3), 0), sin.Take(c.t(3), 0)
	}
	half := part / 2
	last := func(t *tensor, r millrace.Range) *tensor { return t.Slice(millrace.All, millrace.All, millrace.All, r) }
	cos, sin = cos.Unsqueeze(2), sin.Unsqueeze(2)
	if cos.Rank() != 4 || cos.Dim(3) != half {
		c.shapeFail("a cache of shape %v for %d elements", c.shape(1), part)
		return nil
	}
	turned, rest := last(x, millrace.R(0, part)), last(x, millrace.R(part, size))
	between := c.int("interleaved", 0) != 0
	a, b := last(turned, millrace.R(0, half)), last(turned, millrace.R(half, part))
	if between {
		a, b = last(turned, millrace.R(0, part, 2)), last(turned, millrace.R(1, part, 2))
	}
	re, im := a.Mul(cos).Sub(b.Mul(sin)), a.Mul(sin).Add(b.Mul(cos))
	y := millrace.Concat(3, re, im)
	if between {
		y = millrace.Stack(4, re, im).Reshape(turned.Shape()...)
	}
	if part < size {
		y = millrace.Concat(3, y, rest)
	}
	if flat {
		return y.Reshape(d...)
	}
	return y.Permute(0, 2, 1, 3)
}
