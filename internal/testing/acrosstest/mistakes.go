package acrosstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/disttest"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// rank is one rank's side of a mistake: what it trains. The last rank's is changed by the mistake.
type rank struct {
	w      *dist.World
	at     millrace.Place
	last   bool // this rank makes the mistake
	ranks  optim.Ranks
	opts   []optim.StepOption
	rule   func([]nn.Named, ...optim.Option) *optim.Optimizer
	rules  []optim.Option
	over   bool             // a schedule panics
	first  optim.StepOption // before Across
	dtype  millrace.DType   // of the parameters
	width  int              // of the hidden layer
	extra  bool             // the loss uses a parameter more
	turned bool             // parameters are given to the optimiser in the other order
	loss   func(*millrace.Tensor) *millrace.Tensor
	inputs func(x, y *millrace.Tensor) []*millrace.Tensor
	ctx    context.Context

	step   *optim.Step
	binds  bool // runs are those of a bound step
	bound  *optim.BoundStep
	params []nn.Named
}

// net is the model of mistakes.
type net struct {
	First, Second *nn.Linear
	Extra         *nn.Param
	Count         *nn.Param
}

// open makes the step.
func (r *rank) open() {
	with, random := at(r.at, 5)
	with = append(with, nn.DType(r.dtype))
	m := &net{nn.NewLinear(features, r.width, with...), nn.NewLinear(r.width, classes, with...),
		nn.NewParam(millrace.OnesOn(r.at, millrace.Float32, 2)), nn.NewBuffer(millrace.FromSliceOn(r.at, []int32{5}))}
	r.params = nn.Params(m)
	order := slices.Clone(r.params)
	if r.turned {
		slices.Reverse(order)
	}
	o := r.rule(order, append([]optim.Option{optim.LR(0.1)}, r.rules...)...)
	opts := append([]optim.StepOption{r.first, optim.Across(r.w, r.ranks), optim.Random(random)}, r.opts...)
	r.step = o.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		x := nn.NewDropout(0.1).Forward(c, m.First.Forward(c, in[0].Cast(r.dtype)).Tanh())
		m.Count.Update(c, m.Count.In(c).AddScalar(1))
		l := nn.MSE(m.Second.Forward(c, x).Cast(in[1].DType()), in[1])
		if r.extra {
			l = l.Add(m.Extra.In(c).Sum())
		}
		if r.loss != nil {
			l = r.loss(l)
		}
		return l
	}, opts...)
}

// run runs the step once, and waits for its loss.
func (r *rank) run() error {
	x := millrace.FromSliceOn(r.at, Numbers(9, uint64(r.w.Rank()), 4*features), 4, features)
	y := millrace.FromSliceOn(r.at, Numbers(8, uint64(r.w.Rank()), 4*classes), 4, classes)
	in := []*millrace.Tensor{x, y}
	if r.inputs != nil {
		in = r.inputs(x, y)
	}
	if r.binds {
		return r.runBound(in)
	}
	loss, err := r.step.Run(r.ctx, in...)
	if err != nil {
		return err
	}
	defer loss.Release()
	return loss.Eval()
}

// runBound runs the bound step, and makes it before.
func (r *rank) runBound(in []*millrace.Tensor) (err error) {
	if r.bound == nil {
		if r.bound, err = r.step.Bind(in...); err != nil {
			r.bound = nil
			return err
		}
	}
	if err := r.bound.Run(); err != nil {
		return err
	}
	return r.bound.Loss().Eval()
}

// runs runs the step n times, until one fails.
func (r *rank) runs(n int) error {
	for range n {
		if err := r.run(); err != nil {
			return err
		}
	}
	return nil
}

// mistake is something that the last rank alone does.
type mistake struct {
	name string
	is   func(error) bool
	// says is what the errors of all ranks say; LAST stands for the last rank's number. The own error
	// of a rank that failed need not say the first text, which is that number.
	says  []string
	good  bool                // a step succeeds before
	forms []form              // of the step; nil: eager and recorded
	make  func(r *rank)       // changes the last rank's step when it is made
	later func(r *rank)       // changes it after the good step
	every func(r *rank)       // changes the step of all ranks
	odd   func(r *rank) error // what the last rank does in place of a run
}

// form is how a step runs.
type form string

const (
	eager    form = ""
	recorded form = ", recorded"
	bound    form = ", bound"
)

func isMismatch(err error) bool { return errors.Is(err, dist.ErrMismatch) }

// isFailed is the error of a rank that failed.
func isFailed(err error) bool {
	e, ok := errors.AsType[*dist.RankError](err)
	return ok && e.State == dist.Failed
}

// list is all mistakes.
func list() []mistake {
	errOwn := func(l *millrace.Tensor) *millrace.Tensor { return l.Reshape(77) }
	far := func(l *millrace.Tensor) *millrace.Tensor { // an index that is too large when it runs
		at := l.Stream()
		return l.Add(millrace.FromSliceOn(at, []float32{1, 2}).Take(millrace.FromSliceOn(at, []int32{5}), 0).Sum())
	}
	return []mistake{
		{name: "other shapes", is: isMismatch, says: []string{"first.weight", "[8 6]", "[9 6]", "rank LAST has"},
			make: func(r *rank) { r.width = 9 }},
		{name: "other dtypes", is: isMismatch, says: []string{"first.weight", "float32", "float64", "rank LAST has"},
			make: func(r *rank) { r.dtype = millrace.Float64 }},
		{name: "another order of parameters", is: isMismatch, says: []string{"rank LAST"},
			make: func(r *rank) { r.turned = true }},
		{name: "one run too many", is: isMismatch, says: []string{"barrier", "rank LAST"}, good: true,
			odd: func(r *rank) error { return r.w.Barrier(r.ctx) }},
		{name: "a parameter that one rank uses", is: isMismatch, says: []string{"extra", "rank LAST"},
			make: func(r *rank) { r.extra = true }},
		{name: "a parameter that one rank uses later", is: isMismatch, says: []string{"extra", "rank LAST"}, good: true, forms: []form{eager},
			later: func(r *rank) { r.extra = true }},
		{name: "a parameter that one rank froze", is: isMismatch, says: []string{"first.bias", "rank LAST"}, good: true,
			later: func(r *rank) { r.params[1].Freeze(true) }},
		{name: "the function's error", is: isFailed, says: []string{"rank LAST", "reshape"},
			make: func(r *rank) { r.loss = errOwn }},
		{name: "an error while it runs", is: isFailed, says: []string{"rank LAST", "index"},
			forms: []form{eager, recorded, bound}, make: func(r *rank) { r.loss = far }},
		{name: "an input's error", is: isFailed, says: []string{"rank LAST", "add"}, good: true,
			later: func(r *rank) {
				r.inputs = func(x, y *millrace.Tensor) []*millrace.Tensor { return []*millrace.Tensor{x.Add(y), y} }
			}},
		{name: "no input", is: isFailed, says: []string{"rank LAST"}, good: true,
			later: func(r *rank) {
				r.inputs = func(x, y *millrace.Tensor) []*millrace.Tensor { return nil }
			}},
		{name: "a nil input", is: isFailed, says: []string{"rank LAST"},
			make: func(r *rank) {
				r.inputs = func(x, y *millrace.Tensor) []*millrace.Tensor { return []*millrace.Tensor{nil, y} }
			}},
		{name: "an input of a wrong dtype", is: isFailed, says: []string{"rank LAST"}, good: true,
			later: func(r *rank) {
				r.inputs = func(x, y *millrace.Tensor) []*millrace.Tensor {
					return []*millrace.Tensor{x, y.Cast(millrace.Int32)}
				}
			}},
		{name: "another number of rows", is: isFailed, says: []string{"rank LAST", "input 1", "3 rows"}, good: true,
			later: func(r *rank) {
				r.inputs = func(x, y *millrace.Tensor) []*millrace.Tensor {
					return []*millrace.Tensor{x, y.Slice(millrace.R(0, 3))}
				}
			}},
		{name: "a panic", is: isFailed, says: []string{"rank LAST", "panicked"}, good: true, forms: []form{eager},
			odd: func(r *rank) (err error) {
				defer func() { err = fmt.Errorf("the function panicked: %v", recover()) }()
				r.loss = func(*millrace.Tensor) *millrace.Tensor { panic("over") }
				return r.run()
			}},
		{name: "a panic of a schedule", is: isFailed, says: []string{"rank LAST", "panicked"}, good: true, forms: []form{recorded, bound},
			make: func(r *rank) {
				r.rules = append(r.rules, optim.Schedule(func(int) float64 {
					if r.over {
						panic("over")
					}
					return 0.1
				}))
			},
			odd: func(r *rank) (err error) {
				defer func() { err = fmt.Errorf("the schedule panicked: %v", recover()) }()
				r.over = true
				return r.run()
			}},
		{name: "a World that failed", is: isFailed, says: []string{"rank LAST", "lost power"}, good: true, forms: []form{recorded, bound},
			odd: func(r *rank) error {
				r.w.Fail(errors.New("lost power"))
				return r.run()
			}},
		{name: "a closed bound step", is: isFailed, says: []string{"rank LAST", "closed"}, good: true, forms: []form{bound},
			later: func(r *rank) { r.bound.Close() }},
		{name: "a parameter that one rank froze after Bind", is: isFailed, says: []string{"rank LAST", "first.bias", "after Bind"}, good: true, forms: []form{bound},
			later: func(r *rank) { r.params[1].Freeze(true) }},
		{name: "an error of an input to bind", is: isFailed, says: []string{"rank LAST", "add"}, forms: []form{bound},
			make: func(r *rank) {
				r.inputs = func(x, y *millrace.Tensor) []*millrace.Tensor { return []*millrace.Tensor{x.Add(y), y} }
			}},
		{name: "a context that ended", is: isFailed, says: []string{"rank LAST", context.Canceled.Error()}, good: true,
			later: func(r *rank) {
				ctx, cancel := context.WithCancel(r.ctx)
				cancel()
				r.ctx = ctx
			}},
		{name: "a closed step", is: isFailed, says: []string{"rank LAST", "closed"}, good: true,
			later: func(r *rank) { r.step.Close() }},
		{name: "a bad option", is: isFailed, says: []string{"rank LAST", "leaves"},
			make: func(r *rank) { r.ranks.Leaves = r.w.Size() + 1 }},
		{name: "a bad bucket", is: isFailed, says: []string{"rank LAST", "bucket"}, forms: []form{eager},
			make: func(r *rank) { r.ranks.Bucket = -1 }},
		{name: "a bad wire", is: isFailed, says: []string{"rank LAST", "cannot be sent in float16"}, forms: []form{eager},
			make: func(r *rank) { r.ranks.Wire = millrace.Float16 }},
		{name: "a bad option before Across", is: isFailed, says: []string{"rank LAST", "Accumulate"}, forms: []form{eager},
			make: func(r *rank) { r.first = optim.Accumulate(0) }},
		{name: "a bad option of the optimiser", is: isFailed, says: []string{"rank LAST", "ClipNorm"}, forms: []form{eager},
			make: func(r *rank) { r.rules = append(r.rules, optim.ClipNorm(-1)) }},
		{name: "a rule that cannot be divided", is: isFailed, says: []string{"rank LAST", "LAMB"}, forms: []form{eager},
			every: func(r *rank) { r.ranks.Sharded = true },
			make:  func(r *rank) { r.rule = optim.LAMB }},
		{name: "a bound step with Sharded", is: isFailed, says: []string{"rank LAST", "Sharded cannot be bound"}, forms: []form{bound},
			make: func(r *rank) { r.ranks.Sharded = true }},
		{name: "Sharded on one rank", is: isMismatch, says: []string{"Sharded", "rank LAST"},
			make: func(r *rank) { r.ranks.Sharded = true }},
		{name: "another wire", is: isMismatch, says: []string{"Wire", "rank LAST"},
			make: func(r *rank) { r.ranks.Wire = millrace.BFloat16 }},
		{name: "other leaves", is: isMismatch, says: []string{"eaves", "rank LAST"},
			make: func(r *rank) { r.ranks.Leaves = 4 * r.w.Size() }},
		{name: "another bucket", is: isMismatch, says: []string{"rank LAST"},
			make: func(r *rank) { r.ranks.Bucket = 16 }},
		{name: "another accumulation", is: isMismatch, says: []string{"rank LAST"},
			make: func(r *rank) { r.opts = append(r.opts, optim.Accumulate(2)) }},
		{name: "another dtype to compute in", is: isMismatch, says: []string{"rank LAST"},
			make: func(r *rank) { r.opts = append(r.opts, optim.Compute(millrace.BFloat16)) }},
		{name: "another clipping", is: isMismatch, says: []string{"rank LAST"},
			make: func(r *rank) { r.rules = append(r.rules, optim.ClipNorm(0.1)) }},
		{name: "another rule", is: isMismatch, says: []string{"rank LAST"},
			make: func(r *rank) { r.rules = append(r.rules, optim.Momentum(0.9)) }},
		{name: "a loss scale", is: isMismatch, says: []string{"rank LAST"},
			make: func(r *rank) { r.rules = append(r.rules, optim.LossScale(optim.Scaling{})) }},
		{name: "another learning rate", is: isMismatch, says: []string{"rank LAST has"},
			every: func(r *rank) { r.ranks.SameEvery = 1 },
			make:  func(r *rank) { r.rules = append(r.rules, optim.LR(0.3)) }},
		{name: "another value", is: isMismatch, says: []string{"second.bias has other bits", "rank LAST has"}, good: true,
			every: func(r *rank) { r.ranks.SameEvery = 1 },
			later: func(r *rank) {
				next := millrace.FromSliceOn(r.at, []float32{1, 2, 3})
				r.params[3].Tensor().Set(next)
				next.Release()
			}},
		{name: "another buffer", is: isMismatch, says: []string{"rank LAST has"}, good: true,
			every: func(r *rank) { r.ranks.SameEvery = 1 },
			later: func(r *rank) {
				next := millrace.FromSliceOn(r.at, []int32{9})
				r.params[5].Tensor().Set(next)
				next.Release()
			}},
		{name: "not finite on one rank", is: isFailed, says: []string{"rank LAST", "finite"},
			every: func(r *rank) { r.opts = append(r.opts, optim.CheckFinite()) },
			make: func(r *rank) {
				r.loss = func(l *millrace.Tensor) *millrace.Tensor { return l.DivScalar(0) }
			}},
	}
}

// Mistakes lists cases that end the World: every rank sees an error that says whose mistake it is, and
// its stream can be used afterwards. A rank that waits until the deadline sees an error of another
// kind.
func Mistakes() (all []disttest.Case) {
	for _, m := range list() {
		if m.forms == nil {
			m.forms = []form{eager, recorded}
		}
		for _, f := range m.forms {
			all = append(all, disttest.Case{Name: "across, " + m.name + string(f), Ranks: []int{2, 4}, Fails: true, Options: options(), Run: func(ctx context.Context, w *dist.World) error {
				return m.run(ctx, w, f)
			}})
		}
	}
	return all
}

func (m mistake) run(ctx context.Context, w *dist.World, f form) error {
	p, err := Place(1)
	if f == bound {
		p, err = placeOf(w.Rank())
	}
	if err != nil {
		return err
	}
	r := &rank{w: w, at: p, last: w.Rank() == w.Size()-1, ranks: optim.Ranks{Leaves: 2 * w.Size()}, width: 8, dtype: millrace.Float32, ctx: ctx,
		rule: optim.SGD, first: optim.Accumulate(1), binds: f == bound}
	if f == recorded {
		r.opts = append(r.opts, optim.Record())
	}
	if m.every != nil {
		m.every(r)
	}
	if m.make != nil && r.last {
		m.make(r)
	}
	r.open()
	if m.good {
		if err := r.runs(2); err != nil {
			return err
		}
	}
	if err = w.Barrier(ctx); err == nil { // otherwise the last rank's mistake is known already
		err = m.err(r)
	}
	return m.check(r, err)
}

// err makes the mistake, and returns this rank's error.
func (m mistake) err(r *rank) error {
	if r.last && m.later != nil {
		m.later(r)
	}
	if r.last && m.odd != nil {
		return m.odd(r)
	}
	return r.runs(3) // a comparison of parameters finds the mistake in a later run
}

// check checks the error, and what goes on after it.
func (m mistake) check(r *rank, err error) error {
	if err == nil {
		return errors.New("no error")
	}
	says := m.says
	if is := m.is; is(dist.ErrMismatch) || !r.last {
		if !is(err) {
			return fmt.Errorf("an error of another kind: %w", err)
		}
	} else { // this rank's own error, which need not say whose it is
		says = says[1:]
		if !is(r.w.Err()) {
			return fmt.Errorf("after %w the World has another error: %w", err, r.w.Err())
		}
	}
	for _, text := range says {
		if text = strings.ReplaceAll(text, "LAST", fmt.Sprint(r.w.Size()-1)); !strings.Contains(err.Error(), text) {
			return fmt.Errorf("%q does not say %q", err, text)
		}
	}
	if r.run() == nil {
		return fmt.Errorf("a run after %w has no error", err)
	}
	one := millrace.OnesOn(r.at, millrace.Float32)
	if v, err := millrace.Item[float32](one.Add(one)); err != nil || v != 2 {
		return fmt.Errorf("the stream is not usable afterwards: %v, %w", v, err)
	}
	return nil
}
