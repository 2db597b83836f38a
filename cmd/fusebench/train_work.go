package main

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/examples/models"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// lesson is a training step to be timed: a model and its data. Sizes are those of the seeds'
// tables and of programs that other projects time; small ones are for tests.
type lesson struct {
	about string
	sized bool // its name ends with sizes: makemore-64x1
	learn func(l *learner, sizes []int, small bool) error
}

var lessons = map[string]lesson{
	"softmax":  {"softmax by hand, as exp(x - log(sum(exp(x)))), weighed and summed: loss and gradient", false, learnSoftmax},
	"mlp":      {"4 layers of 1024, batch 512, ReLU, SGD", false, learnMLP},
	"makemore": {"a perceptron over 16 embedded characters, SGD; hidden units x batch", true, learnMakeMore},
	"gpt":      {"a GPT of 46,289 parameters, context 8, SGD; batch", true, learnGPT},
	"nanogpt":  {"a GPT of 10.7 million parameters, batch 8, context 256, AdamW", false, learnNanoGPT},
	"resnet20": {"ResNet-20, 3x32x32, batch 128, SGD with momentum", false, learnResNet},
	"gru":      {"embedding of 32768, GRU of 256, 200 steps, batch 50, AdamW, norm clipped at 5", false, learnGRU},
	"gruhand":  {"the same GRU as a loop over tensor ops", false, learnGRU},
}

var lessonNames = []string{"softmax", "mlp", "makemore-4x1", "makemore-64x1", "makemore-1024x1", "makemore-4x64", "makemore-64x64", "makemore-1024x64",
	"gpt-1", "gpt-64", "resnet20", "gru", "nanogpt"}

// lessonOf parses a variant's name.
func lessonOf(variant string) (l lesson, sizes []int, err error) {
	name, rest, _ := strings.Cut(variant, "-")
	l, known := lessons[name]
	if !known || l.sized == (rest == "") {
		return l, nil, usageError("-variants %q: want some of %s, or other sizes of makemore and gpt", variant, strings.Join(lessonNames, ", "))
	}
	if l.sized {
		for part := range strings.SplitSeq(rest, "x") {
			n, err := strconv.Atoi(part)
			if err != nil || n < 1 || n > 1<<16 {
				return l, nil, usageError("-variants %q: %q is not a size", variant, part)
			}
			sizes = append(sizes, n)
		}
		if want := map[string]int{"makemore": 2, "gpt": 1}[name]; len(sizes) != want {
			return l, nil, usageError("-variants %q: want %d sizes", variant, want)
		}
	}
	return l, sizes, nil
}

// learner is a lesson on a device in a dtype, as an eager loop, recorded or bound.
type learner struct {
	name string
	dev  *millrace.Device
	dt   millrace.DType
	how  string
	r    *rand.Rand

	step   func(in []*millrace.Tensor) (*millrace.Tensor, error) // returns the loss
	inputs [][]*millrace.Tensor                                  // of consecutive steps
	close  func()
	next   int
}

func newLearner(variant string, dev *millrace.Device, dt millrace.DType, how string, small bool) (*learner, error) {
	l, sizes, err := lessonOf(variant)
	if err != nil {
		return nil, err
	}
	s := &learner{name: variant, dev: dev, dt: dt, how: how, r: rand.New(rand.NewPCG(1, 2)), close: func() {}}
	if err := l.learn(s, sizes, small); err != nil {
		return nil, err
	}
	return s, nil
}

// one runs a step and returns its loss without waiting for it.
func (l *learner) one() (*millrace.Tensor, error) {
	in := l.inputs[l.next%len(l.inputs)]
	l.next++
	return l.step(in)
}

// options returns the options of a model's parts. Initial values are drawn in float32, whatever
// the dtype is.
func (l *learner) options() []nn.Option {
	return []nn.Option{nn.On(l.dev), nn.DType(millrace.Float32), nn.Seed(1)}
}

// params returns a model's parameters, in the learner's dtype.
func (l *learner) params(model any) []nn.Named {
	ps := nn.Params(model)
	for _, p := range ps {
		if t := p.Tensor(); t.DType() == millrace.Float32 && l.dt != millrace.Float32 {
			t.Set(held(t.Cast(l.dt)))
		}
	}
	return ps
}

// train makes the training step of a model.
func (l *learner) train(opt *optim.Optimizer, loss func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor, more ...optim.StepOption) {
	if l.how == recorded {
		more = append(more, optim.Record())
	}
	step := opt.Step(loss, more...)
	if l.how == bound {
		l.bind(step)
		return
	}
	l.step = func(in []*millrace.Tensor) (*millrace.Tensor, error) { return step.Run(context.Background(), in...) }
	l.close = step.Close
}

// bind binds the steps. The inputs of each step are written into the bound arguments.
func (l *learner) bind(step *optim.Step) {
	var b *optim.BoundStep
	writes := map[*millrace.Tensor]func(i int) error{}
	l.close = func() {
		if b != nil {
			_ = b.Close()
		}
		step.Close()
	}
	l.step = func(in []*millrace.Tensor) (loss *millrace.Tensor, err error) {
		if b == nil {
			own := make([]*millrace.Tensor, len(in))
			for i, x := range in {
				own[i] = held(x.AddScalar(0))
			}
			if b, err = step.Bind(own...); err != nil {
				b = nil
				return nil, err
			}
		}
		for i, x := range in {
			write := writes[x]
			if write == nil {
				if write, err = writer(b, x); err != nil {
					return nil, err
				}
				writes[x] = write
			}
			if err := write(i); err != nil {
				return nil, err
			}
		}
		if err := b.Run(); err != nil {
			return nil, err
		}
		return b.Loss(), nil
	}
}

// writer returns a function that writes a tensor's elements into an input. The elements are read
// once.
func writer(b *optim.BoundStep, x *millrace.Tensor) (write func(i int) error, err error) {
	switch x.DType() {
	case millrace.Int32:
		v, err := millrace.Values[int32](x)
		return func(i int) error { return optim.SetInput(b, i, v...) }, err
	case millrace.Float64:
		v, err := millrace.Values[float64](x)
		return func(i int) error { return optim.SetInput(b, i, v...) }, err
	}
	v, err := millrace.Values[float32](x)
	return func(i int) error { return optim.SetInput(b, i, v...) }, err
}

// done releases a loss that no other handle has.
func (l *learner) done(loss *millrace.Tensor) {
	if l.how != bound {
		loss.Release()
	}
}

// floats are normally distributed numbers, the same on each device, and in each dtype as far as
// it can hold them.
func (l *learner) floats(scale float64, shape ...int) *millrace.Tensor {
	v := make([]float32, product(shape))
	for i := range v {
		v[i] = float32(float64(l.r.NormFloat64() * scale))
	}
	x := millrace.FromSliceOn(l.dev, v, shape...)
	defer x.Release() // must not count in peaks
	return held(x.Cast(l.dt))
}

// ints are whole numbers below n.
func (l *learner) ints(n int, shape ...int) *millrace.Tensor {
	v := make([]int32, product(shape))
	for i := range v {
		v[i] = int32(l.r.IntN(n))
	}
	return held(millrace.FromSliceOn(l.dev, v, shape...))
}

func product(shape []int) int {
	n := 1
	for _, k := range shape {
		n *= k
	}
	return n
}

// held returns t after computing it. The first step returns its error.
func held(t *millrace.Tensor) *millrace.Tensor {
	_ = t.Eval()
	return t
}

func learnSoftmax(l *learner, _ []int, small bool) error {
	shape := []int{32, 512, 2048}
	if small {
		shape = []int{2, 3, 70}
	}
	x, w := l.floats(1, shape...), l.floats(1, shape...)
	l.inputs = [][]*millrace.Tensor{{x, w}}
	both := func(in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		x := autodiff.Watch(in[0])
		defer x.Release()
		y := x.Sub(x.Exp().SumKeep(-1).Log()).Exp()
		loss := y.Mul(in[1]).Sum()
		d, err := autodiff.Grad(loss, x)
		if err != nil {
			return nil, err
		}
		return []*millrace.Tensor{autodiff.Detach(loss), d[0]}, nil
	}
	s := l.dev.DefaultStream()
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) { return both(in) })
	l.close = rec.Release
	var b *millrace.BoundRecording
	l.step = func(in []*millrace.Tensor) (loss *millrace.Tensor, err error) {
		if l.how == bound {
			if b == nil {
				if b, err = rec.BindWith(millrace.BindOptions{On: s}, in...); err != nil {
					return nil, err
				}
			}
			return b.Results()[0], b.Run()
		}
		if l.how == recorded {
			out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, in...)
			if err != nil {
				return nil, err
			}
			out[1].Release()
			return out[0], nil
		}
		err = s.Scope(func(sc *millrace.Scope) error {
			out, err := both([]*millrace.Tensor{in[0].To(sc), in[1].To(sc)})
			if err != nil {
				return err
			}
			loss = sc.Keep(out[0])
			return out[1].Eval()
		})
		return loss, err
	}
	return nil
}

func learnMLP(l *learner, _ []int, small bool) error {
	width, batch := 1024, 512
	if small {
		width, batch = 8, 4
	}
	var m nn.Sequential
	for i := range 4 {
		m = append(m, nn.NewLinear(width, width, l.options()...))
		if i < 3 {
			m = append(m, nn.ReLU{})
		}
	}
	l.inputs = [][]*millrace.Tensor{{l.floats(1, batch, width), l.floats(1, batch, width)}}
	l.train(optim.SGD(l.params(m), optim.LR(0.01)), func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.MSE(m.Forward(c, in[0]), in[1])
	})
	return nil
}

// classifier is a model whose results are classes.
type classifier interface {
	Forward(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor
}

// classify makes the training step of a classifier, from inputs and classes.
func (l *learner) classify(opt *optim.Optimizer, m classifier) error {
	l.train(opt, func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.CrossEntropy(m.Forward(c, in[0]), in[1])
	})
	return nil
}

// batches makes the inputs of 16 steps: symbols and the classes to predict.
func (l *learner) batches(symbols, classes int, x, y []int) {
	for range 16 {
		l.inputs = append(l.inputs, []*millrace.Tensor{l.ints(symbols, x...), l.ints(classes, y...)})
	}
}

func learnMakeMore(l *learner, sizes []int, small bool) error {
	hidden, batch, embed := sizes[0], sizes[1], 64
	if small {
		hidden, batch, embed = min(hidden, 8), min(batch, 4), 4
	}
	m := models.NewMakeMore(27, 16, embed, hidden, l.options()...)
	l.batches(27, 27, []int{batch, 16}, []int{batch})
	return l.classify(optim.SGD(l.params(m), optim.LR(0.1)), m)
}

func learnGPT(l *learner, sizes []int, small bool) error {
	cfg := models.SmallGPT(65)
	if small {
		cfg.Layers, cfg.Width, cfg.Heads = 1, 6, 2
	}
	m := models.NewGPT(cfg, l.options()...)
	l.batches(65, 65, []int{sizes[0], cfg.Context}, []int{sizes[0], cfg.Context})
	return l.classify(optim.SGD(l.params(m), optim.LR(3e-4)), m)
}

func learnNanoGPT(l *learner, _ []int, small bool) error {
	cfg, batch := models.NanoGPT(65), 8
	cfg.Dropout = 0
	if small {
		cfg.Layers, cfg.Width, cfg.Heads, cfg.Context, batch = 1, 6, 2, 5, 2
	}
	m := models.NewGPT(cfg, l.options()...)
	x := []int{batch, cfg.Context}
	l.inputs = [][]*millrace.Tensor{{l.ints(65, x...), l.ints(65, x...)}}
	flat := func(name string) bool { return strings.Contains(name, "norm") }
	opt := optim.AdamW(l.params(m), optim.LR(1e-3), optim.Betas(0.9, 0.99), optim.WeightDecay(0.1), optim.Group(flat, optim.WeightDecay(0)))
	return l.classify(opt, m)
}

func learnResNet(l *learner, _ []int, small bool) error {
	n, batch, size := 3, 128, 32
	if small {
		n, batch, size = 1, 4, 8
	}
	m := models.NewResNet(n, 10, l.options()...)
	l.inputs = [][]*millrace.Tensor{{l.floats(1, batch, 3, size, size), l.ints(10, batch)}}
	opt := optim.SGD(l.params(m), optim.LR(0.1), optim.Momentum(0.9), optim.WeightDecay(1e-4))
	return l.classify(opt, m)
}

func learnGRU(l *learner, _ []int, small bool) error {
	symbols, embed, hidden, steps, batch := 32768, 128, 256, 200, 50
	if small {
		symbols, embed, hidden, steps, batch = 20, 4, 6, 5, 3
	}
	m := models.NewGRUClassifier(symbols, embed, hidden, 2, l.options()...)
	m.ByHand = l.name == "gruhand"
	l.inputs = [][]*millrace.Tensor{{l.ints(symbols, batch, steps), l.ints(2, batch)}}
	return l.classify(optim.AdamW(l.params(m), optim.LR(1e-3), optim.ClipNorm(5)), m)
}

// lossesOf returns the losses of the first n steps.
func lossesOf(l *learner, n int) ([]float64, error) {
	var losses []float64
	for range n {
		t, err := l.one()
		if err != nil {
			return nil, err
		}
		wide := t.Cast(millrace.Float64)
		if !l.dev.Supports(millrace.Float64) {
			wide.Release()
			wide = t.Cast(millrace.Float32)
		}
		v, err := itemOf(wide)
		l.done(t)
		wide.Release()
		if err != nil {
			return nil, err
		}
		losses = append(losses, v)
	}
	return losses, nil
}

func itemOf(t *millrace.Tensor) (float64, error) {
	if t.DType() == millrace.Float64 {
		return millrace.Item[float64](t)
	}
	v, err := millrace.Item[float32](t)
	return float64(v), err
}

// hows are the ways to run a step. The last one is for small models.
var hows = list{eager, recorded, bound}

func checkLessons(names list) error {
	for _, v := range names {
		if _, _, err := lessonOf(v); err != nil {
			return err
		}
	}
	return nil
}
