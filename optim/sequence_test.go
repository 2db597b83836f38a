package optim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// call is one call of a sequence: its kind, the model, and a number.
type call struct {
	what  string
	model int
	n     int
}

func (c call) String() string { return fmt.Sprintf("%s %d %d", c.what, c.model, c.n) }

// sequence parses calls from text, as String prints them, with commas in between.
func sequence(text string) (calls []call) {
	for _, s := range strings.Split(text, ",") {
		var c call
		if _, err := fmt.Sscanf(s, "%s %d %d", &c.what, &c.model, &c.n); err != nil {
			panic(fmt.Sprintf("%q: %v", s, err))
		}
		calls = append(calls, c)
	}
	return calls
}

// callKinds are the kinds of calls and their frequencies.
var callKinds = []struct {
	what   string
	weight int
}{
	{"run", 24}, {"second", 8}, {"parts", 8}, {"update", 4}, {"updates", 6}, {"state", 4}, {"params", 1}, {"save", 6}, {"load", 6},
	{"rate", 4}, {"freeze", 3}, {"thaw", 4}, {"close", 2}, {"unbind", 2}, {"set", 3}, {"hold", 2}, {"bad", 2}, {"eval", 2}, {"saving", 3}, {"scale", 1},
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
				calls = append(calls, call{k.what, min(r.IntN(4), 1), r.IntN(8)})
				break
			}
		}
	}
	return calls
}

// subject is two models with their optimisers, and a log of all calls.
type subject struct {
	t    *testing.T
	how  string // eager, recorded or bound
	dir  string
	dev  *millrace.Device
	at   [2]*training
	told []string // results of calls
	bad  []string // errors that need no comparison
}

func (x *subject) fail(format string, args ...any) {
	x.bad = append(x.bad, x.how+": "+fmt.Sprintf(format, args...))
}

// bytes returns the elements of a tensor, or its error.
func bytes(t *millrace.Tensor) string {
	var b buffer
	if _, err := t.WriteTo(&b); err != nil {
		return "error"
	}
	return string(b)
}

// training is a model and its optimiser.
type training struct {
	*model
	o      *Optimizer
	random *nn.Random
	factor float64 // factor of the rate
	steps  map[string]*Step
	bound  map[string]*BoundStep
	held   []*millrace.Tensor // second handles of weights, and their values
	was    []string
}

func newSubject(t *testing.T, spec, how string, make func([]nn.Named, ...Option) *Optimizer, opts []Option) *subject {
	x := &subject{t: t, how: how, dir: t.TempDir(), dev: open(t, spec)}
	for i := range x.at {
		a := &training{model: newModel(x.dev, millrace.Float32), factor: 1, steps: map[string]*Step{}, bound: map[string]*BoundStep{}}
		a.drop = true
		a.random = nn.NewRandom(uint64(7+i), nn.On(x.dev))
		rate := Warmup(4, 0.1, Cosine(0.05, 30))
		a.o = make(a.params(), append([]Option{Schedule(func(step int) float64 { return a.factor * rate(step) })}, opts...)...)
		x.at[i] = a
	}
	return x
}

func (a *training) parts() []any { return []any{a.model, a.o, a.random} }

// second is a loss of other parameters than the model's.
func (a *training) second(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
	x := in[0].MatMul(a.A.In(c)).Add(a.B.In(c))
	return x.Square().Mean().Add(a.Unused.In(c).Exp().Sum().MulScalar(0.01))
}

// step returns the step of a kind, which it makes when needed.
func (x *subject) step(a *training, kind string) *Step {
	if s := a.steps[kind]; s != nil {
		return s
	}
	var how []StepOption
	if x.how != "eager" {
		how = append(how, Record())
	}
	var s *Step
	switch kind {
	case "run":
		s = a.o.Step(a.loss, append(how, Random(a.random))...)
	case "second":
		s = a.o.Step(a.second, how...)
	case "parts":
		s = a.o.Step(a.loss, append(how, Random(a.random), Accumulate(2))...)
	}
	a.steps[kind] = s
	return s
}

// run runs a step once; there are several sizes of inputs.
func (x *subject) run(a *training, kind string, n int) (float32, error) {
	rows := 6
	if n%4 == 3 {
		rows = 4
	}
	in := batch(x.dev, n, rows)
	s := x.step(a, kind)
	if x.how != "bound" || kind == "parts" || a.o.scaling != nil {
		loss, err := s.Run(context.Background(), in...)
		if err != nil {
			return 0, err
		}
		return millrace.Item[float32](loss)
	}
	key := fmt.Sprint(kind, rows)
	for try := 0; ; try++ {
		b := a.bound[key]
		if b == nil {
			var err error
			if b, err = s.Bind(batch(x.dev, 99, rows)...); err != nil {
				return 0, err
			}
			a.bound[key] = b
		}
		for i, t := range in {
			v, err := millrace.Values[float32](t)
			if err != nil {
				return 0, err
			}
			if err := SetInput(b, i, v...); err != nil {
				return 0, err
			}
		}
		err := b.Run()
		if errors.Is(err, millrace.ErrUnsupported) && try == 0 { // a weight was frozen or unfrozen
			if err := b.Close(); err != nil {
				return 0, err
			}
			delete(a.bound, key)
			continue
		}
		if err != nil {
			return 0, err
		}
		return millrace.Item[float32](b.Loss())
	}
}

// do makes a call and logs its result.
func (x *subject) do(c call) {
	a := x.at[c.model]
	var err error
	tell := func(v any) { x.told = append(x.told, fmt.Sprintf("%v: %v", c, v)) }
	file := filepath.Join(x.dir, fmt.Sprint(c.n%2))
	weight := []*nn.Param{a.A, a.B, a.C, a.Unused}[c.n%4]
	switch c.what {
	case "run", "second", "parts":
		var loss float32
		if loss, err = x.run(a, c.what, c.n); err == nil {
			tell(math.Float32bits(loss))
		}
	case "update":
		grads := make([]*millrace.Tensor, len(a.o.Params()))
		for i, p := range a.o.Params() {
			if c.n>>i&1 == 0 && !p.Frozen() {
				grads[i] = millrace.NormalOn(x.dev, millrace.Float32, uint64(c.n*10+i), p.Tensor().Shape()...)
			}
		}
		err = a.o.Update(grads)
	case "updates":
		var n int
		n, err = a.o.Updates()
		tell(n)
	case "state":
		tell(bytesOf(a.o.State()))
	case "params":
		tell(len(a.o.Params()))
	case "scale":
		if s := a.o.Scale(); s != nil {
			tell(fmt.Sprintf("%x", bytes(s)))
		}
	case "save":
		err = nn.Save(file, a.parts()...)
	case "load":
		if _, missing := os.Stat(file); missing != nil {
			return
		}
		err = nn.Load(file, a.parts()...)
	case "saving":
		err = x.saving(a, file, c.n)
	case "rate":
		a.factor = []float64{1, 0.5, 0, 2}[c.n%4]
	case "freeze", "thaw":
		weight.Freeze(c.what == "freeze")
	case "close":
		kind := []string{"run", "second", "parts"}[c.n%3]
		if s := a.steps[kind]; s != nil {
			s.Close()
			_, err := s.Run(context.Background())
			tell(errors.Is(err, millrace.ErrClosed))
			delete(a.steps, kind)
		}
	case "unbind":
		for key, b := range a.bound {
			err = errors.Join(err, b.Close())
			delete(a.bound, key)
		}
	case "set":
		t := millrace.NormalOn(x.dev, millrace.Float32, uint64(50+c.n), weight.Tensor().Shape()...)
		weight.Tensor().Set(t)
		t.Release()
	case "hold":
		h := weight.Tensor().To(x.dev)
		a.held, a.was = append(a.held, h), append(a.was, bytes(h))
	case "bad":
		in := batch(x.dev, c.n, 6)
		in[0] = in[0].Add(in[1])
		if _, err := x.step(a, []string{"run", "second", "parts"}[c.n%3]).Run(context.Background(), in...); err == nil {
			x.fail("%v: an input that carries an error is none", c)
		}
	case "eval":
		var loss float32
		if loss, err = millrace.Item[float32](a.second(nn.Eval(), batch(x.dev, c.n, 6))); err == nil {
			tell(math.Float32bits(loss))
		}
	default:
		x.fail("no call %q", c.what)
	}
	if err != nil {
		tell("error")
		if !errors.Is(err, errNoneUsed) && !errors.Is(err, errAllFrozen) && !errors.Is(err, nn.ErrMismatch) {
			x.fail("%v: %v", c, err)
		}
	}
}

// saving runs steps while another goroutine saves.
func (x *subject) saving(a *training, file string, n int) error {
	done := make(chan error)
	go func() { done <- nn.Save(file, a.parts()...) }()
	var err error
	for i := range 3 {
		if _, e := x.run(a, "run", n+i); e != nil {
			err = e
		}
	}
	if e := <-done; e != nil {
		return e
	}
	_ = os.Remove(file) // the file may be of any of these steps
	return err
}

// end returns the log and the complete state.
func (x *subject) end() []string {
	told := x.told
	for i, a := range x.at {
		for _, s := range slices.Concat(bytesOf(a.params()), bytesOf(a.o.State()), bytesOf(a.random.State())) {
			told = append(told, fmt.Sprintf("model %d: %s", i, s))
		}
		for k, h := range a.held {
			if bytes(h) != a.was[k] {
				x.fail("model %d: a handle of an old weight has another value", i)
			}
		}
		for _, s := range a.steps {
			s.Close()
		}
		for _, b := range a.bound {
			if err := b.Close(); err != nil {
				x.fail("%v", err)
			}
		}
	}
	return told
}

// program is a sequence of calls with the configuration of its optimisers.
type program struct {
	rule, with, spec string
	calls            []call
}

// wrong runs the calls in the three ways and reports differences and errors.
func (p program) wrong(t *testing.T) string {
	var want []string
	for _, how := range []string{"eager", "recorded", "bound"} {
		x := newSubject(t, p.spec, how, optimisers[p.rule], sequenceOptions[p.with])
		for _, c := range p.calls {
			x.do(c)
		}
		got := x.end()
		x.dev.Close()
		if len(x.bad) > 0 {
			return strings.Join(x.bad, "\n")
		}
		if want == nil {
			want = got
		}
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				return fmt.Sprintf("%s: %.200s\neager: %.200s", how, got[i], want[i])
			}
		}
		if len(got) != len(want) {
			return fmt.Sprintf("%s: %d things told, eager %d", how, len(got), len(want))
		}
	}
	return ""
}

// check runs the calls, and finds the shortest failing sequence after a failure.
func (p program) check(t *testing.T) {
	t.Helper()
	wrong := p.wrong(t)
	if wrong == "" {
		return
	}
	for tries := 0; tries < 200; {
		fewer := false
		for i := len(p.calls) - 1; i >= 0 && tries < 200; i-- {
			less := p
			less.calls = slices.Delete(slices.Clone(p.calls), i, i+1)
			tries++
			if w := less.wrong(t); w != "" {
				p, wrong, fewer = less, w, true
			}
		}
		if !fewer {
			break
		}
	}
	var texts []string
	for _, c := range p.calls {
		texts = append(texts, c.String())
	}
	t.Errorf("%s, %s, %s, %q:\n%s", p.rule, p.with, p.spec, strings.Join(texts, ", "), wrong)
}

// sequenceOptions are the options of optimisers of sequences.
var sequenceOptions = map[string][]Option{
	"plain": nil, "clip": {ClipNorm(0.5)}, "scale": {LossScale(Scaling{Initial: 1 << 10, Interval: 3})},
	"group": {Group(func(name string) bool { return name == "b" || name == "c" }, WeightDecay(0.1), LR(0.02))},
}

// TestKnownSequences runs sequences that failed once.
func TestKnownSequences(t *testing.T) {
	for name, p := range map[string]program{
		"a save takes the schedule back":      {"SGD", "plain", "cpu:cache=off,compile=off", sequence("run 0 0, save 0 0, run 0 1, updates 0 0, run 0 2")},
		"a load does not move it":             {"Adam", "group", "cpu:cache=off,compile=off", sequence("save 1 3, run 1 2, load 1 1, run 1 6")},
		"a step is bound beside a save":       {"LAMB", "clip", "cpu:cache=off,compile=off,queue=3", sequence("run 0 0, close 0 0, unbind 0 0, saving 0 3, saving 0 2")},
		"parts and a step between":            {"AdamW", "plain", "cpu:cache=off,compile=off", sequence("parts 0 0, second 0 1, parts 0 2, parts 0 1, update 0 3, run 0 4, parts 0 5")},
		"parts that are saved and go on":      {"Lion", "plain", "cpu:cache=off,compile=off", sequence("parts 0 0, save 0 0, run 0 1, second 0 2, load 0 0, parts 0 3, run 0 4")},
		"a weight that froze, and a schedule": {"RMSProp", "clip", "cpu:cache=off,compile=off", sequence("run 0 0, freeze 0 2, state 0 0, run 0 1, thaw 0 2, updates 0 0, run 0 2, second 0 3")},
		"into another optimiser":              {"Adagrad", "scale", "cpu:cache=off,compile=off", sequence("run 0 0, run 0 1, save 0 0, run 1 3, load 1 0, run 1 2, run 0 2, updates 1 0")},
	} {
		t.Run(name, func(t *testing.T) { p.check(t) })
	}
}

// TestCallSequences: any calls between the runs of a step, in any order, leave eager, recorded and
// bound steps with the same bits. MILLRACE_LONG makes it try many more.
func TestCallSequences(t *testing.T) {
	programs, length := 2, 16
	if testing.Short() {
		programs = 1
	}
	if os.Getenv("MILLRACE_LONG") != "" {
		programs, length = 60, 40
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range sequenceOptions {
			if !yield(name) {
				return
			}
		}
	})
	rules := slices.Sorted(func(yield func(string) bool) {
		for name := range optimisers {
			if !yield(name) {
				return
			}
		}
	})
	for k, name := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range programs {
				seed := uint64(k*1000 + i)
				r := rand.New(rand.NewPCG(seed, 32))
				with := names[r.IntN(len(names))]
				spec := []string{"cpu:cache=off,compile=off", "cpu:cache=off,compile=off,queue=3"}[r.IntN(2)]
				program{name, with, spec, randomCalls(r, length)}.check(t)
				if t.Failed() {
					return
				}
			}
		})
	}
}
