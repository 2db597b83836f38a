package optim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// TestGroups: groups have their own rates, decays and schedules, as separate optimisers would.
func TestGroups(t *testing.T) {
	ref := readReference(t)
	dev := open(t, "cpu:cache=off,compile=off")
	made := func() []nn.Named { return parameters(tensors(dev, millrace.Float32, ref.Shapes, ref.Start)) }
	together, apart := made(), made()
	isBias := func(name string) bool { return name == "p1" || name == "p3" }
	rate := Cosine(0.2, 10)
	o := AdamW(together, LR(0.1), WeightDecay(0.3),
		Group(isBias, WeightDecay(0), Schedule(rate)), Group(func(name string) bool { return name != "p0" }, Betas(0.5, 0.6)))
	others := []*Optimizer{
		AdamW([]nn.Named{apart[1], apart[3]}, WeightDecay(0), Schedule(rate)),
		AdamW([]nn.Named{apart[2]}, LR(0.1), WeightDecay(0.3), Betas(0.5, 0.6)),
		AdamW([]nn.Named{apart[0]}, LR(0.1), WeightDecay(0.3)),
	}
	for _, data := range ref.Grads {
		g := tensors(dev, millrace.Float32, ref.Shapes, data)
		for _, u := range []struct {
			o     *Optimizer
			grads []*millrace.Tensor
		}{{o, g}, {others[0], []*millrace.Tensor{g[1], g[3]}}, {others[1], g[2:3]}, {others[2], g[:1]}} {
			if err := u.o.Update(u.grads); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(t, "groups", numbers(t, together), numbers(t, apart), 0)
}

// TestCounts: a parameter's own number of updates corrects its moments' bias, not that of other
// parameters.
func TestCounts(t *testing.T) {
	ref := readReference(t)
	dev := open(t, "cpu:cache=off,compile=off")
	together := parameters(tensors(dev, millrace.Float32, ref.Shapes, ref.Start))
	apart := parameters(tensors(dev, millrace.Float32, ref.Shapes, ref.Start))
	o := Adam(together, LR(0.1))
	var others []*Optimizer
	for i := range apart {
		others = append(others, Adam(apart[i:i+1], LR(0.1)))
	}
	for step, data := range ref.Grads {
		g := tensors(dev, millrace.Float32, ref.Shapes, data)
		for i := range g {
			if step%(i+1) != 0 { // the first always, the others now and then
				g[i] = nil
				continue
			}
			if err := others[i].Update(g[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Update(g); err != nil {
			t.Fatal(err)
		}
	}
	close(t, "counts", numbers(t, together), numbers(t, apart), 0)
}

// TestFrozen: frozen weights do not change, changes from outside are seen, recorded or not, and
// unfrozen weights learn again.
func TestFrozen(t *testing.T) {
	var want []string
	for _, record := range []bool{false, true} {
		dev := open(t, "cpu:cache=off,compile=off")
		m := newModel(dev, millrace.Float32)
		var how []StepOption
		if record {
			how = append(how, Record())
		}
		o := AdamW(m.params(), LR(0.05))
		s := o.Step(m.loss, how...)
		defer s.Close()
		train(t, m, s, 0, 3)
		m.A.Freeze(true)
		before := raw(t, m.A.Tensor())
		first := train(t, m, s, 3, 6)
		if string(before) != string(raw(t, m.A.Tensor())) {
			t.Error("a frozen weight changed")
		}
		now := m.A.Tensor().MulScalar(2)
		m.A.Tensor().Set(now)
		now.Release()
		if second := train(t, m, s, 3, 6); second[0] == first[0] {
			t.Error("the old weight was used")
		}
		m.A.Freeze(false)
		train(t, m, s, 6, 9)
		if string(before) == string(raw(t, m.A.Tensor())) {
			t.Error("a weight did not learn again")
		}
		state := all(t, o, m.params())
		if !record {
			want = state
			continue
		}
		same(t, "recorded", state, want)
	}
}

// TestTwoOptimisers: each step sees changes by the other one to weights that it uses and does not
// update, as when a generator and its critic learn in turns.
func TestTwoOptimisers(t *testing.T) {
	var want []string
	for _, record := range []bool{false, true} {
		dev := open(t, "cpu:cache=off,compile=off")
		m := newModel(dev, millrace.Float32)
		var how []StepOption
		if record {
			how = append(how, Record())
		}
		all2 := m.params()
		a, b := Adam(all2[:2], LR(0.05), Name("a")), SGD(all2[2:3], LR(0.1), Momentum(0.5), Name("b"))
		sa, sb := a.Step(m.loss, how...), b.Step(m.loss, how...)
		defer sa.Close()
		defer sb.Close()
		for i := range 5 {
			train(t, m, sa, i, i+1)
			train(t, m, sb, i, i+1)
		}
		recordings := dev.Stats().Recordings
		for i := 6; i < 11; i++ {
			train(t, m, sa, i, i+1)
			train(t, m, sb, i, i+1)
		}
		if n := dev.Stats().Recordings - recordings; n != 0 {
			t.Errorf("%d recordings after the first steps", n)
		}
		state := append(all(t, a, m.params()), all(t, b, nil)...)
		if !record {
			want = state
			continue
		}
		same(t, "recorded", state, want)
	}
}

// TestBadOptions: every use of an optimiser with bad options is an error with the line that made
// it.
func TestBadOptions(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	good := []nn.Named{{Name: "w", Param: nn.NewParam(millrace.OnesOn(dev, millrace.Float32, 2))}}
	whole := []nn.Named{{Name: "i", Param: nn.NewParam(millrace.OnesOn(dev, millrace.Int32, 2))}}
	broken := []nn.Named{{Name: "w", Param: nn.NewParam(millrace.OnesOn(dev, millrace.Float32, -2))}}
	for want, o := range map[string]*Optimizer{
		"LR: -1":                             SGD(good, LR(-1)),
		"SGD has no option Betas":            SGD(good, Betas(0.9, 0.9)),
		"Betas: 1":                           Adam(good, Betas(1, 0.9)),
		"Group: Adam has no option":          Adam(good, Group(func(string) bool { return true }, Momentum(1))),
		"ClipNorm cannot be set for a group": Adam(good, Group(func(string) bool { return true }, ClipNorm(1))),
		"Nesterov needs Momentum":            SGD(good, Nesterov()),
		"no parameters to learn":             SGD(nil),
		"an Option was made without":         SGD(good, Option{}),
		`parameter "x" is nil`:               SGD([]nn.Named{{Name: "x"}}),
		`"i" is of int32`:                    SGD(whole),
		`parameter "w": `:                    SGD(broken),
		"ClipNorm: -1":                       SGD(good, ClipNorm(-1)),
		"Schedule: the Rate is nil":          SGD(good, Schedule(nil)),
		"LossScale":                          SGD(good, LossScale(Scaling{Growth: 0.5})),
	} {
		var op *millrace.OpError
		errs := []error{o.Update(nil), o.Step(nil).err, o.State()[0].Tensor().Err()}
		_, err := o.Updates()
		for _, err := range append(errs, err) {
			if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &op) || !strings.Contains(op.Caller, "group_test.go") {
				t.Errorf("%v, want one that says %q and where", err, want)
			}
		}
	}
}

// TestBadUpdates: bad gradients and steps are errors, and change nothing.
func TestBadUpdates(t *testing.T) {
	for _, record := range []bool{false, true} {
		dev := open(t, "cpu:cache=off,compile=off,memory=8MiB")
		m := newModel(dev, millrace.Float32)
		o := AdamW(m.params(), ClipNorm(0.5))
		var how []StepOption
		if record {
			how = append(how, Record())
		}
		run := func(f func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor, in ...*millrace.Tensor) error {
			s := o.Step(f, how...)
			defer s.Close()
			if in == nil {
				in = batch(dev, 0, 6)
			}
			_, err := s.Run(context.Background(), in...)
			return err
		}
		if err := run(m.loss); err != nil {
			t.Fatal(err)
		}
		g := func(shape ...int) *millrace.Tensor { return millrace.OnesOn(dev, millrace.Float32, shape...) }
		canceled, cancel := context.WithCancel(context.Background())
		cancel()
		closed := o.Step(m.loss, how...)
		closed.Close()
		closed.Close()
		for what, c := range map[string]struct {
			f    func() error
			is   error
			says string
		}{
			"few gradients":    {func() error { return o.Update([]*millrace.Tensor{g(5, 8)}) }, millrace.ErrShape, "1 gradients were given for 4"},
			"gradient's shape": {func() error { return o.Update([]*millrace.Tensor{g(5, 8), g(1, 8), nil, nil}) }, millrace.ErrShape, `"b"`},
			"gradient's dtype": {func() error { return o.Update([]*millrace.Tensor{g(5, 8).Cast(millrace.Int32), nil, nil, nil}) }, millrace.ErrDType, `"a"`},
			"gradient's error": {func() error { return o.Update([]*millrace.Tensor{g(5, 8), g(-1), nil, nil}) }, millrace.ErrShape, ""},
			"inputs":           {func() error { return run(m.loss, g(6, 4), g(6, 8)) }, millrace.ErrShape, "matmul"},
			"an input's error": {func() error { return run(m.loss, g(-1), g(6, 8)) }, millrace.ErrShape, ""},
			"no number": {func() error {
				return run(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor { return m.B.In(c).Square() })
			}, millrace.ErrShape, "one number"},
			"no loss": {func() error {
				return run(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor { return nil })
			}, nil, ""},
			"no parameters": {func() error {
				return run(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor { return in[0].Sum() })
			}, nil, "no parameter of the optimiser"},
			"memory": {func() error {
				return run(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
					return m.loss(c, in).Add(millrace.NormalOn(dev, millrace.Float32, 1, 3000000).Sort(0).Sum())
				})
			}, millrace.ErrOutOfMemory, ""},
			"cancelled": {func() error {
				_, err := o.Step(m.loss, how...).Run(canceled, batch(dev, 0, 6)...)
				return err
			}, context.Canceled, ""},
			"closed":    {func() error { _, err := closed.Run(nil, batch(dev, 0, 6)...); return err }, millrace.ErrClosed, ""},
			"no steps":  {func() error { _, err := o.Step(m.loss, Accumulate(0)).Run(nil); return err }, nil, "Accumulate"},
			"a dtype":   {func() error { _, err := o.Step(m.loss, Compute(millrace.Int8)).Run(nil); return err }, millrace.ErrDType, "int8"},
			"no stream": {func() error { _, err := o.Step(m.loss, On((*millrace.Stream)(nil))).Run(nil); return err }, nil, "the stream or device is nil"},
			"no place":  {func() error { _, err := o.Step(m.loss, On(nil)).Run(nil); return err }, nil, "give a device or a stream"},
		} {
			before := all(t, o, m.params())
			err := c.f()
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, recorded %v: %v", what, record, err)
			} else if c.is != context.Canceled && !strings.Contains(err.Error(), "_test.go:") {
				t.Errorf("%s, recorded %v: no line in %q", what, record, err)
			}
			same(t, fmt.Sprintf("%s, recorded %v", what, record), all(t, o, m.params()), before)
		}
		if err := run(m.loss); err != nil {
			t.Error("after the errors:", err)
		}
	}
}

// TestBadIndex: an error found only during the run changes nothing in a step that is not recorded.
func TestBadIndex(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	m := newModel(dev, millrace.Float32)
	o := AdamW(m.params())
	s := o.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return m.loss(c, in).Add(m.B.In(c).Take(in[2], 0).Sum())
	})
	before := all(t, o, m.params())
	_, err := s.Run(nil, append(batch(dev, 0, 6), millrace.FromSliceOn(dev, []int32{1, 99}))...)
	if !errors.Is(err, millrace.ErrIndex) || !strings.Contains(err.Error(), "group_test.go") {
		t.Error(err)
	}
	same(t, "a bad index", all(t, o, m.params()), before)
}

// TestCheckFinite: the error names the first op that made a number that is not finite.
func TestCheckFinite(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	m := newModel(dev, millrace.Float32)
	o := AdamW(m.params())
	s := o.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return m.loss(c, in).Add(m.B.In(c).Abs().SubScalar(0.5).Log().Sum())
	}, CheckFinite(), Record())
	before := all(t, o, m.params())
	_, err := s.Run(nil, batch(dev, 0, 6)...)
	if err == nil || !strings.Contains(err.Error(), "log") || !strings.Contains(err.Error(), "group_test.go") {
		t.Error(err)
	}
	same(t, "not finite", all(t, o, m.params()), before)
	good := o.Step(m.loss, CheckFinite())
	if _, err := good.Run(nil, batch(dev, 0, 6)...); err != nil {
		t.Error(err)
	}
}

// TestAllFrozen: a step with nothing to train is an error that says so.
func TestAllFrozen(t *testing.T) {
	w := nn.NewParam(millrace.FromSlice([]float32{1, 2}))
	w.Freeze(true)
	opt := SGD([]nn.Named{{Name: "w", Param: w}}, LR(0.1))
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor { return w.In(c).Square().Sum() })
	defer step.Close()
	if _, err := step.Run(nil); err == nil || !strings.Contains(err.Error(), "all parameters of the optimiser are frozen") || !strings.Contains(err.Error(), "group_test.go") {
		t.Errorf("%v", err)
	}
}

// TestUpdateOfFrozen: Update changes a parameter by the gradient it is given, also one that was
// frozen before the optimiser had any state for it.
func TestUpdateOfFrozen(t *testing.T) {
	for name, make := range optimisers {
		dev := open(t, "cpu:cache=off,compile=off")
		w := nn.NewParam(millrace.OnesOn(dev, millrace.Float32, 3))
		w.Freeze(true)
		o := make([]nn.Named{{Name: "w", Param: w}}, LR(0.5))
		g := millrace.OnesOn(dev, millrace.Float32, 3)
		if err := o.Update([]*millrace.Tensor{g}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if v := values[float32](t, w.Tensor()); v[0] >= 1 {
			t.Errorf("%s: the parameter is %v", name, v)
		}
	}
}
