package gputest

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// testEngineOptim: training steps give the CPU's results on the GPU, within the tolerances of its
// functions, and the same bits recorded or not.
func testEngineOptim(t *testing.T) {
	gpu := openEngine(t)
	cpu := openCPU(t, "compile=off")
	type make = func(params []nn.Named, opts ...optim.Option) *optim.Optimizer
	for name, make := range map[string]make{"AdamW": optim.AdamW, "RMSProp": optim.RMSProp, "LAMB": optim.LAMB} {
		t.Run(name, func(t *testing.T) {
			learn := func(dev *millrace.Device, how ...optim.StepOption) (all []float32) {
				seed := nn.Seed(3)
				model := struct{ A, B *nn.Linear }{nn.NewLinear(5, 9, seed, nn.On(dev)), nn.NewLinear(9, 2, seed, nn.On(dev))}
				o := make(nn.Params(&model), optim.Schedule(optim.Cosine(0.05, 20)), optim.ClipNorm(0.3),
					optim.LossScale(optim.Scaling{Initial: 8, Interval: 2}), optim.WeightDecay(0.1))
				s := o.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
					return model.B.Forward(c, model.A.Forward(c, in[0]).Tanh()).Sub(in[1]).Square().Mean()
				}, append(how, optim.Accumulate(2))...)
				defer s.Close()
				for i := range 8 {
					x := millrace.UniformOn(dev, millrace.Float32, uint64(i), 6, 5)
					y := x.Slice(millrace.All, millrace.R(1, 3)).Square()
					if _, err := s.Run(context.Background(), x, y); err != nil {
						t.Fatal(dev.Name(), err)
					}
				}
				for _, p := range append(nn.Params(&model), o.State()...) {
					v, err := millrace.Values[float32](p.Tensor().Cast(millrace.Float32))
					if err != nil {
						t.Fatal(dev.Name(), err)
					}
					all = append(all, v...)
				}
				return all
			}
			want, got := learn(cpu), learn(gpu)
			for i, x := range want {
				if y := got[i]; math.Abs(float64(y-x)) > 2e-4*math.Max(1, math.Abs(float64(x))) || y != y {
					t.Fatalf("number %d: %v, on the CPU %v", i, y, x)
				}
			}
			if recorded := learn(gpu, optim.Record()); !slices.Equal(recorded, got) {
				t.Error("a recorded step has other numbers")
			}
		})
	}
}

// testEngineBoundSteps: training steps at fixed places in memory give the bits of other steps. A device
// with recordings records them once, and then only submits.
func testEngineBoundSteps(t *testing.T) {
	d := openSettled(t)
	const steps, rows = 30, 6
	x, y := make([]float32, rows*5), make([]float32, rows*2)
	set := func(i int) {
		for j := range x {
			x[j] = float32((i+3)*(j+1)%17)/8 - 1
		}
		for j := range y {
			y[j] = x[2*j] * x[2*j]
		}
	}
	learn := func(bound bool) (all []float32) {
		seed := nn.Seed(3)
		model := struct{ A, B *nn.Linear }{nn.NewLinear(5, 9, seed, nn.On(d)), nn.NewLinear(9, 2, seed, nn.On(d))}
		o := optim.AdamW(nn.Params(&model), optim.LR(0.01))
		s := o.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
			return model.B.Forward(c, model.A.Forward(c, in[0]).Tanh()).Sub(in[1]).Square().Mean()
		}, optim.Record())
		defer s.Close()
		var b *optim.BoundStep
		for i := range steps {
			set(i)
			xs, ys := millrace.FromSliceOn(d, slices.Clone(x), rows, 5), millrace.FromSliceOn(d, slices.Clone(y), rows, 2)
			if !bound {
				_, err := s.Run(context.Background(), xs, ys)
				must(t, err)
				continue
			}
			if b == nil {
				var err error
				b, err = s.Bind(xs, ys)
				must(t, err)
				defer b.Close()
			}
			must(t, optim.SetInput(b, 0, x...))
			must(t, optim.SetInput(b, 1, y...))
			must(t, b.Run())
		}
		for _, p := range append(nn.Params(&model), o.State()...) {
			all = append(all, values(t, p.Tensor().Cast(millrace.Float32))...)
		}
		return all
	}
	want := learn(false)
	before := d.Stats().Runtime
	if got := learn(true); !slices.Equal(got, want) {
		t.Error("a bound step has other numbers")
	}
	s := d.Stats().Runtime
	if _, ok := openGPU(t).(gpurun.Recorder); ok && (s.Recorded-before.Recorded > 3 || s.Recorded == before.Recorded || s.Prepared-before.Prepared < (s.Launches-before.Launches)/2) {
		t.Errorf("%d recordings of %d steps, %d of %d launches ran prepared", s.Recorded-before.Recorded, steps, s.Prepared-before.Prepared, s.Launches-before.Launches)
	}
}

// testEngineRecordedSteps: recorded training steps that are not bound, with other memory for each
// batch and for each loss, give the bits of steps that are not recorded and the CPU's numbers. A device
// with recordings runs most of their launches as recorded, in nearly all steps, whatever becomes of
// batches and losses.
func testEngineRecordedSteps(t *testing.T) {
	gpu := openSettled(t)
	_, records := openGPU(t).(gpurun.Recorder)
	const steps, warm, rows = 80, 20, 6
	learn := func(t *testing.T, d *millrace.Device, keep int, how ...optim.StepOption) (all []float32) {
		seed := nn.Seed(3)
		model := struct{ A, B, C *nn.Linear }{nn.NewLinear(5, 9, seed, nn.On(d)), nn.NewLinear(9, 7, seed, nn.On(d)), nn.NewLinear(7, 2, seed, nn.On(d))}
		o := optim.AdamW(nn.Params(&model), optim.LR(0.01))
		s := o.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
			x := model.B.Forward(c, model.A.Forward(c, in[0]).Tanh()).Tanh()
			return model.C.Forward(c, x).Sub(in[1]).Square().Mean()
		}, how...)
		defer s.Close()
		var losses, batches []*millrace.Tensor
		few := 0
		for i := range steps {
			x, y := make([]float32, rows*5), make([]float32, rows*2)
			for j := range x {
				x[j] = float32((i+3)*(j+1)%17)/8 - 1
			}
			for j := range y {
				y[j] = x[2*j] * x[2*j]
			}
			in := []*millrace.Tensor{millrace.FromSliceOn(d, x, rows, 5), millrace.FromSliceOn(d, y, rows, 2)}
			before := d.Stats().Runtime
			loss, err := s.Run(context.Background(), in...)
			must(t, err)
			losses, batches = append(losses, loss), append(batches, in...)
			if keep >= 0 && len(losses) > keep { // else the garbage collector frees them
				all = append(all, values(t, losses[0])...)
				for _, x := range append([]*millrace.Tensor{losses[0]}, batches[:2]...) {
					x.Release()
				}
				losses, batches = losses[1:], batches[2:]
			}
			must(t, d.Sync(context.Background()))
			if s := d.Stats().Runtime; i >= warm && s.Replayed-before.Replayed < (s.Launches-before.Launches)/2 {
				few++
			}
		}
		if records && len(how) > 0 && few > steps/10 {
			s := d.Stats().Runtime
			t.Errorf("in %d of %d steps less than half of the launches ran as recorded; in all %d of %d, %d prepared, %d recordings", few, steps, s.Replayed, s.Launches, s.Prepared, s.Recorded)
		}
		for _, l := range losses {
			all = append(all, values(t, l)...)
		}
		for _, p := range append(nn.Params(&model), o.State()...) {
			all = append(all, values(t, p.Tensor().Cast(millrace.Float32))...)
		}
		return all
	}
	want, exact := learn(t, gpu, 0), learn(t, openCPU(t, "compile=off"), 0)
	for i, x := range exact {
		if y := want[i]; math.Abs(float64(y-x)) > 2e-4*math.Max(1, math.Abs(float64(x))) || y != y {
			t.Fatalf("number %d: %v, on the CPU %v", i, y, x)
		}
	}
	for name, keep := range map[string]int{"released": 0, "released later": 3, "left": -1} {
		t.Run(name, func(t *testing.T) {
			before := gpu.Stats().Runtime
			if got := learn(t, gpu, keep, optim.Record()); !slices.Equal(got, want) {
				t.Error("recorded steps have other numbers")
			}
			s := gpu.Stats().Runtime
			if n := s.Recorded - before.Recorded; n > steps/4 {
				t.Errorf("%d recordings of %d steps", n, steps)
			}
			t.Logf("%d of %d launches ran as recorded, %d recordings", s.Replayed-before.Replayed, s.Launches-before.Launches, s.Recorded-before.Recorded)
		})
	}
}
