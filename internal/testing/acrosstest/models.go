package acrosstest

import (
	"math"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

const (
	features = 6
	classes  = 3
)

// regression makes batches of features and targets, and classification of features and classes.
// rows has the numbers of rows of the batches, in turn.
func regression(seed uint64, rows ...int) func(step int) Batch {
	return func(step int) Batch {
		n := rows[step%len(rows)]
		return Batch{n, []Array{
			{Row: []int{features}, Floats: Numbers(seed, uint64(2*step), n*features)},
			{Row: []int{classes}, Floats: Numbers(seed, uint64(2*step+1), n*classes)}}}
	}
}

func classification(seed uint64, rows ...int) func(step int) Batch {
	return func(step int) Batch {
		n := rows[step%len(rows)]
		return Batch{n, []Array{
			{Row: []int{features}, Floats: Numbers(seed, uint64(2*step), n*features)},
			{Ints: Classes(seed, uint64(2*step+1), classes, n)}}}
	}
}

// layers is a model of layers; its loss is the mean squared error.
func layers(random *nn.Random, optimiser func([]nn.Named) *optim.Optimizer, list ...nn.Module) *Training {
	m := nn.NewSequential(list...)
	params := nn.Params(m)
	return &Training{params, optimiser(params), random, func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.MSE(m.Forward(c, in[0]).Cast(in[1].DType()), in[1])
	}}
}

// at returns options of layers and a source of random numbers in a place.
func at(p millrace.Place, seed uint64) ([]nn.Option, *nn.Random) {
	return []nn.Option{nn.Seed(seed), nn.On(p)}, nn.NewRandom(seed, nn.On(p))
}

// optimisers of the table.
var (
	adam = func(opts ...optim.Option) func([]nn.Named) *optim.Optimizer {
		return func(p []nn.Named) *optim.Optimizer { return optim.AdamW(p, append(opts, optim.LR(0.05))...) }
	}
	sgd = func(opts ...optim.Option) func([]nn.Named) *optim.Optimizer {
		return func(p []nn.Named) *optim.Optimizer {
			return optim.SGD(p, append(opts, optim.LR(0.1), optim.Momentum(0.9))...)
		}
	}
)

// perceptron is a training of two layers, with what lies between them.
func perceptron(p millrace.Place, optimiser func([]nn.Named) *optim.Optimizer, between ...nn.Module) *Training {
	with, random := at(p, 3)
	list := append([]nn.Module{nn.NewLinear(features, 8, with...)}, between...)
	return layers(random, optimiser, append(list, nn.NewLinear(8, classes, with...))...)
}

// Models is the table.
func Models() []Model {
	list := []Model{
		{Name: "mlp", New: func(p millrace.Place) *Training {
			with, _ := at(p, 1)
			m := nn.NewSequential(nn.NewLinear(features, 8, with...), nn.Tanh{}, nn.NewLinear(8, classes, with...))
			params := nn.Params(m)
			return &Training{params, adam()(params), nil, func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
				return nn.CrossEntropy(m.Forward(c, in[0]), in[1])
			}}
		}, Batch: classification(1, 12, 16, 7)},
		{Name: "gpt", New: newGPT(0.1), Batch: text(2, 8, 5), Steps: 3},
		{Name: "dropout", New: func(p millrace.Place) *Training {
			return perceptron(p, sgd(), nn.ReLU{}, nn.NewDropout(0.5))
		}, Batch: regression(3, 12, 5, 3, 1)},
		{Name: "batchnorm", New: func(p millrace.Place) *Training {
			with, _ := at(p, 4)
			return perceptron(p, sgd(), nn.NewBatchNorm1d(8, with...), nn.Tanh{}, nn.NewDropout(0.2))
		}, Batch: regression(4, 16, 11)},
		{Name: "clipnorm", New: func(p millrace.Place) *Training {
			return perceptron(p, adam(optim.ClipNorm(0.1), optim.ClipValue(0.05)), nn.GELU{})
		}, Batch: regression(5, 8, 6)},
		{Name: "lossscale", New: func(p millrace.Place) *Training {
			with, _ := at(p, 6)
			return perceptron(p, adam(optim.LossScale(optim.Scaling{Initial: 1 << 10, Interval: 2}), optim.ClipNorm(1)),
				nn.NewBatchNorm1d(8, with...), nn.Tanh{}, nn.NewDropout(0.2))
		}, Batch: overflow(regression(6, 16, 11), 3), Steps: 6},
		{Name: "accumulate", New: func(p millrace.Place) *Training {
			return perceptron(p, sgd(optim.ClipNorm(0.5)), nn.Tanh{}, nn.NewDropout(0.5))
		}, Batch: regression(7, 8, 5, 3), Parts: 3, Steps: 6},
		{Name: "bfloat16", New: func(p millrace.Place) *Training {
			with, _ := at(p, 8)
			return perceptron(p, adam(), nn.NewLayerNorm(8, with...), nn.GELU{})
		}, Batch: regression(8, 8, 7), Compute: millrace.BFloat16},
		{Name: "float16 scaled", New: func(p millrace.Place) *Training {
			return perceptron(p, adam(optim.LossScale(optim.Scaling{Interval: 1})), nn.Tanh{})
		}, Batch: regression(9, 8, 7), Compute: millrace.Float16, Steps: 5},
		{Name: "dtypes", New: newDTypes, Batch: regression(10, 8, 6)},
		{Name: "frozen", New: func(p millrace.Place) *Training {
			return perceptron(p, adam(), nn.Tanh{}, nn.NewDropout(0.1))
		}, Batch: regression(11, 8, 5), Steps: 6, Before: func(t *Training, step int) {
			t.Find("0.weight").Freeze(step == 1 || step == 2)
			t.Find("3.bias").Freeze(step >= 2 && step < 5)
		}},
		{Name: "groups", New: func(p millrace.Place) *Training {
			bias := func(name string) bool { return name == "0.bias" || name == "2.bias" }
			return perceptron(p, func(p []nn.Named) *optim.Optimizer {
				return optim.Lion(p, optim.Schedule(optim.Warmup(2, 0.5, optim.Cosine(0.02, 12))), optim.WeightDecay(0.1),
					optim.Group(bias, optim.LR(0.01), optim.WeightDecay(0)))
			}, nn.Tanh{})
		}, Batch: regression(12, 8, 9)},
		{Name: "tied", New: newTied, Batch: regression(13, 8, 5), Leaves: 8},
		{Name: "six leaves", New: func(p millrace.Place) *Training {
			return perceptron(p, sgd(), nn.ReLU{}, nn.NewDropout(0.3))
		}, Batch: regression(14, 13, 7, 2), Leaves: 6, Ranks: []int{1, 2, 3}},
		{Name: "buffers", New: newBuffers, Batch: shared(regression(15, 12, 8, 5))},
		{Name: "zeros", New: newZeros, Batch: shared(regression(16, 3, 8)), Steps: 1},
		{Name: "wire", New: newDTypes, Batch: regression(18, 12, 7), Leaves: 8, Wire: millrace.BFloat16},
		{Name: "by hand", New: newNormed, Batch: regression(17, 9, 5), Cut: func(step, rows, ranks int) []int {
			at := make([]int, ranks+1) // one rank has most rows, another has none
			for r := range ranks {
				at[r+1] = at[r] + 1
				if r == (step+1)%ranks {
					at[r+1] = at[r]
				}
			}
			more := rows - at[ranks]
			for r := step%ranks + 1; r <= ranks; r++ {
				at[r] += more
			}
			return at
		}},
	}
	for i := range list {
		if list[i].Leaves == 0 {
			list[i].Leaves = 4
		}
		if list[i].Steps == 0 {
			list[i].Steps = 4
		}
	}
	return list
}

// overflow makes one row of a step's batch so large that gradients of its leaf overflow.
func overflow(batch func(int) Batch, at int) func(int) Batch {
	return func(step int) Batch {
		b := batch(step)
		if step == at {
			y := b.In[1].Floats
			y[len(y)-1] = math.MaxFloat32
		}
		return b
	}
}

// shared adds an input that is the same for all rows.
func shared(batch func(int) Batch) func(int) Batch {
	return func(step int) Batch {
		b := batch(step)
		b.In = append(b.In, Array{Shared: true, Floats: []float32{1 + 0.25*float32(step)}})
		return b
	}
}

// newDTypes has parameters of three dtypes.
func newDTypes(p millrace.Place) *Training {
	with, random := at(p, 10)
	with = with[:len(with):len(with)]
	a := nn.NewLinear(features, 8, append(with, nn.DType(millrace.BFloat16))...)
	b := nn.NewLinear(8, 8, append(with, nn.DType(millrace.Float64))...)
	c := nn.NewLinear(8, classes, with...)
	params := nn.Params([]nn.Module{a, b, c})
	return &Training{params, adam(optim.ClipNorm(0.3))(params), random, func(x *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		y := a.Forward(x, in[0].Cast(millrace.BFloat16)).Tanh()
		y = b.Forward(x, y.Cast(millrace.Float64)).Tanh()
		return nn.MSE(c.Forward(x, y.Cast(millrace.Float32)), in[1]).Cast(millrace.Float64)
	}}
}

// newTied uses a layer twice, and has one that it does not use.
func newTied(p millrace.Place) *Training {
	with, random := at(p, 13)
	var m struct {
		In, Unused *nn.Linear
		Twice, Out *nn.Linear
	}
	m.In, m.Unused = nn.NewLinear(features, 8, with...), nn.NewLinear(2, 2, with...)
	m.Twice, m.Out = nn.NewLinear(8, 8, with...), nn.NewLinear(8, classes, with...)
	params := nn.Params(&m)
	return &Training{params, sgd(optim.Nesterov())(params), random, func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		x := m.In.Forward(c, in[0]).Tanh()
		x = m.Twice.Forward(c, m.Twice.Forward(c, x).Tanh())
		return nn.MSE(m.Out.Forward(c, x), in[1])
	}}
}

// newBuffers changes buffers of several dtypes, and draws random numbers itself.
func newBuffers(p millrace.Place) *Training {
	with, random := at(p, 15)
	var m struct {
		In, Out          *nn.Linear
		Mean, Wide, Half *nn.Param
		Count, Still     *nn.Param
	}
	m.In, m.Out = nn.NewLinear(features, 8, with...), nn.NewLinear(8, classes, with...)
	m.Mean = nn.NewBuffer(millrace.FromSliceOn(p, Numbers(15, 1, 8)))
	m.Wide = nn.NewBuffer(millrace.FromSliceOn(p, []float64{0.1, 0.2}))
	m.Half = nn.NewBuffer(millrace.FromSliceOn(p, []float32{0.1, 0.2}).Cast(millrace.BFloat16))
	m.Count = nn.NewBuffer(millrace.FromSliceOn(p, []int64{7}))
	m.Still = nn.NewBuffer(millrace.FromSliceOn(p, []float32{0.1}))
	params := nn.Params(&m)
	return &Training{params, adam()(params), random, func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		x := m.In.Forward(c, in[0]).Tanh()
		now := autodiff.Detach(x).Mean(0)
		m.Mean.Update(c, m.Mean.In(c).MulScalar(0.9).Add(now.MulScalar(0.1)))
		two := now.Slice(millrace.R(0, 2))
		m.Wide.Update(c, m.Wide.In(c).Add(two.Cast(millrace.Float64).MulScalar(1.0/3)))
		m.Half.Update(c, m.Half.In(c).Add(two.Cast(millrace.BFloat16)))
		m.Count.Update(c, m.Count.In(c).MulScalar(3))
		x = x.Add(c.Normal(x.Shape()...).MulScalar(0.1)).Add(m.Still.In(c)).Mul(in[2])
		return nn.MSE(m.Out.Forward(c, x.Sub(m.Mean.In(c))), in[1])
	}}
}

// newZeros has a gradient of -0, which a leaf without rows must not change.
func newZeros(p millrace.Place) *Training {
	with, random := at(p, 16)
	var m struct {
		Out *nn.Linear
		W   *nn.Param
	}
	m.Out = nn.NewLinear(features, classes, with...)
	zero := float32(math.Copysign(0, -1))
	m.W = nn.NewParam(millrace.FromSliceOn(p, []float32{zero, zero})) // -0 - -0 is 0, and -0 - 0 is -0
	params := nn.Params(&m)
	return &Training{params, optim.SGD(params, optim.LR(0.1)), random, func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.MSE(m.Out.Forward(c, in[0]), in[1]).Add(m.W.In(c).Mul(in[2].MulScalar(math.Copysign(0, -1))).Sum())
	}}
}

// newNormed divides rows by their lengths, so a row of zeros gives no numbers.
func newNormed(p millrace.Place) *Training {
	with, random := at(p, 17)
	var m struct {
		Out  *nn.Linear
		Mean *nn.Param
	}
	m.Out = nn.NewLinear(features, classes, with...)
	m.Mean = nn.NewBuffer(millrace.FromSliceOn(p, Numbers(17, 1, features)))
	params := nn.Params(&m)
	o := adam(optim.LossScale(optim.Scaling{Initial: 8, Interval: 2}), optim.ClipNorm(0.2))(params)
	return &Training{params, o, random, func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		x := in[0].Div(in[0].Square().SumKeep(1).Sqrt())
		m.Mean.Update(c, m.Mean.In(c).MulScalar(0.5).Add(x.Mean(0)))
		return nn.MSE(m.Out.Forward(c, nn.NewDropout(0.2).Forward(c, x)), in[1])
	}}
}
