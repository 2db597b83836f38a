package optim

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// within fails the test if f does not end because it waits for itself.
func within(t *testing.T, f func()) {
	t.Helper()
	ended := make(chan struct{}, 1)
	go func() {
		defer func() { ended <- struct{}{} }()
		f()
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for ever")
	}
}

// TestInsideStep: a call on the optimiser from a Step's function or from a Rate either works or is
// an error with the caller's line. It never waits for itself, and the surrounding step continues.
func TestInsideStep(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	type at struct {
		o            *Optimizer
		m            *model
		same, second *Step
		bound        *BoundStep
		in           []*millrace.Tensor
	}
	calls := map[string]struct {
		call func(x *at) error
		bad  bool
	}{
		"Updates": {func(x *at) error {
			n, err := x.o.Updates()
			if err == nil && n != 0 {
				err = errors.New("the step that runs was counted")
			}
			return err
		}, false},
		"Params":        {func(x *at) error { x.o.Params(); return nil }, false},
		"Scale":         {func(x *at) error { x.o.Scale(); return nil }, false},
		"Loss":          {func(x *at) error { return x.bound.Loss().Err() }, false},
		"SetInput":      {func(x *at) error { return SetInput(x.bound, 0, make([]float32, 30)...) }, false},
		"Step":          {func(x *at) error { x.o.Step(x.m.little).Close(); return nil }, false},
		"Step.Close":    {func(x *at) error { x.second.Close(); return nil }, false},
		"Bound.Close":   {func(x *at) error { return x.bound.Close() }, false},
		"Save of model": {func(x *at) error { return nn.Save(filepath.Join(dir, "model"), x.m) }, false},
		"State":         {func(x *at) error { return x.o.State()[0].Tensor().Err() }, true},
		"Save":          {func(x *at) error { return nn.Save(file, x.m, x.o) }, true},
		"Load":          {func(x *at) error { return nn.Load(file, x.m, x.o) }, true},
		"Update":        {func(x *at) error { return x.o.Update(make([]*millrace.Tensor, 4)) }, true},
		"Run":           {func(x *at) error { _, err := x.same.Run(context.Background(), x.in...); return err }, true},
		"other Run":     {func(x *at) error { _, err := x.second.Run(nil, x.in...); return err }, true},
		"Bind":          {func(x *at) error { _, err := x.same.Bind(x.in...); return err }, true},
		"other Bind":    {func(x *at) error { _, err := x.second.Bind(x.in...); return err }, true},
		"Bound.Run":     {func(x *at) error { return x.bound.Run() }, true},
		"Accumulate": {func(x *at) error {
			_, err := x.o.Step(x.m.little, Accumulate(2)).Run(nil, x.in...)
			return err
		}, true},
	}
	for name, c := range calls {
		for _, where := range []string{"eager", "recorded", "bind", "rate", "recorded rate", "bound rate"} {
			t.Run(name+"/"+where, func(t *testing.T) {
				dev := open(t, "cpu:cache=off,compile=off")
				x := &at{m: newModel(dev, millrace.Float32), in: batch(dev, 0, 6)}
				var asked bool
				var got error
				ask := func() {
					if !asked {
						asked = true
						got = c.call(x)
					}
				}
				inRate := strings.HasSuffix(where, "rate")
				ready := false
				x.o = SGD(x.m.params(), Momentum(0.9), Schedule(func(int) float64 {
					if ready && inRate {
						ask()
					}
					return 0.1
				}))
				var how []StepOption
				if strings.HasPrefix(where, "recorded") {
					how = append(how, Record())
				}
				x.second = x.o.Step(x.m.little, Record())
				x.same = x.o.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
					if ready && !inRate {
						ask()
					}
					return x.m.little(c, in)
				}, how...)
				var err error
				if x.bound, err = x.second.Bind(x.in...); err != nil {
					t.Fatal(err)
				}
				if err := nn.Save(file, x.m, x.o); err != nil {
					t.Fatal(err)
				}
				within(t, func() {
					ready = true
					switch where {
					case "bind":
						_, err = x.same.Bind(x.in...)
						if errors.Is(err, millrace.ErrUnsupported) { // the function read a value
							err = nil
						}
					case "bound rate":
						err = x.bound.Run()
						if name == "Bound.Close" && errors.Is(err, millrace.ErrClosed) {
							err = nil
						}
					default:
						_, err = x.same.Run(context.Background(), x.in...)
					}
				})
				if t.Failed() {
					return
				}
				switch {
				case err != nil:
					t.Errorf("the step: %v", err)
				case !asked:
					t.Error("nothing was called")
				case c.bad != (got != nil):
					t.Errorf("error %v", got)
				case c.bad && (!errors.Is(got, errInside) || !strings.Contains(got.Error(), "inside_test.go:")):
					t.Errorf("not the error that it should be: %v", got)
				}
				within(t, func() { // no lock is held any more
					if _, err := x.o.Updates(); err != nil {
						t.Error(err)
					}
					if _, err := x.same.Run(nil, x.in...); err != nil {
						t.Error(err)
					}
					x.same.Close()
				})
			})
		}
	}
}

// little is a loss that is faster to compute than the model's.
func (m *model) little(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
	return in[0].MatMul(m.A.In(c)).Square().Mean()
}

// TestCloseInside: a Step that its own function closes ends with that run.
func TestCloseInside(t *testing.T) {
	for _, how := range [][]StepOption{nil, {Record()}} {
		dev := open(t, "cpu:cache=off,compile=off")
		m := newModel(dev, millrace.Float32)
		var s *Step
		s = SGD(m.params()).Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
			s.Close()
			return m.loss(c, in)
		}, how...)
		within(t, func() {
			if _, err := s.Run(nil, batch(dev, 0, 6)...); err != nil {
				t.Errorf("the run in which it was closed: %v", err)
			}
			if _, err := s.Run(nil, batch(dev, 0, 6)...); !errors.Is(err, millrace.ErrClosed) {
				t.Errorf("the next one: %v", err)
			}
		})
		if n := len(s.tapes); n != 0 {
			t.Errorf("%d steps are kept", n)
		}
	}
}

// TestWaitsForTurn: another goroutine waits for the running step, but not after its context is
// done.
func TestWaitsForTurn(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	m := newModel(dev, millrace.Float32)
	o := SGD(m.params(), LR(0.1))
	in, out := make(chan struct{}), make(chan struct{})
	slow := o.Step(func(c *nn.Ctx, x []*millrace.Tensor) *millrace.Tensor {
		in <- struct{}{}
		<-out
		return m.loss(c, x)
	})
	ran := make(chan error)
	go func() {
		_, err := slow.Run(nil, batch(dev, 0, 6)...)
		ran <- err
	}()
	<-in
	if n, err := o.Updates(); n != 0 || err != nil {
		t.Errorf("%d updates while the first runs: %v", n, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	within(t, func() {
		if _, err := o.Step(m.loss).Run(ctx, batch(dev, 1, 6)...); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a step whose context is done: %v", err)
		}
	})
	waited := make(chan error)
	go func() {
		_, err := o.Step(m.loss).Run(context.Background(), batch(dev, 1, 6)...)
		waited <- err
	}()
	select {
	case err := <-waited:
		t.Errorf("it did not wait: %v", err)
	case <-time.After(10 * time.Millisecond):
	}
	out <- struct{}{}
	for _, c := range []chan error{ran, waited} {
		if err := <-c; err != nil {
			t.Error(err)
		}
	}
	if n, err := o.Updates(); n != 2 || err != nil {
		t.Errorf("%d updates: %v", n, err)
	}
}

// TestNone: methods of zero optimisers and steps return errors.
func TestNone(t *testing.T) {
	none := map[string]func() error{
		"updates": func() error { _, err := (*Optimizer)(nil).Updates(); return err },
		"update":  func() error { return new(Optimizer).Update(nil) },
		"state":   func() error { return new(Optimizer).State()[0].Tensor().Err() },
		"step": func() error {
			_, err := new(Optimizer).Step(newModel(open(t, "cpu:cache=off,compile=off"), millrace.Float32).loss).Run(nil)
			return err
		},
		"run":   func() error { _, err := (*Step)(nil).Run(nil); return err },
		"bind":  func() error { _, err := new(Step).Bind(); return err },
		"bound": func() error { return new(BoundStep).Run() },
		"nil":   func() error { return (*BoundStep)(nil).Run() },
		"input": func() error { return SetInput(new(BoundStep), 0, float32(1)) },
	}
	for name, call := range none {
		if err := call(); err == nil || !strings.Contains(err.Error(), "inside_test.go:") {
			t.Errorf("%s: %v", name, err)
		}
	}
	(*Step)(nil).Close()
	new(Step).Close()
	if err := errors.Join((*BoundStep)(nil).Close(), new(BoundStep).Close()); err != nil {
		t.Error(err)
	}
	if x := (*BoundStep)(nil).Loss(); x != nil {
		t.Error(x)
	}
	if n := len((*Optimizer)(nil).Params()) + len(new(Optimizer).Params()); n != 0 {
		t.Error(n)
	}
	if x := (*Optimizer)(nil).Scale(); x != nil {
		t.Error(x)
	}
}
