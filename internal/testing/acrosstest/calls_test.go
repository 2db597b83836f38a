package acrosstest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/local"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// call is one call of a sequence: its kind, a model, and a number.
type call struct {
	what  string
	model int
	n     int
}

func (c call) String() string { return fmt.Sprintf("%s %d %d", c.what, c.model, c.n) }

// callKinds are the kinds of calls and their frequencies.
var callKinds = []struct {
	what   string
	weight int
}{
	{"run", 24}, {"parts", 10}, {"update", 3}, {"freeze", 3}, {"thaw", 4}, {"set", 3}, {"save", 3}, {"load", 3}, {"reduce", 2},
	{"same", 2}, {"barrier", 1}, {"close", 2}, {"read", 2},
}

func randomCalls(r *rand.Rand, n int) (calls []call) {
	total := 0
	for _, k := range callKinds {
		total += k.weight
	}
	for len(calls) < n {
		at := r.IntN(total)
		for _, k := range callKinds {
			if at -= k.weight; at < 0 {
				calls = append(calls, call{k.what, r.IntN(2), r.IntN(20)})
				break
			}
		}
	}
	return calls
}

// part is a training of a sequence on one rank, with two steps of its optimiser.
type part struct {
	*Training
	steps map[string]*optim.Step
}

// player makes the calls of a sequence on one rank.
type player struct {
	w     *dist.World
	at    millrace.Place
	path  string
	saved [2]bool
	how   How
	parts []*part
	told  []string
	loss  []*millrace.Tensor
}

var sequenceModels = []func(p millrace.Place) *Training{
	func(p millrace.Place) *Training {
		with, _ := at(p, 21)
		return perceptron(p, adam(optim.ClipNorm(0.5), optim.LossScale(optim.Scaling{Interval: 3})), nn.NewLayerNorm(8, with...), nn.Tanh{}, nn.NewDropout(0.3))
	},
	newBuffers,
}

func (x *player) step(p *part, kind string) *optim.Step {
	if p.steps[kind] == nil {
		m := Model{Leaves: 4}
		if kind == "parts" {
			m.Parts = 2
		}
		p.steps[kind] = p.Optimizer.Step(p.Loss, m.options(p.Training, x.w, x.how)...)
	}
	return p.steps[kind]
}

func (x *player) do(ctx context.Context, c call) error {
	p := x.parts[c.model]
	weight := p.Params[c.n%2]
	parts := []any{nn.Under("model", p), p.Optimizer, p.Random}
	path := fmt.Sprintf("%s%d", x.path, c.model)
	switch c.what {
	case "run", "parts":
		b := shared(regression(uint64(c.n), 1+c.n))(c.n)
		at := Bounds(b.Rows, x.w.Size())
		in := b.Tensors(x.at, at[x.w.Rank()], at[x.w.Rank()+1])
		loss, err := x.step(p, c.what).Run(ctx, in...)
		for _, t := range in {
			t.Release()
		}
		x.loss = append(x.loss, loss)
		return err
	case "update":
		var grads []*millrace.Tensor
		for i, n := range p.Optimizer.Params() {
			var g *millrace.Tensor
			if t := n.Tensor(); (c.n+i)%3 > 0 {
				g = millrace.FromSliceOn(x.at, Numbers(uint64(c.n), uint64(i), t.Len()), t.Shape()...)
			}
			grads = append(grads, g)
		}
		return p.Optimizer.Update(grads)
	case "freeze", "thaw":
		weight.Freeze(c.what == "freeze")
	case "set":
		next := weight.Tensor().MulScalar(0.5)
		weight.Tensor().Set(next)
		next.Release()
	case "save":
		x.saved[c.model] = true
		return x.w.Save(ctx, path, parts...)
	case "load":
		if x.saved[c.model] {
			return x.w.Load(ctx, path, parts...)
		}
	case "reduce":
		one := millrace.FullOn(x.at, millrace.Float32, 1, 100)
		sum := x.w.AllReduce(one)
		defer sum.Release()
		one.Release()
		if v, err := millrace.Values[float32](sum); err != nil || v[99] != float32(x.w.Size()) {
			return fmt.Errorf("a sum of ones is %v, %w", v, err)
		}
	case "same":
		return x.w.Same(ctx, append(slices.Clone(p.Params), p.Optimizer.State()...)...)
	case "barrier":
		return x.w.Barrier(ctx)
	case "close":
		for _, kind := range []string{"run", "parts"} {
			if s := p.steps[kind]; s != nil && c.n%2 == 0 {
				s.Close()
				delete(p.steps, kind)
			}
		}
	case "read":
		r, err := p.result(nil)
		x.told = append(x.told, r.Lines...)
		return err
	}
	return nil
}

// places are those of ranks of sequences: their devices differ in what must make no difference.
var places = sync.OnceValues(func() (list []*millrace.Device, err error) {
	for _, more := range []string{"threads=1", "threads=2,queue=5", "fusion=off,threads=1", "threads=3,queue=40"} {
		d, err := millrace.Open("cpu:cache=off,compile=off," + more)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
})

// play makes the calls on some ranks, and returns what rank 0 read.
func play(t *testing.T, seed uint64, ranks int, calls []call) (end Result, err error) {
	dir := t.TempDir()
	err = local.Run(t.Context(), ranks, options(), func(ctx context.Context, w *dist.World) error {
		devices, err := places()
		if err != nil {
			return err
		}
		r := rand.New(rand.NewPCG(seed, uint64(16*ranks+w.Rank())))
		x := &player{w: w, at: devices[r.IntN(len(devices))].NewStream(), path: filepath.Join(dir, "part")}
		x.how = How{Record: r.IntN(3) > 0, At: x.at, Buckets: 3}
		for _, f := range sequenceModels {
			p := &part{f(x.at), map[string]*optim.Step{}}
			x.parts = append(x.parts, p)
			x.step(p, "parts")  // a file has the sums of a step that accumulates,
			p.Optimizer.State() // and the state of all weights, which are not frozen yet
		}
		for i, c := range calls {
			if err := x.do(ctx, c); err != nil {
				return fmt.Errorf("call %d, %v: %w", i, c, err)
			}
		}
		got := Result{Lines: x.told}
		for i, p := range x.parts {
			var losses []*millrace.Tensor
			if i == 0 {
				losses = x.loss
			}
			last, err := p.result(losses)
			if err != nil {
				return err
			}
			got.Lines = append(got.Lines, last.Lines...)
			for _, s := range p.steps {
				s.Close()
			}
		}
		if w.Rank() == 0 {
			end = got
		}
		return nil
	})
	return end, err
}

// TestCallSequences: any calls of steps, optimisers and the World, in any order, give the bits of one
// rank for 2 and 4 ranks, whose devices and recordings differ. MILLRACE_LONG tries many more.
func TestCallSequences(t *testing.T) {
	programs, length := 5, 16
	switch {
	case long:
		programs, length = 150, 40
	case testing.Short():
		programs = 2
	}
	for seed := range uint64(programs) {
		calls := randomCalls(rand.New(rand.NewPCG(seed, 5)), length)
		if wrong := played(t, seed, calls); wrong != nil {
			t.Fatalf("seed %d, %v: %v", seed, shorter(t, seed, calls), wrong)
		}
	}
}

// played compares numbers of ranks.
func played(t *testing.T, seed uint64, calls []call) error {
	want, err := play(t, seed, 1, calls)
	for _, ranks := range []int{2, 4} {
		var got Result
		if err == nil {
			got, err = play(t, seed, ranks, calls)
		}
		if err == nil {
			err = got.Differs(want)
		}
		if err != nil {
			return fmt.Errorf("%d ranks: %w", ranks, err)
		}
	}
	return nil
}

// shorter drops calls that the failure does not need.
func shorter(t *testing.T, seed uint64, calls []call) string {
	for i, tries := len(calls)-1, 0; i >= 0 && tries < 60; i, tries = i-1, tries+1 {
		if less := slices.Delete(slices.Clone(calls), i, i+1); played(t, seed, less) != nil {
			calls = less
		}
	}
	var list []string
	for _, c := range calls {
		list = append(list, c.String())
	}
	return strings.Join(list, ", ")
}
