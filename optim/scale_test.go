package optim

import (
	"context"
	"math"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// TestLossScale: a gradient that is not finite changes nothing but the scale, which grows again
// after good updates. A skipped update counts for schedules only.
func TestLossScale(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	p := nn.NewParam(millrace.FromSliceOn(dev, []float32{1, 2}))
	q := nn.NewParam(millrace.FromSliceOn(dev, []float32{3}))
	o := AdamW([]nn.Named{{Name: "p", Param: p}, {Name: "q", Param: q}}, LR(0.1), LossScale(Scaling{Initial: 8, Interval: 2}), ClipNorm(1))
	plain := func() *Optimizer { // sees only the good gradients, unscaled
		p := nn.NewParam(millrace.FromSliceOn(dev, []float32{1, 2}))
		q := nn.NewParam(millrace.FromSliceOn(dev, []float32{3}))
		return AdamW([]nn.Named{{Name: "p", Param: p}, {Name: "q", Param: q}}, LR(0.1), ClipNorm(1))
	}()
	scale := float32(8)
	good := 0
	for step, g := range [][3]float32{{1, 2, 3}, {inf, 1, 1}, {1, -1, 2}, {2, 2, 2}, {1, 1, nan}, {1, 1, -inf}, {1, 0, 0}, {0, 1, 1}, {1, 1, 1}} {
		update := func(o *Optimizer, by float32) {
			t.Helper()
			err := o.Update([]*millrace.Tensor{millrace.FromSliceOn(dev, []float32{g[0] * by, g[1] * by}), millrace.FromSliceOn(dev, []float32{g[2] * by})})
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := values[float32](t, o.Scale()); got[0] != scale {
			t.Errorf("step %d: a scale of %v, want %v", step, got, scale)
		}
		before := numbers(t, o.Params())
		update(o, scale)
		after := numbers(t, o.Params())
		if sum := g[0] + g[1] + g[2]; math.IsInf(float64(sum), 0) || sum != sum {
			close(t, "skipped", after, before, 0)
			scale, good = scale/2, 0
		} else {
			update(plain, 1)
			close(t, "scaled", after, numbers(t, plain.Params()), 0)
			if good++; good == 2 {
				scale, good = scale*2, 0
			}
		}
	}
	if n, err := o.Updates(); n != 9 || err != nil {
		t.Errorf("%d updates, %v", n, err)
	}
	if n := values[int32](t, o.counts.Tensor()); n[0] != 6 || n[1] != 6 {
		t.Errorf("%v of them good", n)
	}
}

func values[T millrace.Element](t testing.TB, x *millrace.Tensor) []T {
	t.Helper()
	v, err := millrace.Values[T](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestScaleStays: a scale does not grow to infinity.
func TestScaleStays(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	p := nn.NewParam(millrace.ScalarOn(dev, float32(1)))
	o := SGD([]nn.Named{{Name: "p", Param: p}}, LossScale(Scaling{Initial: 0x1p126, Interval: 1}))
	for range 4 {
		if err := o.Update([]*millrace.Tensor{millrace.ScalarOn(dev, float32(1))}); err != nil {
			t.Fatal(err)
		}
	}
	if got := values[float32](t, o.Scale()); got[0] != 0x1p127 {
		t.Errorf("a scale of %v", got)
	}
}

// TestMixed: layers compute in 16 bits, weights stay float32 and come near to those of float32.
// float16 needs a scaled loss, or small gradients vanish.
func TestMixed(t *testing.T) {
	learn := func(dt millrace.DType, opts []Option, how ...StepOption) ([]float32, *Optimizer) {
		dev := open(t, "cpu:cache=off,compile=off")
		m := newModel(dev, millrace.Float32)
		o := AdamW(m.params(), append(opts, LR(0.01), Eps(1e-15))...)
		s := o.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
			if got := m.A.In(c).DType(); got != dt {
				t.Errorf("computed in %v, want %v", got, dt)
			}
			return m.loss(c, in).MulScalar(1e-8)
		}, how...)
		defer s.Close()
		var losses []float32
		for range 30 {
			loss, err := s.Run(context.Background(), batch(dev, 0, 6)...)
			if err != nil {
				t.Fatal(err)
			}
			losses = append(losses, values[float32](t, loss)[0])
		}
		for _, p := range m.params() {
			if dt := p.Tensor().DType(); dt != millrace.Float32 {
				t.Errorf("%s is of %v", p.Name, dt)
			}
		}
		return losses, o
	}
	want, _ := learn(millrace.Float32, nil)
	if !(want[29] < want[0]/2) {
		t.Errorf("float32 went from %v to %v", want[0], want[29])
	}
	if got, _ := learn(millrace.Float16, nil, Compute(millrace.Float16)); got[29] < want[0]/2 {
		t.Errorf("float16 without a scale learns, too: from %v to %v", got[0], got[29])
	}
	for _, record := range []bool{false, true} {
		for _, dt := range []millrace.DType{millrace.BFloat16, millrace.Float16} {
			how := []StepOption{Compute(dt)}
			var opts []Option
			if record {
				how = append(how, Record())
			}
			if dt == millrace.Float16 {
				opts = append(opts, LossScale(Scaling{Initial: 0x1p46}))
			}
			tol := 0.05
			if dt == millrace.Float16 {
				tol = 0.2 // the first steps are skipped
			}
			got, o := learn(dt, opts, how...)
			if d := math.Abs(float64(got[29]-want[29])) / float64(want[29]); !(d < tol) {
				t.Errorf("%v: the loss is %v, in float32 %v", dt, got[29], want[29])
			}
			if dt == millrace.Float16 {
				scale := values[float32](t, o.Scale())[0]
				if scale >= 0x1p46 || scale < 0x1p20 {
					t.Errorf("a loss scale of %v", scale)
				}
			}
		}
	}
}
