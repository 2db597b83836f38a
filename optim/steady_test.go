package optim

import (
	"context"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// TestSteady: a thousand steps need no more memory and goroutines than ten, make no new plan, and
// allocate nothing from the system.
func TestSteady(t *testing.T) {
	const steps = 1000
	for _, record := range []bool{false, true} {
		t.Run(fmt.Sprintf("recorded %v", record), func(t *testing.T) {
			dev := open(t, "cpu:cache=off,compile=off,explore=wait,tune=off")
			m := newModel(dev, millrace.Float32)
			m.drop = true
			random := nn.NewRandom(7, nn.On(dev))
			how := []StepOption{Random(random)}
			if record {
				how = append(how, Record())
			}
			o := AdamW(m.params(), Schedule(Cosine(0.01, steps)), ClipNorm(1), LossScale(Scaling{Initial: 8, Interval: 50}))
			s := o.Step(m.loss, how...)
			defer s.Close()
			batches := [][]*millrace.Tensor{batch(dev, 0, 6), batch(dev, 1, 6), batch(dev, 2, 4)}
			for _, b := range batches {
				for _, x := range b {
					if err := x.Eval(); err != nil {
						t.Fatal(err)
					}
				}
			}
			run := func(i int) {
				loss, err := s.Run(context.Background(), batches[i%3]...)
				if err != nil {
					t.Fatal(err)
				}
				loss.Release()
			}
			for i := range 30 {
				run(i)
			}
			settle := func() (millrace.Stats, int) {
				goruntime.GC()
				goruntime.GC()
				if err := dev.Sync(nil); err != nil {
					t.Fatal(err)
				}
				return dev.Stats(), goruntime.NumGoroutine()
			}
			before, goroutines := settle()
			for i := range steps {
				run(30 + i)
			}
			after, now := settle()
			if after.LiveBytes > before.LiveBytes+1024 {
				t.Errorf("%d bytes after %d steps, %d before", after.LiveBytes, steps, before.LiveBytes)
			}
			if now > goroutines+2 {
				t.Errorf("%d goroutines, %d before", now, goroutines)
			}
			if n := after.Explorations - before.Explorations; n != 0 {
				t.Errorf("%d explorations", n)
			}
			if n := after.Recordings - before.Recordings; n != 0 {
				t.Errorf("%d recordings", n)
			}
			taken := func(s millrace.Stats) int64 { return int64(s.Runtime.Allocs) - int64(s.Runtime.PoolHits) }
			if n := taken(after) - taken(before); n > steps/20 {
				t.Errorf("memory was asked of the system %d times", n)
			}
			want := int64(11)
			if record { // one of them is for handles of weights that the update continues with
				want = 8
			}
			if n := (after.InPlace - before.InPlace) / steps; n < want {
				t.Errorf("%d tensors a step are updated in place, of 14: %d were", n, want)
			}
		})
	}
}

// TestRandomUpdates: random rules, options and parameters give the same bits recorded or op by op,
// fused or not, and cut anywhere.
func TestRandomUpdates(t *testing.T) {
	programs := 40
	if testing.Short() {
		programs = 10
	}
	devices := []*millrace.Device{open(t, "cpu:cache=off,compile=off,fusion=off"), open(t, "cpu:cache=off,compile=off"),
		open(t, "cpu:cache=off,compile=off,queue=3,threads=3")}
	for seed := range uint64(programs) {
		var want []string
		for i, dev := range devices {
			state := randomUpdates(t, dev, seed, i == 0)
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

// randomUpdates makes a random optimiser and updates by it: directly, without a Recording, or by
// Update.
func randomUpdates(t *testing.T, dev *millrace.Device, seed uint64, directly bool) []string {
	r := rand.New(rand.NewPCG(seed, 1))
	chance := func(p float64) bool { return r.Float64() < p }
	number := func() float64 { return []float64{0, 0.1, 0.5, 0.9, 0.99}[r.IntN(5)] }
	var params []nn.Named
	var shapes [][]int
	for i := range 1 + r.IntN(5) {
		var shape []int
		for range r.IntN(4) {
			shape = append(shape, r.IntN(5)+min(r.IntN(3), 1))
		}
		dt := []millrace.DType{millrace.Float32, millrace.Float32, millrace.Float64, millrace.BFloat16, millrace.Float16}[r.IntN(5)]
		x := millrace.NormalOn(dev, millrace.Float32, seed*100+uint64(i), shape...).Cast(dt)
		params = append(params, nn.Named{Name: fmt.Sprint("p", i), Param: nn.NewParam(x)})
		shapes = append(shapes, shape)
	}
	known := map[string]func() Option{
		"Momentum": func() Option { return Momentum(number()) }, "Dampening": func() Option { return Dampening(number()) },
		"Nesterov": Nesterov, "Betas": func() Option { return Betas(number(), number()) }, "Eps": func() Option { return Eps(1e-4) },
		"AMSGrad": AMSGrad, "Alpha": func() Option { return Alpha(number()) }, "Centered": Centered,
		"RateDecay": func() Option { return RateDecay(number()) }, "Initial": func() Option { return Initial(number()) },
	}
	all7 := []*rule{&rules.sgd, &rules.adam, &rules.adamW, &rules.rmsProp, &rules.adagrad, &rules.lion, &rules.lamb}
	rule := all7[r.IntN(len(all7))]
	nesterov := rule == &rules.sgd && chance(0.3)
	some := func() (opts []Option) {
		if nesterov {
			opts = append(opts, Momentum(0.9), Dampening(0), Nesterov())
		}
		for _, name := range rule.options {
			if !nesterov && name != "Nesterov" && chance(0.5) {
				opts = append(opts, known[name]())
			}
		}
		if chance(0.5) {
			opts = append(opts, WeightDecay(number()))
		}
		return append(opts, LR(number()))
	}
	opts := some()
	if chance(0.3) {
		opts = append(opts, Group(func(name string) bool { return name == "p0" || name == "p2" }, some()...))
	}
	if chance(0.3) {
		opts = append(opts, ClipNorm(0.5))
	}
	if chance(0.3) {
		opts = append(opts, ClipValue(0.5))
	}
	scaled := chance(0.3)
	if scaled {
		opts = append(opts, LossScale(Scaling{Initial: 4, Interval: 2}))
	}
	o := newOptimizer(rule, params, opts)
	for step := range 5 {
		grads := make([]*millrace.Tensor, len(params))
		for i, shape := range shapes {
			if chance(0.15) {
				continue
			}
			grads[i] = millrace.NormalOn(dev, millrace.Float32, seed*1000+uint64(step*10+i), shape...)
			if scaled && chance(0.1) {
				grads[i] = grads[i].Log() // with NaN
			}
		}
		update := o.Update
		if directly {
			update = o.direct
		}
		if err := update(grads); err != nil {
			t.Fatal(err)
		}
	}
	return all(t, o, params)
}

// direct is Update without a Recording.
func (o *Optimizer) direct(grads []*millrace.Tensor) error {
	if err := o.begin(); err != nil {
		return err
	}
	rates, err := o.rates(nil)
	if err != nil {
		return err
	}
	err = o.home().Scope(func(sc *millrace.Scope) error {
		x := &pass{o: o, sc: sc, rates: rates, grads: grads}
		return x.finish(ending{last: true, steps: 1}, nil)
	})
	o.progress.after(ending{last: true}, nil)
	return err
}

// TestKindsBounded: with ever new sizes of inputs and ever new sets of parameters with gradients,
// only the most recent recordings are kept.
func TestKindsBounded(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off,tune=off")
	m := newModel(dev, millrace.Float32)
	s := SGD(m.params()).Step(m.loss, Record())
	defer s.Close()
	for n := range mostTapes + 8 {
		loss, err := s.Run(context.Background(), batch(dev, 0, 2+n)...)
		if err != nil {
			t.Fatal(err)
		}
		loss.Release()
	}
	if n := len(s.tapes); n != mostTapes {
		t.Errorf("%d steps are kept", n)
	}
	before := dev.Stats().Recordings
	if _, err := s.Run(context.Background(), batch(dev, 0, 2+mostTapes+7)...); err != nil {
		t.Fatal(err)
	}
	if n := dev.Stats().Recordings - before; n != 0 {
		t.Error("the last one is not among them")
	}

	var params []nn.Named
	for i := range 7 {
		params = append(params, nn.Named{Name: fmt.Sprint(i), Param: nn.NewParam(millrace.OnesOn(dev, millrace.Float32, 2))})
	}
	o := SGD(params)
	for which := range 1 << len(params) {
		grads := make([]*millrace.Tensor, len(params))
		for i := range grads {
			if which>>i&1 == 1 {
				grads[i] = millrace.OnesOn(dev, millrace.Float32, 2)
			}
		}
		if err := o.Update(grads); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(o.ends); n != mostEnds {
		t.Errorf("%d updates are kept", n)
	}
}
