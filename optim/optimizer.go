package optim

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/handle"
	"github.com/millrace-go/millrace/internal/hold"
	"github.com/millrace-go/millrace/nn"
)

// Optimizer changes parameters by their gradients. What it keeps for that, such as
// moments, lies beside the parameters as tensors, and is saved and loaded with them: see
// [Optimizer.State]. Of a bad option every use returns the error. Its methods are safe for
// concurrent use, one update after another.
type Optimizer struct {
	rule      *rule
	name      string
	groups    []*group
	params    []*param // weights in the order given
	clipNorm  float64
	clipValue float64
	scaling   *scaling // nil: losses are not scaled
	err       error    // of its making

	turn     turn
	number   uint64    // of optimisers, as they were made
	counts   *nn.Param // how many updates each parameter has had, by slot; nil: no rule asks
	progress progress
	ends     map[string]*millrace.Recording // updates by gradients, by what there are
}

// group is parameters that have the same settings.
type group struct {
	rule    *rule
	match   func(name string) bool
	options []Option
	settings
	params []*param // their slots are one after another
	lr     known    // the last learning rate
}

// known is a number and the tensor that was made of it.
type known struct {
	value float64
	t     *millrace.Tensor
}

// param is a weight and what is kept for it.
type param struct {
	nn.Named
	index int // among the parameters
	slot  int // in counts
	group *group
	state []*nn.Param // by name as in names; nil before the first update or State
	names []string
	sum   *nn.Param // gradients added up so far: of steps that accumulate, else nil
}

// SGD is gradient descent: p - lr g, where g is the gradient or, with [Momentum], what
// adds up of gradients. Options: LR (0.001), Momentum, [Dampening], [Nesterov],
// [WeightDecay], and those that all optimisers have.
func SGD(params []nn.Named, opts ...Option) *Optimizer { return newOptimizer(&rules.sgd, params, opts) }

// Adam is Kingma and Ba's (2014): p - lr m/(√v + eps), with moving averages m and v of
// gradients and of their squares, both without the bias of their beginning at 0. Options:
// LR (0.001), [Betas] (0.9, 0.999), [Eps] (1e-8), [WeightDecay], [AMSGrad].
func Adam(params []nn.Named, opts ...Option) *Optimizer {
	return newOptimizer(&rules.adam, params, opts)
}

// AdamW is [Adam] with a decay of weights of its own (Loshchilov and Hutter, 2017): they
// become smaller by the rate times [WeightDecay] (0.01).
func AdamW(params []nn.Named, opts ...Option) *Optimizer {
	return newOptimizer(&rules.adamW, params, opts)
}

// RMSProp divides gradients by the root of a moving average of their squares. Options:
// LR (0.01), [Alpha] (0.99), [Eps] (1e-8), [WeightDecay], [Momentum], [Centered].
func RMSProp(params []nn.Named, opts ...Option) *Optimizer {
	return newOptimizer(&rules.rmsProp, params, opts)
}

// Adagrad divides gradients by the root of the sum of all their squares (Duchi, Hazan and
// Singer, 2011). Options: LR (0.01), [RateDecay], [Initial], [Eps] (1e-10), [WeightDecay].
func Adagrad(params []nn.Named, opts ...Option) *Optimizer {
	return newOptimizer(&rules.adagrad, params, opts)
}

// Lion goes the same way for every element, in the direction of the sign of a moving
// average (Chen and others, 2023). Options: LR (0.0001), [Betas] (0.9, 0.99),
// [WeightDecay], by which weights become smaller as with [AdamW].
func Lion(params []nn.Named, opts ...Option) *Optimizer {
	return newOptimizer(&rules.lion, params, opts)
}

// LAMB is [Adam] with steps as long as the parameter, for large batches (You and others,
// 2019). Options: LR (0.001), [Betas] (0.9, 0.999), [Eps] (1e-6), [WeightDecay].
func LAMB(params []nn.Named, opts ...Option) *Optimizer {
	return newOptimizer(&rules.lamb, params, opts)
}

func newOptimizer(r *rule, params []nn.Named, opts []Option) *Optimizer {
	o := &Optimizer{rule: r, name: "optim", ends: map[string]*millrace.Recording{}}
	err := o.configure(opts)
	if err == nil {
		err = o.adopt(params)
	}
	o.err = failure(r.name, err)
	return o
}

var made atomic.Uint64 // optimisers

var errNoParams = errors.New("no parameters to learn")

// adopt sorts the parameters into groups.
func (o *Optimizer) adopt(params []nn.Named) error {
	seen := map[*nn.Param]bool{}
	for _, n := range params {
		if n.Param == nil {
			return fmt.Errorf("parameter %q is nil", n.Name)
		}
		if n.Buffer() || seen[n.Param] {
			continue
		}
		seen[n.Param] = true
		t := n.Tensor()
		if err := t.Err(); err != nil {
			return fmt.Errorf("parameter %q: %w", n.Name, err)
		}
		if !t.DType().IsFloat() {
			return fmt.Errorf("%w: parameter %q is of %v", millrace.ErrDType, n.Name, t.DType())
		}
		p := &param{Named: n, index: len(o.params)}
		for _, g := range o.groups {
			if g.match(n.Name) {
				p.group = g
				g.params = append(g.params, p)
				break
			}
		}
		p.names = o.rule.state(&p.group.settings)
		o.params = append(o.params, p)
	}
	if len(o.params) == 0 {
		return errNoParams
	}
	slot := 0
	for _, g := range o.groups {
		g.rule = o.rule
		for _, p := range g.params {
			p.slot = slot
			slot++
		}
		if len(g.params) > 0 && o.rule.counts(&g.settings) && o.counts == nil {
			o.counts = nn.NewBuffer(zeros(o.home(), millrace.Int32, len(o.params)))
		}
	}
	if o.scaling != nil {
		o.scaling.begin(o.home())
	}
	o.progress.begin(o.home(), len(o.params))
	o.number = made.Add(1)
	hold.Mark(o.progress.tensor, held{o})
	return nil
}

// home is the stream of the parameters, of the first where they are on several.
func (o *Optimizer) home() *millrace.Stream { return o.params[0].Tensor().Stream() }

// Params are the parameters that the optimiser updates: those that it was given without
// buffers and without what was there twice.
func (o *Optimizer) Params() []nn.Named {
	if o == nil {
		return nil
	}
	list := make([]nn.Named, len(o.params))
	for i, p := range o.params {
		list[i] = p.Named
	}
	return list
}

// Updates is how many updates there have been, those that a [LossScale] had skipped
// included: what schedules are asked with. It waits for no step: in a [Step]'s function it
// does not count the update at hand.
func (o *Optimizer) Updates() (int, error) {
	if err := o.check("updates"); err != nil {
		return 0, err
	}
	return o.progress.count()
}

// check finds an optimiser that is none, or whose options are bad.
func (o *Optimizer) check(op string) error {
	if o == nil || o.rule == nil {
		return failure(op, errNone)
	}
	return o.err
}

var errNone = errors.New("an Optimizer, or a step of one, that no function made")

// begin readies the optimiser for an update: what is kept for parameters is there, and
// it is known how many updates there were. The caller has the turn, as in all that follows.
func (o *Optimizer) begin() error {
	for _, p := range o.params {
		if err := p.Tensor().Err(); err != nil {
			return failure(o.rule.name, fmt.Errorf("parameter %q: %w", p.Name, err))
		}
		o.keep(p)
	}
	return o.progress.read()
}

// keep makes what is kept for a parameter, unless it is there or the parameter is frozen.
func (o *Optimizer) keep(p *param) {
	if p.state != nil || p.Frozen() || len(p.names) == 0 {
		return
	}
	t := p.Tensor()
	for range p.names {
		s := zeros(t.Stream(), computed(t.DType()), t.Shape()...)
		if v := p.group.initial; v != 0 {
			s = millrace.FullOn(t.Stream(), computed(t.DType()), v, t.Shape()...)
		}
		p.state = append(p.state, nn.NewBuffer(s))
	}
}

// rates adds the groups' learning rates for the next update, 0-d tensors, to a list.
func (o *Optimizer) rates(list []*millrace.Tensor) ([]*millrace.Tensor, error) {
	for _, g := range o.groups {
		lr, err := o.rate(g)
		if err != nil {
			return nil, err
		}
		if g.lr.t == nil || g.lr.value != lr {
			g.lr.t.Release()
			g.lr = known{lr, g.scalar(o.home(), lr)}
		}
		list = append(list, g.lr.t)
	}
	return list, nil
}

// rate is a group's learning rate for the next update.
func (o *Optimizer) rate(g *group) (float64, error) {
	var lr float64
	o.turn.ask(func() { lr = g.settings.rate(o.progress.updates) })
	if math.IsNaN(lr) || math.IsInf(lr, 0) {
		return 0, failure(o.rule.name, fmt.Errorf("a learning rate of %v at step %d", lr, o.progress.updates))
	}
	return lr, nil
}

// scalar is a number in the dtype that the group's parameters need.
func (g *group) scalar(at millrace.Place, v float64) *millrace.Tensor {
	for _, p := range g.params {
		if p.Tensor().DType() == millrace.Float64 {
			return millrace.ScalarOn(at, v)
		}
	}
	return millrace.ScalarOn(at, float32(v))
}

// computed is the dtype in which a parameter's update is computed: that of 16 bits would
// lose small steps and moments.
func computed(dt millrace.DType) millrace.DType {
	if dt == millrace.Float64 {
		return dt
	}
	return millrace.Float32
}

// zeros are zeros in memory: an op would only say that there are some, and what a
// Recording sets has to lie somewhere before.
func zeros(at millrace.Place, dt millrace.DType, shape ...int) *millrace.Tensor {
	t, err := millrace.FromReaderOn(at, nothing{}, dt, shape...)
	if err != nil {
		return handle.Fail("zeros", err, nil).(*millrace.Tensor)
	}
	return t
}

// nothing reads as zeros without end.
type nothing struct{}

func (nothing) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// failure is an error with the line of the program that called.
func failure(op string, err error) error {
	if err == nil {
		return nil
	}
	return handle.Fail(op, err, nil).(*millrace.Tensor).Err()
}
