package optim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// TestRandomSteps: random steps on random models have the same bits recorded or not, fused or not,
// and cut anywhere.
func TestRandomSteps(t *testing.T) {
	programs := 40
	if testing.Short() {
		programs = 4
	}
	devices := []*millrace.Device{open(t, "cpu:cache=off,compile=off,fusion=off"), open(t, "cpu:cache=off,compile=off"),
		open(t, "cpu:cache=off,compile=off,queue=5,threads=3")}
	for seed := range uint64(programs) {
		var want []string
		for i, dev := range devices {
			state := randomSteps(t, dev, seed, i > 0)
			if want == nil {
				want = state
				continue
			}
			same(t, fmt.Sprintf("program %d on device %d", seed, i), state, want)
		}
		if t.Failed() {
			return
		}
	}
}

// randomModel has layers, one of which may occur twice.
type randomModel struct {
	Layers []nn.Module
	Last   *nn.Linear
	tied   bool
}

func (m *randomModel) loss(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
	x := in[0]
	for _, l := range m.Layers {
		x = l.Forward(c, x)
	}
	if m.tied {
		x = m.Layers[0].Forward(c, x)
	}
	return m.Last.Forward(c, x).Cast(millrace.Float32).Sub(in[1]).Square().Mean()
}

func randomSteps(t *testing.T, dev *millrace.Device, seed uint64, record bool) []string {
	r := rand.New(rand.NewPCG(seed, 3))
	chance := func(p float64) bool { return r.Float64() < p }
	const width = 6
	at := []nn.Option{nn.Seed(seed), nn.On(dev)}
	m := &randomModel{Layers: []nn.Module{nn.NewLinear(width, width, at...)}, Last: nn.NewLinear(width, 2, at...), tied: chance(0.3)}
	for range r.IntN(4) {
		m.Layers = append(m.Layers, []func() nn.Module{
			func() nn.Module { return nn.NewLinear(width, width, at...) },
			func() nn.Module { return nn.NewLayerNorm(width, at...) },
			func() nn.Module { return nn.NewBatchNorm1d(width, at...) },
			func() nn.Module { return nn.NewDropout(0.3) },
			func() nn.Module { return nn.Tanh{} },
		}[r.IntN(5)]())
	}
	params := nn.Params(m)
	rule := []*rule{&rules.sgd, &rules.adamW, &rules.rmsProp, &rules.adagrad, &rules.lion, &rules.lamb}[r.IntN(6)]
	opts := []Option{Schedule(Warmup(2, 0.5, Cosine(0.05, 12)))}
	if chance(0.4) {
		opts = append(opts, ClipNorm(0.5))
	}
	if chance(0.4) {
		opts = append(opts, LossScale(Scaling{Initial: 1 << 20, Interval: 2}))
	}
	if chance(0.4) {
		opts = append(opts, Group(func(name string) bool { return len(name)%2 == 0 }, LR(0.01), WeightDecay(0.3)))
	}
	o := newOptimizer(rule, params, opts)
	random := nn.NewRandom(seed, nn.On(dev))
	how := []StepOption{Random(random)}
	if chance(0.5) {
		how = append(how, Compute([]millrace.DType{millrace.BFloat16, millrace.Float16}[r.IntN(2)]))
	}
	if chance(0.4) {
		how = append(how, Accumulate(2+r.IntN(2)))
	}
	if record {
		how = append(how, Record())
	}
	s := o.Step(m.loss, how...)
	defer s.Close()
	for step := range 10 {
		if chance(0.1) {
			params[r.IntN(len(params))].Freeze(chance(0.7))
		}
		n := 4
		if chance(0.3) {
			n = 2
		}
		x := millrace.NormalOn(dev, millrace.Float32, seed*1000+uint64(step), n, width)
		y := millrace.NormalOn(dev, millrace.Float32, seed*1000+500+uint64(step), n, 2)
		if _, err := s.Run(context.Background(), x, y); err != nil {
			t.Fatalf("program %d, step %d: %v", seed, step, err)
		}
	}
	return all(t, o, append(params, random.State()...))
}
