package optim

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/safetensors"
)

// TestBoundSteps: bound steps have the bits of eager ones, with continuing random numbers, buffers,
// moments, schedules, clipping, and unbound steps in between. In one of the cases, results are never
// copied to the memory of a parameter: their memory becomes the parameter's.
func TestBoundSteps(t *testing.T) {
	defer testhook.SetExchange(false)
	for name, make := range optimisers {
		for _, spec := range []string{"cpu:cache=off,compile=off", "cpu:cache=off", "cpu:cache=off,queue=3"} {
			t.Run(name+" "+spec, func(t *testing.T) {
				testhook.SetExchange(spec == "cpu:cache=off")
				var want []string
				var losses []float32
				for _, bind := range []bool{false, true} {
					dev := open(t, spec)
					m := newModel(dev, millrace.Float32)
					m.drop = true
					random := nn.NewRandom(7, nn.On(dev))
					o := make(m.params(), Schedule(Warmup(4, 0.1, Cosine(0.05, 20))), ClipNorm(0.5))
					s := o.Step(m.loss, Random(random))
					defer s.Close()
					got := boundSteps(t, m, s, bind)
					state := append(all(t, o, m.params()), fmt.Sprint(raw(t, random.Counter.Tensor())))
					if !bind {
						want, losses = state, got
						continue
					}
					same(t, "bound", state, want)
					if !slices.Equal(got, losses) {
						t.Errorf("losses %v bound, %v not", got, losses)
					}
					if n := dev.Stats().BoundRuns; n != 12 {
						t.Errorf("%d bound runs", n)
					}
				}
			})
		}
	}
}

// boundSteps runs 14 steps, of which the seventh and the eighth are eager.
func boundSteps(t *testing.T, m *model, s *Step, bind bool) (losses []float32) {
	t.Helper()
	var b *BoundStep
	if bind {
		in := batch(m.dev, 99, 6)
		for _, x := range in {
			if err := x.Eval(); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if b, err = s.Bind(in...); err != nil {
			t.Fatal(err)
		}
		defer b.Close()
	}
	for i := range 14 {
		in := batch(m.dev, i, 6)
		var loss *millrace.Tensor
		var err error
		if bind && i != 6 && i != 7 {
			for k, x := range in {
				v, err := millrace.Values[float32](x)
				if err != nil {
					t.Fatal(err)
				}
				if err := SetInput(b, k, v...); err != nil {
					t.Fatal(err)
				}
			}
			err, loss = b.Run(), b.Loss()
		} else {
			loss, err = s.Run(context.Background(), in...)
		}
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		v, err := millrace.Item[float32](loss)
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, v)
	}
	return losses
}

func TestBadBoundSteps(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	m := newModel(dev, millrace.Float32)
	o := SGD(m.params(), LR(0.1))
	in := batch(dev, 0, 6)
	for _, opt := range []StepOption{Accumulate(2), CheckFinite()} {
		if _, err := o.Step(m.loss, opt).Bind(in...); !errors.Is(err, millrace.ErrUnsupported) {
			t.Errorf("bound all the same: %v", err)
		}
	}
	s := o.Step(m.loss)
	b, err := s.Bind(in...)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{2, -1} {
		if err := SetInput(b, i, float32(1)); !errors.Is(err, millrace.ErrShape) || !strings.Contains(err.Error(), fmt.Sprintf("input %d does not exist, the step has 2", i)) {
			t.Errorf("input %d: %v", i, err)
		}
	}
	m.A.Freeze(true)
	if err := b.Run(); !errors.Is(err, millrace.ErrUnsupported) {
		t.Errorf("a weight was frozen: %v", err)
	}
	m.A.Freeze(false)
	if err := b.Run(); err != nil {
		t.Error(err)
	}
	s.Close()
	if _, err := s.Bind(in...); !errors.Is(err, millrace.ErrClosed) {
		t.Errorf("a closed Step was bound: %v", err)
	}
	if err := b.Run(); err != nil {
		t.Errorf("a bound step after its Step was closed: %v", err)
	}
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	if err := b.Run(); !errors.Is(err, millrace.ErrClosed) {
		t.Errorf("a closed one ran: %v", err)
	}
}

// TestBoundRates: whatever is called on an optimiser or loaded into it between runs of a bound
// step, the rates follow the number of updates, and so does the number in a file.
func TestBoundRates(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	save := func(t *testing.T, m *model, o *Optimizer) {
		if err := nn.Save(file, m, o); err != nil {
			t.Fatal(err)
		}
	}
	count := func(want int) func(t *testing.T, m *model, o *Optimizer) {
		return func(t *testing.T, m *model, o *Optimizer) {
			if n, err := o.Updates(); n != want || err != nil {
				t.Errorf("%d updates, want %d: %v", n, want, err)
			}
		}
	}
	load := func(t *testing.T, m *model, o *Optimizer) {
		if err := nn.Load(file, m, o); err != nil {
			t.Fatal(err)
		}
	}
	var old []nn.Named // the list of an earlier State
	type between = map[int]func(t *testing.T, m *model, o *Optimizer)
	for name, c := range map[string]struct {
		do   between
		want []float64
	}{
		"save twice":       {between{3: save, 6: save}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"save and updates": {between{3: save, 6: count(6)}, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"load":             {between{3: save, 6: load, 8: count(5)}, []float64{1, 2, 3, 4, 5, 6, 4, 5, 6, 7}},
		"old list": {between{3: save, 4: func(t *testing.T, m *model, o *Optimizer) { old = o.State() },
			7: func(t *testing.T, m *model, o *Optimizer) {
				if err := nn.Load(file, m, listed(old)); err != nil {
					t.Fatal(err)
				}
			}}, []float64{1, 2, 3, 4, 5, 6, 7, 4, 5, 6}},
	} {
		for _, how := range []string{"eager", "recorded", "bound"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				dev := open(t, "cpu:cache=off,compile=off")
				m := newModel(dev, millrace.Float32)
				var rates []float64
				ready := false
				o := SGD(m.params(), Schedule(func(step int) float64 {
					if ready {
						rates = append(rates, float64(step+1))
					}
					return float64(step+1) / 100
				}))
				var opts []StepOption
				if how == "recorded" {
					opts = append(opts, Record())
				}
				in := batch(dev, 0, 6)
				s := o.Step(m.loss, opts...)
				run := func() error { _, err := s.Run(nil, in...); return err }
				if how == "bound" {
					b, err := s.Bind(in...)
					if err != nil {
						t.Fatal(err)
					}
					defer b.Close()
					run = b.Run
				}
				ready = true
				for i := range 10 {
					if do := c.do[i]; do != nil {
						do(t, m, o)
					}
					if err := run(); err != nil {
						t.Fatal(err)
					}
				}
				if !slices.Equal(rates, c.want) {
					t.Errorf("rates %v, want %v", rates, c.want)
				}
				last := int(c.want[9])
				count(last)(t, m, o)
				save(t, m, o)
				x, err := safetensors.Load(file)
				if err != nil {
					t.Fatal(err)
				}
				v, err := millrace.Values[int32](x["optim.progress"])
				if err != nil || int(v[0]) != last {
					t.Errorf("a file of %d updates, want %d: %v", v[0], last, err)
				}
			})
		}
	}
}

// listed is a list of State as a part to load.
type listed []nn.Named

func (l listed) State() []nn.Named { return l }
