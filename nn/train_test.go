package nn_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/nn"
)

// deep is a model with every kind of state that a step changes: weights, running statistics and
// random numbers.
type deep struct {
	Conv *nn.Conv
	Norm *nn.BatchNorm
	Drop *nn.Dropout
	Out  *nn.Linear

	checkpoint bool
}

func newDeep(opts ...nn.Option) *deep {
	return &deep{Conv: nn.NewConv2d(1, 4, 3, append(opts, nn.Pad(1))...), Norm: nn.NewBatchNorm2d(4, opts...), Drop: nn.NewDropout(0.3),
		Out: nn.NewLinear(4*16, 3, opts...)}
}

func (m *deep) Forward(c *nn.Ctx, x *tensor) *tensor {
	x = m.Drop.Forward(c, x)
	body := func(c *nn.Ctx, x, around *tensor) *tensor {
		return m.Drop.Forward(c, m.Norm.Forward(c, m.Norm.Forward(c, m.Conv.Forward(c, x)).Relu())).Add(c.Cast(around))
	}
	if m.checkpoint {
		x = nn.Checkpoint(c, func(c *nn.Ctx, in []*tensor) []*tensor { // nested, as in a residual block
			return nn.Checkpoint(c, func(c *nn.Ctx, a []*tensor) []*tensor { return []*tensor{body(c, a[0], in[0])} }, m.Drop.Forward(c, in[0]))
		}, x)[0]
	} else {
		x = body(c, m.Drop.Forward(c, x), x)
	}
	return m.Out.Forward(c, m.Drop.Forward(c, nn.Flatten{}.Forward(c, x)))
}

// descend runs a gradient step by hand: loss, gradients, statistics, weights.
func descend(m nn.Module, r *nn.Random, sc *millrace.Scope, dt millrace.DType, x, y *tensor) (*tensor, error) {
	c := nn.NewCtx(nn.CtxOptions{Train: true, Watch: true, Random: r, Scope: sc, DType: dt})
	loss := nn.CrossEntropy(m.Forward(c, x), y)
	ps, handles := c.Watched()
	grads, err := autodiff.Grad(loss, handles...)
	if err != nil {
		return nil, err
	}
	if err := c.Commit(); err != nil {
		return nil, err
	}
	for i, p := range ps {
		p.Tensor().Set(p.Tensor().Sub(grads[i].MulScalar(0.1)))
	}
	return loss, nil
}

// trained returns the losses of some steps, and the model's state after them.
func trained(t *testing.T, m nn.Module, r *nn.Random, dt millrace.DType, steps int, record bool) (losses []float32, state []float32) {
	t.Helper()
	step := func(sc *millrace.Scope, in []*tensor) ([]*tensor, error) {
		loss, err := descend(m, r, sc, dt, in[0], in[1])
		return []*tensor{loss}, err
	}
	s := nn.Params(m)[0].Tensor().Stream()
	x := millrace.NormalOn(s, millrace.Float32, 11, 8, 1, 4, 4)
	var labels []int32
	for i := range 8 {
		labels = append(labels, int32(i%3))
	}
	y := millrace.FromSliceOn(s, labels)
	in := []*tensor{x, y}
	if err := x.Eval(); err != nil {
		t.Fatal(err)
	}
	rec := millrace.NewRecording(step)
	defer rec.Release()
	before := s.Device().Stats()
	for range steps {
		var out []*tensor
		var err error
		if record {
			out, err = rec.RunWith(nil, millrace.RunOptions{On: s}, in...)
		} else {
			err = s.Scope(func(sc *millrace.Scope) error {
				out, err = step(sc, []*tensor{x.To(sc), y.To(sc)})
				if err == nil {
					sc.Keep(out[0])
				}
				return err
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, values(t, out[0])...)
	}
	if n := s.Device().Stats().Recordings - before.Recordings; record && n != 1 {
		t.Errorf("the step was recorded %d times", n)
	}
	for _, p := range nn.Params(m) {
		state = append(state, values(t, p.Tensor().Cast(millrace.Float32).Reshape(-1))...)
	}
	return losses, state
}

// TestTrainSameBits: steps give the same bits eager and recorded, fused and op by op, with a part
// recomputed and without, and the loss falls.
func TestTrainSameBits(t *testing.T) {
	for _, dt := range []millrace.DType{millrace.Invalid, millrace.BFloat16} {
		var losses, state []float32
		for _, how := range []struct {
			device             string
			record, checkpoint bool
		}{
			{"cpu:fusion=off,tier=0", false, false}, {"cpu:threads=1,tier=0", false, false}, {"cpu:tier=0", true, false},
			{"cpu:tier=0", false, true}, {"cpu:tier=0", true, true},
		} {
			d, err := millrace.Open(how.device)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			m := newDeep(nn.Seed(1), nn.On(d))
			m.checkpoint = how.checkpoint
			l, s := trained(t, m, nn.NewRandom(2, nn.On(d)), dt, 5, how.record)
			if losses == nil {
				losses, state = l, s
				if !(l[4] < l[0]) {
					t.Errorf("%v: losses %v", dt, l)
				}
			}
			if !slices.Equal(l, losses) || !slices.Equal(s, state) {
				t.Errorf("%v, %+v: losses %v, want %v; same state: %v", dt, how, l, losses, slices.Equal(s, state))
			}
			if n := d.Stats().Fallbacks; n != 0 {
				t.Errorf("%+v: %d fallbacks", how, n)
			}
		}
	}
}

// TestMixedPrecision: weights stay in float32, layers compute in 16 bits, statistics and losses in
// float32, and the results are near those of float32.
func TestMixedPrecision(t *testing.T) {
	r := readReference(t, "models")
	for name, make := range models {
		m := make()
		r.load(t, name, m)
		for _, dt := range []millrace.DType{millrace.BFloat16, millrace.Float16} {
			c := nn.NewCtx(nn.CtxOptions{Train: true, Watch: true, DType: dt})
			logits := m.Forward(c, r[name+"/in.0"])
			if got := logits.DType(); got != dt {
				t.Errorf("%s computes in %v, not %v", name, got, dt)
			}
			loss := nn.CrossEntropy(logits, r[name+"/in.1"])
			if got := loss.DType(); got != millrace.Float32 {
				t.Errorf("%s: a loss in %v", name, got)
			}
			what := fmt.Sprintf("%s in %v", name, dt)
			near(t, what, loss, r[name+"/out.0"], 0.02)
			ps, handles := c.Watched()
			grads, err := autodiff.Grad(loss, handles...)
			if err != nil {
				t.Fatal(err)
			}
			var off, size float64
			for i, p := range ps {
				if grads[i].DType() != millrace.Float32 {
					t.Errorf("%s: a derivative in %v", what, grads[i].DType())
				}
				for _, n := range nn.Params(m) {
					if n.Param == p {
						want := values(t, r[name+"/grad."+n.Name])
						for k, g := range values(t, grads[i]) {
							off += math.Pow(float64(g-want[k]), 2)
							size += math.Pow(float64(want[k]), 2)
						}
					}
				}
			}
			if !(off < 0.01*size) { // a tenth of the derivatives' length
				t.Errorf("%s: derivatives off by %v of %v", what, math.Sqrt(off), math.Sqrt(size))
			}
		}
	}
}

// TestDropout: in training the requested share is 0 and the rest is scaled up, also in the
// gradients; outside of training nothing changes.
func TestDropout(t *testing.T) {
	x := autodiff.Watch(millrace.Ones(millrace.Float32, 100, 100))
	l := nn.NewDropout(0.2)
	if l.Forward(nn.Eval(), x) != x || nn.NewDropout(0).Forward(nn.NewCtx(nn.CtxOptions{Train: true}), x) != x {
		t.Error("it does something where it should not")
	}
	c := nn.NewCtx(nn.CtxOptions{Train: true, Random: nn.NewRandom(3)})
	y := l.Forward(c, x)
	grads, err := autodiff.Grad(y.Sum(), x)
	if err != nil {
		t.Fatal(err)
	}
	v := values(t, y)
	zeros := 0
	for _, e := range v {
		switch e {
		case 0:
			zeros++
		case 1.25:
		default:
			t.Fatalf("%v became of 1", e)
		}
	}
	if zeros < 1800 || zeros > 2200 {
		t.Errorf("%d of 10000 are 0", zeros)
	}
	if !slices.Equal(values(t, grads[0]), v) {
		t.Error("the derivative is of others")
	}
	if slices.Equal(values(t, l.Forward(c, x)), v) {
		t.Error("twice the same")
	}
	for _, e := range values(t, nn.NewDropout(1).Forward(c, x)) {
		if e != 0 {
			t.Fatalf("%v is left", e)
		}
	}
}

// TestKernels: a layer needs no more kernels than expected. Values cannot show that fusion stopped.
func TestKernels(t *testing.T) {
	d, err := millrace.Open("cpu:compile=wait,explore=wait")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	on := nn.On(d)
	r := nn.NewRandom(1, on)
	labels := millrace.ZerosOn(d, millrace.Int32, 32)
	for _, c := range []struct {
		name  string
		m     nn.Module
		train bool
		most  int64
		shape []int
	}{
		{"linear, gelu", nn.NewSequential(nn.NewLinear(64, 128, on), nn.GELU{}), true, 1, []int{32, 64}},
		{"layernorm", nn.NewLayerNorm(64, on), true, 1, []int{32, 64}},
		{"rmsnorm", nn.NewRMSNorm(64, on), true, 1, []int{32, 64}},
		{"groupnorm", nn.NewGroupNorm(4, 16, on), true, 1, []int{4, 16, 8, 8}},
		{"batchnorm, relu", nn.NewSequential(nn.NewBatchNorm2d(16, on), nn.ReLU{}), false, 1, []int{4, 16, 8, 8}},
		{"batchnorm in training", nn.NewSequential(nn.NewBatchNorm2d(16, on), nn.ReLU{}), true, 2, []int{4, 16, 8, 8}},
		{"dropout", nn.NewSequential(nn.Tanh{}, nn.NewDropout(0.5), nn.Tanh{}), true, 1, []int{64, 64}},
		{"attention", nn.NewMultiHeadAttention(64, 4, nn.Causal(), on), true, 6, []int{2, 330, 64}},
		{"rotary attention", nn.NewMultiHeadAttention(64, 4, nn.Causal(), nn.Rotary(10000), on), true, 11, []int{2, 330, 64}},
		{"gru", nn.NewGRU(16, 32, on), true, 9, []int{3, 8, 16}}, // the input, two a step, and results together
		{"crossentropy", nn.Func(func(_ *nn.Ctx, x *tensor) *tensor { return nn.CrossEntropy(x, labels) }), true, 2, []int{32, 64}},
	} {
		for _, p := range nn.Params(c.m) {
			if err := p.Tensor().Eval(); err != nil {
				t.Fatal(err)
			}
		}
		x := millrace.NormalOn(d, millrace.Float32, 1, c.shape...)
		if err := x.Eval(); err != nil {
			t.Fatal(err)
		}
		before := d.Stats()
		err := d.Scope(func(sc *millrace.Scope) error {
			return c.m.Forward(nn.NewCtx(nn.CtxOptions{Train: c.train, Random: r, Scope: sc}), x.To(sc)).Eval()
		})
		if err != nil {
			t.Fatal(err)
		}
		after := d.Stats()
		if n := after.Kernels - before.Kernels; n > c.most {
			t.Errorf("%s: %d kernels, %d should do", c.name, n, c.most)
		}
		if hidden := after.Runtime.Hidden - before.Runtime.Hidden; machine.Level() != machine.None && strings.HasSuffix(c.name, "attention") && hidden < 2*4*330*330/3 {
			t.Errorf("%s: %d scores of %d left out", c.name, hidden, 2*4*330*330)
		}
	}
}
