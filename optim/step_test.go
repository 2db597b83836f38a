package optim

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/nn"
)

// model is a small network with a weight that is used twice, an unused one, a buffer and dropout.
type model struct {
	A, B, C, Unused *nn.Param
	Mean            *nn.Param
	dev             *millrace.Device
	drop            bool
}

func newModel(dev *millrace.Device, dt millrace.DType) *model {
	made := func(seed uint64, shape ...int) *nn.Param {
		t := millrace.NormalOn(dev, dt, seed, shape...).MulScalar(0.5)
		if err := t.Eval(); err != nil {
			panic(err)
		}
		return nn.NewParam(t)
	}
	return &model{A: made(1, 5, 8), B: made(2, 8), C: made(3, 8, 8), Unused: made(4, 3), Mean: nn.NewBuffer(millrace.ZerosOn(dev, dt, 8)), dev: dev}
}

func (m *model) params() []nn.Named { return nn.Params(m) }

func (m *model) loss(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
	x := c.Cast(in[0]).MatMul(m.A.In(c)).Add(m.B.In(c)).Tanh()
	if m.Mean != nil && c.Training() {
		now := autodiff.Detach(x).Cast(millrace.Float32).Mean(0)
		m.Mean.Update(c, m.Mean.In(c).MulScalar(0.9).Add(now.MulScalar(0.1)))
	}
	if m.drop {
		x = x.Mul(c.Uniform(x.Shape()...).GeScalar(0.25).Cast(x.DType()))
	}
	x = x.MatMul(m.C.In(c)).Tanh()
	x = x.MatMul(m.C.In(c).T())
	return x.Cast(in[1].DType()).Sub(in[1]).Square().Mean()
}

// batch makes the inputs of a step.
func batch(dev *millrace.Device, step, n int) []*millrace.Tensor {
	x := millrace.NormalOn(dev, millrace.Float32, uint64(1000+step), n, 5)
	y := millrace.NormalOn(dev, millrace.Float32, uint64(2000+step), n, 8)
	return []*millrace.Tensor{x, y}
}

// all returns the bits of parameters and of an optimiser's state.
func all(t testing.TB, o *Optimizer, params []nn.Named) []string {
	t.Helper()
	var list []string
	for _, p := range append(params, o.State()...) {
		list = append(list, fmt.Sprintf("%s %v", p.Name, raw(t, p.Tensor())))
	}
	return list
}

func raw(t testing.TB, x *millrace.Tensor) []byte {
	t.Helper()
	var b buffer
	if _, err := x.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b
}

type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d tensors, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: %s, want %s", what, got[i], want[i])
		}
	}
}

// optimisers are all rules.
var optimisers = map[string]func(params []nn.Named, opts ...Option) *Optimizer{
	"SGD": func(p []nn.Named, opts ...Option) *Optimizer {
		return SGD(p, append(opts, Momentum(0.9), Dampening(0.1))...)
	},
	"Adam": Adam, "AdamW": AdamW, "RMSProp": RMSProp, "Adagrad": Adagrad, "Lion": Lion, "LAMB": LAMB,
}

// train runs steps with batches of 6 rows; every third batch has 4.
func train(t testing.TB, m *model, s *Step, from, to int) (losses []float32) {
	t.Helper()
	for i := from; i < to; i++ {
		n := 6
		if i%3 == 2 {
			n = 4
		}
		loss, err := s.Run(context.Background(), batch(m.dev, i, n)...)
		if err != nil {
			t.Fatal(err)
		}
		v, err := millrace.Item[float32](loss)
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, v)
	}
	return losses
}

// TestRecorded: eager and recorded steps have the same bits, and the second run with a kind of
// inputs records nothing.
func TestRecorded(t *testing.T) {
	for name, make := range optimisers {
		t.Run(name, func(t *testing.T) {
			var want []string
			var losses []float32
			for _, how := range [][]StepOption{nil, {Record()}} {
				dev := open(t, "cpu:cache=off,compile=off")
				m := newModel(dev, millrace.Float32)
				m.drop = true
				random := nn.NewRandom(7, nn.On(dev))
				o := make(m.params(), Schedule(Warmup(4, 0.1, Cosine(0.05, 20))), ClipNorm(0.5))
				s := o.Step(m.loss, append(how, Random(random))...)
				defer s.Close()
				got := train(t, m, s, 0, 3)
				recordings := dev.Stats().Recordings
				got = append(got, train(t, m, s, 3, 12)...)
				if n := dev.Stats().Recordings - recordings; n != 0 {
					t.Errorf("%d recordings after the first steps", n)
				}
				state := append(all(t, o, m.params()), fmt.Sprint(raw(t, random.Counter.Tensor())))
				if how == nil {
					want, losses = state, got
					continue
				}
				same(t, "recorded", state, want)
				if !slices.Equal(got, losses) {
					t.Errorf("losses %v recorded, %v not", got, losses)
				}
				if got[11] >= got[0] {
					t.Errorf("the loss went from %v to %v", got[0], got[11])
				}
			}
		})
	}
}

// TestOtherStream: a step may run on another stream than the one that made the parameters.
func TestOtherStream(t *testing.T) {
	var want []string
	for _, other := range []bool{false, true} {
		for _, record := range []bool{false, true} {
			dev := open(t, "cpu:cache=off,compile=off")
			m := newModel(dev, millrace.Float32)
			m.drop = true
			how := []StepOption{Random(nn.NewRandom(7, nn.On(dev)))}
			if other {
				how = append(how, On(dev.NewStream()))
			}
			if record {
				how = append(how, Record())
			}
			o := AdamW(m.params(), LR(0.01), ClipNorm(1), LossScale(Scaling{}))
			s := o.Step(m.loss, how...)
			defer s.Close()
			train(t, m, s, 0, 6)
			before := dev.Stats().Recordings
			train(t, m, s, 6, 12)
			if n := dev.Stats().Recordings - before; n != 0 {
				t.Errorf("other stream %v, recorded %v: %d recordings", other, record, n)
			}
			state := all(t, o, m.params())
			if want == nil {
				want = state
			}
			same(t, fmt.Sprintf("other stream %v, recorded %v", other, record), state, want)
		}
	}
}
