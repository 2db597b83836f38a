package acrosstest

import (
	"fmt"
	"math/rand/v2"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// Random makes a random model: layers, an optimiser with options, and batches of uneven numbers of
// rows, some fewer than there are ranks.
func Random(seed uint64) Model {
	r := rand.New(rand.NewPCG(seed, 77))
	chance := func(p float64) bool { return r.Float64() < p }
	m := Model{Name: fmt.Sprintf("program %d", seed), Leaves: 4 << r.IntN(2), Steps: 4 + r.IntN(4)}
	if chance(0.15) {
		m.Leaves, m.Ranks = 12, []int{1, 2, 3, 4}
	}
	kinds := make([]int, r.IntN(4))
	norm := false
	for i := range kinds {
		kinds[i] = r.IntN(8)
		norm = norm || kinds[i] == 2
	}
	rows := make([]int, 1+r.IntN(3))
	for i := range rows {
		if rows[i] = 1 + r.IntN(3*m.Leaves); norm {
			rows[i] += 2 * m.Leaves // each leaf has two rows and more: BatchNorm needs them
		}
	}
	m.Batch = regression(seed, rows...)
	if chance(0.4) {
		m.Compute = []millrace.DType{millrace.BFloat16, millrace.Float16}[r.IntN(2)]
	}
	if chance(0.3) {
		m.Parts = 2 + r.IntN(2)
		m.Steps = m.Parts * (1 + r.IntN(3))
	}
	if chance(0.2) {
		m.Wire = millrace.BFloat16
	}
	dt := millrace.Float32
	if m.Compute == millrace.Invalid && !norm && chance(0.3) {
		dt = []millrace.DType{millrace.Float64, millrace.BFloat16}[r.IntN(2)]
	}
	tied, freezes, rule := chance(0.3), chance(0.3), r.IntN(len(rules))
	m.Whole = rule == len(rules)-1
	opts := []optim.Option{optim.Schedule(optim.Warmup(2, 0.5, optim.Cosine(0.05, 12)))}
	for _, o := range []optim.Option{
		optim.ClipNorm(0.3), optim.ClipValue(0.1), optim.LossScale(optim.Scaling{Initial: 1 << 20, Interval: 2}),
		optim.Group(func(name string) bool { return len(name)%2 == 0 }, optim.LR(0.01), optim.WeightDecay(0.3)),
	} {
		if chance(0.3) {
			opts = append(opts, o)
		}
	}
	m.New = func(p millrace.Place) *Training {
		with, random := at(p, seed)
		with = append(with, nn.DType(dt))
		list := []nn.Module{cast(dt), nn.NewLinear(features, features, with...)}
		for _, k := range kinds {
			list = append(list, randomLayer(k, with))
		}
		if tied {
			list = append(list, list[1])
		}
		list = append(list, nn.NewLinear(features, classes, with...))
		return layers(random, func(p []nn.Named) *optim.Optimizer { return rules[rule](p, opts...) }, list...)
	}
	if freezes {
		order := r.Perm(m.Steps)
		m.Before = func(t *Training, step int) {
			var weights []nn.Named
			for _, p := range t.Params {
				if !p.Buffer() {
					weights = append(weights, p)
				}
			}
			if k := order[step]; k%3 == 0 && len(weights) > 1 {
				weights[1+k%(len(weights)-1)].Freeze(k%2 == 0)
			}
		}
	}
	return m
}

// rules are the rules that make optimisers. The state of the last one cannot be divided.
var rules = []func([]nn.Named, ...optim.Option) *optim.Optimizer{
	func(p []nn.Named, opts ...optim.Option) *optim.Optimizer {
		return optim.SGD(p, append(opts, optim.Momentum(0.9), optim.Dampening(0.1))...)
	},
	optim.Adam, optim.AdamW, optim.RMSProp, optim.Adagrad, optim.Lion, optim.LAMB,
}

func randomLayer(kind int, with []nn.Option) nn.Module {
	switch kind {
	case 0:
		return nn.NewLinear(features, features, with...)
	case 1:
		return nn.NewLayerNorm(features, with...)
	case 2:
		return nn.NewBatchNorm1d(features, with...)
	case 3:
		return nn.NewDropout(0.3)
	case 4:
		return nn.ReLU{}
	case 5:
		return &noise{}
	case 6:
		return &again{nn.NewLinear(features, features, with...)}
	}
	return nn.Tanh{}
}

// cast makes numbers of a dtype, if the pass has none of its own.
type cast millrace.DType

func (dt cast) Forward(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
	if c.DType() != millrace.Invalid {
		return x
	}
	return x.Cast(millrace.DType(dt))
}

// noise adds random numbers.
type noise struct{}

func (*noise) Forward(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
	return x.Add(c.Normal(x.Shape()...).MulScalar(0.1).Cast(x.DType()))
}

// again computes a layer and dropout anew in the backward pass.
type again struct{ Layer *nn.Linear }

func (l *again) Forward(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
	return nn.Checkpoint(c, func(c *nn.Ctx, in []*millrace.Tensor) []*millrace.Tensor {
		return []*millrace.Tensor{nn.NewDropout(0.3).Forward(c, l.Layer.Forward(c, in[0]).Tanh())}
	}, x)[0]
}
