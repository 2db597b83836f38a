package optim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/local"
	inject "github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/portion"
	"github.com/millrace-go/millrace/nn"
)

// joined is joint training that writes a file of all its state.
type joined struct {
	norm    bool
	batches []int
	rule    func([]nn.Named, ...Option) *Optimizer
	options []Option
	parts   int                    // runs for each update; 0: 1
	freeze  func(m *net, step int) // may be nil
	resume  string                 // a file to begin with, before the batch of number from
	from    int
}

// way is how it runs: results do not depend on it.
type way struct {
	ranks  int
	r      Ranks
	record bool
	late   bool // the file is loaded before the step is made
}

func (x joined) run(t *testing.T, dev *millrace.Device, c way) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "all.safetensors")
	c.r.Leaves = cmp.Or(c.r.Leaves, 4)
	err := alike(t, dev, c.ranks, func(w *dist.World, on *millrace.Stream) error {
		ctx := context.Background()
		m, random := newNet(on, x.norm), nn.NewRandom(7, nn.On(on))
		o := x.rule(nn.Params(m), append([]Option{LR(0.01)}, x.options...)...)
		opts := []StepOption{Across(w, c.r), On(on), Random(random), Accumulate(max(x.parts, 1))}
		if c.record {
			opts = append(opts, Record())
		}
		var s *Step
		if !c.late {
			s = o.Step(m.loss, opts...)
		}
		losses := make([]float64, 0, len(x.batches))
		if x.resume != "" {
			if c.late && x.parts > 1 {
				o.Step(m.loss, Accumulate(x.parts)).Close() // makes the sums
			}
			if err := w.Load(ctx, x.resume, m, o, random, dist.JSON("losses", &losses)); err != nil {
				return err
			}
		}
		if c.late {
			s = o.Step(m.loss, opts...)
		}
		defer s.Close()
		for i := x.from; i < len(x.batches); i++ {
			if x.freeze != nil {
				x.freeze(m, i)
			}
			from, to := portion.Of(x.batches[i], c.ranks, w.Rank())
			loss, err := s.Run(ctx, rows(on, i, x.batches[i], from, to)...)
			if err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
			v, err := millrace.Item[float32](loss)
			if err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
			losses = append(losses, float64(v))
		}
		return w.Save(ctx, file, m, o, random, dist.JSON("losses", losses))
	})
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	return file
}

// sameFiles compares two files.
func sameFiles(t *testing.T, what string, got, want string) {
	t.Helper()
	a, err := os.ReadFile(got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(a) != string(b) {
		t.Errorf("%s: the file has other bytes", what)
	}
}

// shardedWays are ways with a divided state.
func shardedWays(wire millrace.DType) (list []way) {
	for _, c := range []struct{ ranks, bucket int }{{1, 0}, {2, 300}, {4, 1}} {
		for _, record := range []bool{false, true} {
			list = append(list, way{ranks: c.ranks, record: record, r: Ranks{Bucket: c.bucket, Sharded: true, SameEvery: 2, Wire: wire}})
		}
	}
	return list
}

// TestSharded: with a divided state, files have the bytes of one rank's with the whole state.
func TestSharded(t *testing.T) {
	small := []int{8, 6, 7, 8, 3, 1}
	dev := open(t, "cpu:cache=off,compile=off")
	for name, x := range map[string]joined{
		"plain":         {batches: small, rule: AdamW},
		"clipped":       {batches: small, rule: AdamW, options: []Option{ClipNorm(0.1), ClipValue(0.05)}},
		"normalised":    {batches: []int{16, 13, 12, 16}, norm: true, rule: RMSProp, options: []Option{LossScale(Scaling{Initial: 0x1p127})}},
		"momentum":      {batches: small, rule: SGD, options: []Option{Momentum(0.9), Dampening(0.1)}},
		"no state":      {batches: small, rule: SGD},
		"groups":        {batches: small, rule: Lion, options: []Option{Group(func(name string) bool { return name == "low" || name == "high" }, LR(0.1), WeightDecay(0.3))}},
		"initial":       {batches: small, rule: Adagrad, options: []Option{Initial(0.1), RateDecay(0.1)}},
		"parts":         {batches: small, rule: Adam, parts: 3, options: []Option{LossScale(Scaling{Interval: 1}), AMSGrad()}},
		"clipped parts": {batches: small[:5], rule: Adam, parts: 2, options: []Option{LossScale(Scaling{Initial: 0x1p127}), ClipNorm(0.1)}},
		"frozen": {batches: small, rule: Adam, freeze: func(m *net, step int) {
			m.Low.Freeze(step < 2)
			m.In.Weight.Freeze(step == 1 || step == 3)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			wires := []millrace.DType{millrace.Invalid}
			if name == "plain" || name == "parts" {
				wires = append(wires, millrace.BFloat16)
			}
			for _, wire := range wires {
				want := x.run(t, dev, way{ranks: 1, r: Ranks{Wire: wire}})
				for _, c := range shardedWays(wire) {
					sameFiles(t, fmt.Sprintf("%+v", c), x.run(t, dev, c), want)
				}
			}
		})
	}
}

// TestShardedOdd: three ranks, whose parts have other sizes than those of 1, 2 and 4.
func TestShardedOdd(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	x := joined{batches: []int{8, 6, 2, 5}, rule: AdamW, options: []Option{LossScale(Scaling{})}}
	want := x.run(t, dev, way{ranks: 3, r: Ranks{Leaves: 6}})
	for _, record := range []bool{false, true} {
		got := x.run(t, dev, way{ranks: 3, r: Ranks{Leaves: 6, Sharded: true}, record: record})
		sameFiles(t, fmt.Sprintf("recorded %v", record), got, want)
	}
}

// TestShardedReplays: a recorded step is not recorded again once its parameters have values that the
// ranks gathered. Each rank has a device of its own, whose recordings others do not disturb.
func TestShardedReplays(t *testing.T) {
	for _, ranks := range []int{1, 2, 4} {
		err := local.Run(context.Background(), ranks, dist.Options{}, func(ctx context.Context, w *dist.World) error {
			dev, err := millrace.Open("cpu:cache=off,compile=off")
			if err != nil {
				return err
			}
			defer dev.Close()
			on := dev.NewStream()
			m := newNet(on, false)
			one, number := nn.NewParam(millrace.OnesOn(on, millrace.Float32, 1)), nn.NewParam(millrace.OnesOn(on, millrace.Float32))
			params := append(nn.Params(m), nn.Named{Name: "one", Param: one}, nn.Named{Name: "number", Param: number})
			s := AdamW(params).Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
				return m.loss(c, in).Mul(one.In(c).Reshape()).Mul(number.In(c))
			}, Record(), Across(w, Ranks{Sharded: true, Bucket: 500}), On(on), Random(nn.NewRandom(1, nn.On(on))))
			defer s.Close()
			var counts []int64
			for i := range 6 {
				loss, err := s.Run(ctx, rows(on, i, 8, 8/ranks*w.Rank(), 8/ranks*(w.Rank()+1))...)
				if err == nil {
					err = loss.Eval()
				}
				if err != nil {
					return err
				}
				counts = append(counts, dev.Stats().Recordings)
			}
			if counts[5] != counts[1] {
				t.Errorf("%d ranks: recordings after each run: %v", ranks, counts)
			}
			t.Log(counts)
			return w.Barrier(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestShardedBytes: a rank's state has at most its part of the bytes and 5 % more, and so has the
// memory of its device.
func TestShardedBytes(t *testing.T) {
	const width = 200
	measure := func(ranks int, sharded bool) (state, live int) {
		states, lives := make([]int, ranks), make([]int, ranks)
		err := local.Run(context.Background(), ranks, dist.Options{}, func(ctx context.Context, w *dist.World) error {
			dev, err := millrace.Open("cpu:cache=off,compile=off,threads=1,explore=wait,tune=off")
			if err != nil {
				return err
			}
			defer dev.Close()
			on := dev.NewStream()
			m := nn.NewSequential(nn.NewLinear(width, width, nn.On(on), nn.Seed(1)), nn.ReLU{}, nn.NewLinear(width, 7, nn.On(on), nn.Seed(2)))
			o := AdamW(nn.Params(m))
			s := o.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor { return m.Forward(c, in[0]).Square().Mean() },
				Across(w, Ranks{Sharded: sharded}), On(on))
			defer s.Close()
			in := millrace.NormalOn(on, millrace.Float32, 1, 2, width)
			for range 3 {
				loss, err := s.Run(ctx, in)
				if err != nil {
					return err
				}
				if err := loss.Eval(); err != nil {
					return err
				}
				loss.Release()
			}
			for _, p := range o.State() {
				if strings.Contains(p.Name, "exp_avg") {
					states[w.Rank()] += p.Tensor().Len() * p.Tensor().DType().Size()
				}
			}
			for _, p := range nn.Params(m) {
				if err := p.Tensor().Eval(); err != nil {
					return err
				}
			}
			if err := errors.Join(w.Barrier(ctx), dev.Sync(ctx)); err != nil {
				return err
			}
			lives[w.Rank()] = int(dev.Stats().LiveBytes)
			return w.Barrier(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Max(states), slices.Max(lives)
	}
	for _, ranks := range []int{2, 4} {
		whole, all := measure(ranks, false)
		state, live := measure(ranks, true)
		t.Logf("%d ranks: state %d of %d bytes, live %d of %d", ranks, state, whole, live, all)
		if most := whole / ranks * 105 / 100; state > most || state < whole/ranks {
			t.Errorf("%d ranks: a rank's state has %d of %d bytes", ranks, state, whole)
		}
		if less := whole - whole/ranks*105/100; all-live < less {
			t.Errorf("%d ranks: %d live bytes with a divided state and %d without, want %d less", ranks, live, all, less)
		}
	}
}

// TestShardedMistakes: uses of a divided state that cannot be are errors that say what to do.
func TestShardedMistakes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	err := alike(t, nil, 2, func(w *dist.World, on *millrace.Stream) error {
		m, random := newNet(on, false), nn.NewRandom(1, nn.On(on))
		in := rows(on, 1, 4, 2*w.Rank(), 2*w.Rank()+2)
		ctx := context.Background()
		wants := func(err error, text string) {
			t.Helper()
			if !errors.Is(err, millrace.ErrUnsupported) || !strings.Contains(err.Error(), text) {
				t.Errorf("%v, want %q", err, text)
			}
		}
		o := Adam(nn.Params(m))
		before := o.Step(m.loss, On(on), Random(random))
		bound, err := before.Bind(in...)
		if err != nil {
			return err
		}
		s := o.Step(m.loss, Across(w, Ranks{Sharded: true}), On(on), Random(random))
		if _, err := s.Run(ctx, in...); err != nil {
			return err
		}
		wants(bound.Run(), "divided among ranks")
		_, err = before.Run(ctx, in...)
		wants(err, "divided among ranks")
		_, err = before.Bind(in...)
		wants(err, "divided among ranks")
		wants(o.Update(make([]*millrace.Tensor, len(o.Params()))), "divided among ranks")
		wants(nn.Save(path, o), "dist.World.Save")
		if err := w.Barrier(ctx); err != nil { // the next error ends the World, and steps that still run with it
			return err
		}
		_, err = LAMB(nn.Params(m)).Step(m.loss, Across(w, Ranks{Sharded: true})).Run(ctx, in...)
		wants(err, "LAMB computes norms")
		_, err = s.Bind(in...) // its error ends the World
		wants(err, "Ranks.Sharded cannot be bound")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "Ranks.Sharded cannot be bound") {
		t.Error(err)
	}
}

// TestShardedLacksMemory: where memory is lacking while the state is divided, all of it stays whole.
func TestShardedLacksMemory(t *testing.T) {
	defer inject.Reset()
	failed := 0
	for pass := 0; ; pass++ {
		dev := open(t, "cpu:cache=off,compile=off")
		err := alike(t, dev, 1, func(w *dist.World, on *millrace.Stream) error {
			m := newNet(on, false)
			o, random := Adam(nn.Params(m)), nn.NewRandom(1, nn.On(on))
			plain, in := o.Step(m.loss, On(on), Random(random)), rows(on, 1, 4, 0, 4)
			if _, err := plain.Run(context.Background(), in...); err != nil {
				return err
			}
			shapes := func() (list []string) {
				for _, p := range o.State() {
					list = append(list, fmt.Sprint(p.Name, p.Tensor().Shape(), raw(t, p.Tensor())))
				}
				return list
			}
			before := shapes()
			inject.SetAfter(inject.Alloc, pass, -1) // an allocation is tried several times
			sharded := o.Step(m.loss, Across(w, Ranks{Sharded: true}), On(on), Random(random))
			inject.Reset()
			if sharded.err == nil {
				return nil
			}
			failed++
			if !errors.Is(sharded.err, millrace.ErrOutOfMemory) {
				t.Errorf("pass %d: %v", pass, sharded.err)
			}
			if after := shapes(); !slices.Equal(after, before) {
				t.Errorf("pass %d: the state was\n%q, and is\n%q", pass, before, after)
			}
			_, err := plain.Run(context.Background(), in...)
			return err
		})
		if err != nil {
			t.Fatalf("pass %d: %v", pass, err)
		}
		if failed <= pass {
			break
		}
	}
	if failed < 3 {
		t.Errorf("only %d allocations failed", failed)
	}
}

// TestShardedWorlds: the state belongs to one World, and only that saves it.
func TestShardedWorlds(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	path := filepath.Join(t.TempDir(), "file")
	for _, step := range []bool{true, false} {
		err := alike(t, dev, 1, func(first *dist.World, on *millrace.Stream) error {
			return alike(t, dev, 1, func(second *dist.World, on *millrace.Stream) error {
				m := newNet(on, false)
				o := Adam(nn.Params(m))
				o.Step(m.loss, Across(first, Ranks{Sharded: true}))
				if step {
					_, err := o.Step(m.loss, Across(second, Ranks{Sharded: true})).Run(context.Background())
					return err
				}
				return second.Save(context.Background(), path, o)
			})
		})
		if err == nil || !strings.Contains(err.Error(), "another World") {
			t.Errorf("step %v: %v", step, err)
		}
	}
}

// TestShardedResumes: a file of one number of ranks continues with another one and with a whole or
// divided state, to the bytes of an uninterrupted run. It may be loaded before or after the step is
// made, and in the middle of an update.
func TestShardedResumes(t *testing.T) {
	dev := open(t, "cpu:cache=off,compile=off")
	for _, parts := range []int{1, 2} {
		x := joined{batches: []int{8, 6, 7, 8, 3, 1}, rule: AdamW, parts: parts}
		if parts > 1 {
			x.options = []Option{ClipNorm(0.1)}
		}
		want := x.run(t, dev, way{ranks: 1})
		first, second := x, x
		first.batches, second.from = x.batches[:3], 3
		for _, c := range [][2]way{
			{{ranks: 2, r: Ranks{Sharded: true}}, {ranks: 4}},
			{{ranks: 4}, {ranks: 2, r: Ranks{Sharded: true}}},
			{{ranks: 4, r: Ranks{Sharded: true}}, {ranks: 2, r: Ranks{Sharded: true}, late: true, record: true}},
			{{ranks: 1, r: Ranks{Sharded: true}, record: true}, {ranks: 4, r: Ranks{Sharded: true}, record: true}},
		} {
			second.resume = first.run(t, dev, c[0])
			sameFiles(t, fmt.Sprintf("%d parts, %+v", parts, c), second.run(t, dev, c[1]), want)
		}
	}
}

// TestShardedPrograms: random rules, options, batches, buckets and numbers of ranks.
func TestShardedPrograms(t *testing.T) {
	programs := 6
	if testing.Short() {
		programs = 2
	}
	rules := []func([]nn.Named, ...Option) *Optimizer{SGD, Adam, AdamW, RMSProp, Adagrad, Lion}
	dev := open(t, "cpu:cache=off,compile=off")
	for seed := range uint64(programs) {
		r := rand.New(rand.NewPCG(seed, 9))
		x := joined{rule: rules[r.IntN(len(rules))], norm: r.IntN(3) == 0, parts: 1 + r.IntN(3)}
		for range 3 + r.IntN(5) {
			n := 1 + r.IntN(12)
			if x.norm {
				n += 8 // BatchNorm needs two rows
			}
			x.batches = append(x.batches, n)
		}
		for _, o := range []Option{ClipNorm(0.2), ClipValue(0.05), LossScale(Scaling{Initial: 0x1p120, Interval: 2}), WeightDecay(0.1)} {
			if r.IntN(3) == 0 {
				x.options = append(x.options, o)
			}
		}
		order := r.Perm(len(x.batches))
		x.freeze = func(m *net, step int) {
			m.High.Freeze(order[step]%4 == 0)
			m.Out.Bias.Freeze(order[step]%3 == 0)
		}
		want := x.run(t, dev, way{ranks: 1})
		for _, ranks := range []int{2, 4} {
			c := way{ranks: ranks, record: r.IntN(2) == 0, r: Ranks{Sharded: true, Bucket: 1 + r.IntN(2000), SameEvery: 1 + r.IntN(4)}}
			sameFiles(t, fmt.Sprintf("seed %d, %+v", seed, c), x.run(t, dev, c), want)
		}
	}
}
