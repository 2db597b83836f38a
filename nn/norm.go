package nn

import (
	"slices"

	"github.com/millrace-go/millrace"
)

// Plain makes a norm without weight and bias.
func Plain() Option { return Option{kPlain, func(o *settings) {}} }

// Momentum is m in running = (1-m)·running + m·batch, the update of a [BatchNorm]'s running
// statistics.
func Momentum(m float64) Option { return Option{kMomentum, func(o *settings) { o.momentum = m }} }

// wide casts x to a dtype for sums: Float32 for 16-bit floats, else x's own.
func wide(x *millrace.Tensor) *millrace.Tensor {
	if dt := x.DType(); dt.IsFloat() && dt.Storage() {
		return x.Cast(dt.Compute())
	}
	return x
}

// as casts x to dt, unless dt is Invalid.
func as(x *millrace.Tensor, dt millrace.DType) *millrace.Tensor {
	if x.DType() != dt && dt != millrace.Invalid {
		return x.Cast(dt)
	}
	return x
}

// wideIn is a parameter in x's dtype, which is wide enough for a norm; nil for nil.
func wideIn(c *Ctx, p *Param, x *millrace.Tensor) *millrace.Tensor {
	if p == nil {
		return nil
	}
	return as(p.master(c), x.DType())
}

// affine makes a norm's weight and bias: ones and zeros.
func (o *settings) affine(shape ...int) (weight, bias *Param) {
	if o.has(kPlain) {
		return nil, nil
	}
	weight = o.draw(o.weights, InitConstant(1), shape...)
	if !o.has(kNoBias) {
		bias = o.draw(o.biases, InitConstant(0), shape...)
	}
	return weight, bias
}

// BatchNorm computes (x-mean)/√(variance+eps)·weight+bias for each channel, the second dimension
// (Ioffe and Szegedy, 2015). In training the statistics are those of the batch, and the running
// statistics move towards them by Momentum (with the unbiased variance). Outside of training the
// running statistics are used. 16-bit floats are computed in float32.
type BatchNorm struct {
	Weight            *Param // (channels), or nil
	Bias              *Param // (channels), or nil
	RunningMean       *Param // (channels)
	RunningVar        *Param // (channels)
	NumBatchesTracked *Param // number of steps

	Eps, Momentum float64
	// Fixed makes it use the running statistics in training too, without updating them: for
	// fine-tuning on small batches.
	Fixed bool

	name  string
	ranks []int
}

// NewBatchNorm1d makes a BatchNorm for (batch, channels) and (batch, channels, length). It takes
// [Eps], default 1e-5, [Momentum], default 0.1, [Plain], [Weights] and [Biases].
func NewBatchNorm1d(n int, opts ...Option) *BatchNorm {
	return newBatchNorm("batchnorm1d", n, []int{2, 3}, opts)
}

// NewBatchNorm2d makes a BatchNorm for (batch, channels, height, width). Otherwise it is like
// [NewBatchNorm1d].
func NewBatchNorm2d(n int, opts ...Option) *BatchNorm {
	return newBatchNorm("batchnorm2d", n, []int{4}, opts)
}

func newBatchNorm(name string, n int, ranks []int, opts []Option) *BatchNorm {
	o := settled(name, opts, kEps|kMomentum|kPlain|kWeights|kBiases)
	o.usually(&o.eps, kEps, 1e-5)
	o.usually(&o.momentum, kMomentum, 0.1)
	l := &BatchNorm{Eps: o.eps, Momentum: o.momentum, name: name, ranks: ranks}
	l.Weight, l.Bias = o.affine(n)
	l.RunningMean = o.buffer(InitConstant(0), n)
	l.RunningVar = o.buffer(InitConstant(1), n)
	l.NumBatchesTracked = o.counter()
	return l
}

// Forward returns a tensor of x's shape, in c's compute dtype or, without one, x's dtype. Other
// ranks or numbers of channels are [millrace.ErrShape]. In training, a channel of one value is
// ErrShape, too.
func (l *BatchNorm) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	dt := c.result(x)
	x = wide(x)
	n := l.RunningMean.t.Len()
	if x.Rank() < 2 || x.Dim(1) != n || l.ranks != nil && !slices.Contains(l.ranks, x.Rank()) {
		return fail(l.title(), shapeErr("%v does not fit statistics of %d channels", x.Shape(), n), x, l.RunningMean.t)
	}
	w, b := wideIn(c, l.Weight, x), wideIn(c, l.Bias, x)
	if !c.Training() || l.Fixed {
		return as(l.running(c, x, w, b), dt)
	}
	axes := []int{0}
	for i := 2; i < x.Rank(); i++ {
		axes = append(axes, i)
	}
	count := 0
	if n > 0 {
		count = x.Len() / n
	}
	if count < 2 {
		return fail(l.title(), shapeErr("training needs more than one value in a channel, %v does not have them", x.Shape()), x)
	}
	mean := x.MeanKeep(axes...)
	d := x.Sub(mean)
	v := d.Square().MeanKeep(axes...)
	y := d.Mul(v.AddScalar(l.Eps).Rsqrt())
	y = perChannel(y, w, (*millrace.Tensor).Mul)
	y = perChannel(y, b, (*millrace.Tensor).Add)
	l.track(c, l.RunningMean, mean)
	l.track(c, l.RunningVar, v.MulScalar(float64(count)/float64(count-1)))
	if p := l.NumBatchesTracked; p != nil {
		p.Update(c, p.In(c).AddScalar(1))
	}
	return as(y, dt)
}

// running is Forward with the running statistics: one factor and one summand for each channel.
func (l *BatchNorm) running(c *Ctx, x, w, b *millrace.Tensor) *millrace.Tensor {
	var own []*millrace.Tensor // they belong to no scope
	defer func() { drop(own...) }()
	do := func(t *millrace.Tensor) *millrace.Tensor {
		own = append(own, t)
		return t
	}
	at := c.place(x) // x's place: ops on statistics alone would hold up the statistics' stream
	mean, v := do(wideIn(c, l.RunningMean, x).To(at)), do(wideIn(c, l.RunningVar, x).To(at))
	scale := do(do(v.AddScalar(l.Eps)).Rsqrt())
	if w != nil {
		scale = do(scale.Mul(w))
	}
	shift := do(do(mean.Mul(scale)).Neg())
	if b != nil {
		shift = do(b.Add(shift))
	}
	return perChannel(perChannel(x, scale, (*millrace.Tensor).Mul), shift, (*millrace.Tensor).Add)
}

// track moves a running statistic towards that of a batch.
func (l *BatchNorm) track(c *Ctx, p *Param, now *millrace.Tensor) {
	old := p.In(c)
	now = as(detached(now), old.DType()).Reshape(old.Shape()...)
	p.Update(c, old.MulScalar(1-l.Momentum).Add(now.MulScalar(l.Momentum)))
}

func (l *BatchNorm) title() string {
	if l.name == "" {
		return "batchnorm"
	}
	return l.name
}

// LayerNorm computes (x-mean)/√(variance+eps)·weight+bias over the last dimensions (Ba and others,
// 2016; PyTorch's nn.LayerNorm). 16-bit floats are computed in float32.
type LayerNorm struct {
	Weight *Param // of the last dimensions' sizes, or nil
	Bias   *Param // like Weight, or nil
	Shape  []int  // the last dimensions
	Eps    float64

	bad *millrace.Tensor
}

// NewLayerNorm makes a LayerNorm over the last dimension, of n elements. It takes [Eps], default
// 1e-5, [NoBias], [Plain], [Weights] and [Biases].
func NewLayerNorm(n int, opts ...Option) *LayerNorm { return NewLayerNormOver([]int{n}, opts...) }

// NewLayerNormOver is [NewLayerNorm] over several dimensions of these sizes.
func NewLayerNormOver(shape []int, opts ...Option) *LayerNorm {
	o := settled("layernorm", opts, kEps|kNoBias|kPlain|kWeights|kBiases)
	o.usually(&o.eps, kEps, 1e-5)
	l := &LayerNorm{Shape: slices.Clone(shape), Eps: o.eps}
	l.Weight, l.Bias = o.affine(shape...)
	l.bad = o.bad
	return l
}

// Forward returns a tensor of x's shape, in c's compute dtype or, without one, x's dtype. Other
// last dimensions are [millrace.ErrShape]. An x that is not of floats is [millrace.ErrDType].
func (l *LayerNorm) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	dt := c.result(x)
	x, axes, bad := lastDims("layernorm", x, l.Shape, l.bad)
	if bad != nil {
		return bad
	}
	return as(x.LayerNorm(wideIn(c, l.Weight, x), wideIn(c, l.Bias, x), l.Eps, axes...), dt)
}

// lastDims returns wide x and the axes of its last dimensions, which must have these sizes.
func lastDims(name string, x *millrace.Tensor, shape []int, bad *millrace.Tensor) (w *millrace.Tensor, axes []int, failed *millrace.Tensor) {
	if bad != nil {
		return x, nil, fail(name, errNoParam, bad)
	}
	x = wide(x)
	in := x.Shape()
	if len(shape) == 0 || len(in) < len(shape) || !slices.Equal(in[len(in)-len(shape):], shape) {
		return x, nil, fail(name, shapeErr("%v does not fit a norm of %v", in, shape), x)
	}
	for i := range shape {
		axes = append(axes, i-len(shape))
	}
	return x, axes, nil
}

// RMSNorm computes x/√(mean(x²)+eps)·weight over the last dimensions (Zhang and Sennrich, 2019;
// PyTorch's nn.RMSNorm). 16-bit floats are computed in float32.
type RMSNorm struct {
	Weight *Param // of the last dimensions' sizes, or nil
	Shape  []int  // the last dimensions
	Eps    float64

	bad *millrace.Tensor
}

// NewRMSNorm makes an RMSNorm over the last dimension, of n elements. It takes [Eps], default
// 2^-23, [Plain] and [Weights].
func NewRMSNorm(n int, opts ...Option) *RMSNorm { return NewRMSNormOver([]int{n}, opts...) }

// NewRMSNormOver is [NewRMSNorm] over several dimensions of these sizes.
func NewRMSNormOver(shape []int, opts ...Option) *RMSNorm {
	o := settled("rmsnorm", opts, kEps|kPlain|kWeights)
	o.usually(&o.eps, kEps, 0x1p-23)
	l := &RMSNorm{Shape: slices.Clone(shape), Eps: o.eps}
	o.given |= kNoBias
	l.Weight, _ = o.affine(shape...)
	l.bad = o.bad
	return l
}

// Forward returns a tensor of x's shape, in c's compute dtype or, without one, x's dtype. Other
// last dimensions are [millrace.ErrShape]. An x that is not of floats is [millrace.ErrDType].
func (l *RMSNorm) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	dt := c.result(x)
	x, axes, bad := lastDims("rmsnorm", x, l.Shape, l.bad)
	if bad != nil {
		return bad
	}
	return as(x.RMSNorm(wideIn(c, l.Weight, x), l.Eps, axes...), dt)
}

// GroupNorm normalises groups of channels, the second dimension, to mean 0 and variance 1,
// separately in each element of the batch (Wu and He, 2018; PyTorch's nn.GroupNorm). Weight and
// bias are per channel. 16-bit floats are computed in float32.
type GroupNorm struct {
	Weight *Param // (channels), or nil
	Bias   *Param // (channels), or nil
	Groups int
	Eps    float64

	channels int
	bad      *millrace.Tensor
}

// NewGroupNorm makes a GroupNorm for (batch, channels, …). It takes [Eps], default 1e-5, [Plain],
// [Weights] and [Biases]. groups must divide channels, else results carry [millrace.ErrShape].
func NewGroupNorm(groups, channels int, opts ...Option) *GroupNorm {
	o := settled("groupnorm", opts, kEps|kPlain|kWeights|kBiases)
	o.usually(&o.eps, kEps, 1e-5)
	if groups < 1 || channels%groups != 0 {
		o.fault("groupnorm", shapeErr("%d channels cannot be split into %d groups", channels, groups))
	}
	l := &GroupNorm{Groups: groups, Eps: o.eps, channels: channels}
	l.Weight, l.Bias = o.affine(channels)
	l.bad = o.bad
	return l
}

// Forward returns a tensor of x's shape, in c's compute dtype or, without one, x's dtype. Another
// number of channels, or a rank below 2, is [millrace.ErrShape]; an x that is not of floats is
// [millrace.ErrDType].
func (l *GroupNorm) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	dt := c.result(x)
	x = wide(x)
	shape := x.Shape()
	switch {
	case l.bad != nil:
		return fail("groupnorm", errNoParam, l.bad)
	case len(shape) < 2 || shape[1] != l.channels:
		return fail("groupnorm", shapeErr("%v does not fit a norm of %d channels", shape, l.channels), x)
	}
	rows := 1
	for _, n := range shape[2:] {
		rows *= n
	}
	y := x.Reshape(shape[0], l.Groups, l.channels/l.Groups*rows).LayerNorm(nil, nil, l.Eps).Reshape(shape...)
	y = perChannel(y, wideIn(c, l.Weight, x), (*millrace.Tensor).Mul)
	y = perChannel(y, wideIn(c, l.Bias, x), (*millrace.Tensor).Add)
	return as(y, dt)
}
