package optim

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hold"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/nn"
)

// Optimizer updates parameters by their gradients. Its state, such as moments, is stored as tensors
// on the parameters' devices, and is saved and loaded with them: see [Optimizer.State]. After a bad
// option every method returns the error. Its methods are safe for concurrent use; updates run one
// after another.
type Optimizer struct {
	rule      *rule
	name      string
	groups    []*group
	params    []*param     // weights in the given order
	buffers   []nn.Named   // given with them
	joint     atomic.Int64 // number of steps with Across so far
	clipNorm  float64
	clipValue float64
	scaling   *scaling // nil: losses are not scaled
	err       error    // error of a bad option

	turn     turn
	number   uint64    // serial number of the optimiser
	counts   *nn.Param // number of updates of each parameter, by slot; nil: no rule needs it
	progress progress
	shard    *shard                         // nil: each rank has the whole state
	ends     map[string]*millrace.Recording // recordings of updates by given gradients, by kind
}

// group is a set of parameters with the same settings.
type group struct {
	rule    *rule
	match   func(name string) bool
	options []Option
	settings
	params []*param // their slots are consecutive
	lr     known    // the last learning rate
}

// known is a number with the tensor that was made of it.
type known struct {
	value float64
	t     *millrace.Tensor
}

// param is a weight with its state.
type param struct {
	nn.Named
	index int // in the list of parameters
	slot  int // in counts
	group *group
	state []*nn.Param // in the order of names; nil before the first update or State
	names []string
	sum   *nn.Param // sum of gradients so far, for steps that accumulate, else nil
}

// SGD is gradient descent: p - lr·g, where g is the gradient or, with [Momentum], the momentum
// buffer of gradients (PyTorch's SGD). Options: LR (0.001), Momentum, [Dampening], [Nesterov],
// [WeightDecay], and those of all optimisers. State: one tensor of the parameter's shape with
// Momentum, else none.
func SGD(params []nn.Named, opts ...Option) *Optimizer { return newOptimizer(&rules.sgd, params, opts) }

// Adam is p - lr·m/(√v + eps), with moving averages m and v of gradients and of their squares, both
// corrected for their start at 0 (Kingma and Ba, 2014; PyTorch's Adam). Options: LR (0.001),
// [Betas] (0.9, 0.999), [Eps] (1e-8), [WeightDecay], [AMSGrad]. State: two tensors of the
// parameter's shape, three with AMSGrad.
func Adam(params []nn.Named, opts ...Option) *Optimizer {
	return newOptimizer(&rules.adam, params, opts)
}

// AdamW is [Adam] with decoupled weight decay (Loshchilov and Hutter, 2017): before each update
// weights are multiplied by 1 - lr·[WeightDecay] (0.01).
func AdamW(params []nn.Named, opts ...Option) *Optimizer {
	return newOptimizer(&rules.adamW, params, opts)
}

// RMSProp is p - lr·g/(√v + eps) with a moving average v of squared gradients (PyTorch's RMSprop).
// Options: LR (0.01), [Alpha] (0.99), [Eps] (1e-8), [WeightDecay], [Momentum], [Centered]. State:
// one tensor of the parameter's shape, and one more each with Centered and Momentum.
func RMSProp(params []nn.Named, opts ...Option) *Optimizer {
	return newOptimizer(&rules.rmsProp, params, opts)
}

// Adagrad is p - lr·g/(√s + eps) with the sum s of all squared gradients (Duchi, Hazan and Singer,
// 2011; PyTorch's Adagrad). Options: LR (0.01), [RateDecay], [Initial], [Eps] (1e-10),
// [WeightDecay]. State: one tensor of the parameter's shape.
func Adagrad(params []nn.Named, opts ...Option) *Optimizer {
	return newOptimizer(&rules.adagrad, params, opts)
}

// Lion moves every element by lr in the direction of the sign of a moving average of gradients
// (Chen and others, 2023). Options: LR (0.0001), [Betas] (0.9, 0.99), [WeightDecay], which is
// decoupled as in [AdamW]. State: one tensor of the parameter's shape.
func Lion(params []nn.Named, opts ...Option) *Optimizer {
	return newOptimizer(&rules.lion, params, opts)
}

// LAMB is [Adam] with its step scaled to the parameter's norm, for large batches (You and others,
// 2019). Options: LR (0.001), [Betas] (0.9, 0.999), [Eps] (1e-6), [WeightDecay]. State: two tensors
// of the parameter's shape.
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

var made atomic.Uint64 // number of optimisers

var errNoParams = errors.New("no parameters to learn")

// adopt sorts the parameters into groups.
func (o *Optimizer) adopt(params []nn.Named) error {
	seen := map[*nn.Param]bool{}
	for _, n := range params {
		if n.Param == nil {
			return fmt.Errorf("parameter %q is nil", n.Name)
		}
		if seen[n.Param] {
			continue
		}
		seen[n.Param] = true
		if n.Buffer() {
			o.buffers = append(o.buffers, n)
			continue
		}
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

// home is the stream of the first parameter.
func (o *Optimizer) home() *millrace.Stream { return o.params[0].Tensor().Stream() }

// Params are the parameters that the optimiser updates: the given ones without buffers and
// duplicates.
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

// Updates is the number of updates so far, including those that a [LossScale] skipped: the argument
// of schedules. It does not wait for a running step. In a [Step]'s function it does not count the
// current update. It returns the error of the optimiser's arguments, or of reading a loaded number
// of updates.
func (o *Optimizer) Updates() (int, error) {
	if err := o.check("updates"); err != nil {
		return 0, err
	}
	return o.progress.count()
}

// check returns an error for a zero optimiser or one with bad options.
func (o *Optimizer) check(op string) error {
	if o == nil || o.rule == nil {
		return failure(op, errNone)
	}
	return o.err
}

var errNone = errors.New("an Optimizer or Step was made without a function of package optim")

// begin prepares an update: it creates missing state and reads a loaded number of updates. The
// caller has the turn, here and in all methods below.
func (o *Optimizer) begin() error {
	for _, p := range o.params {
		if err := p.Tensor().Err(); err != nil {
			return failure(o.rule.name, fmt.Errorf("parameter %q: %w", p.Name, err))
		}
		if !p.Frozen() {
			p.begin(o.shard)
		}
	}
	return o.progress.read()
}

// begin creates a parameter's state, unless it exists.
func (p *param) begin(d *shard) {
	if p.state != nil || len(p.names) == 0 {
		return
	}
	t := p.Tensor()
	for range p.names {
		p.state = append(p.state, d.buffer(p, func(shape ...int) *millrace.Tensor {
			if v := p.group.initial; v != 0 {
				return millrace.FullOn(t.Stream(), computed(t.DType()), v, shape...)
			}
			return zeros(t.Stream(), computed(t.DType()), shape...)
		}))
	}
}

// rates appends the groups' learning rates of the next update, 0-d tensors, to a list.
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

// rate returns a group's learning rate for the next update.
func (o *Optimizer) rate(g *group) (float64, error) {
	var lr float64
	o.turn.ask(func() { lr = g.settings.rate(o.progress.updates) })
	if math.IsNaN(lr) || math.IsInf(lr, 0) {
		return 0, failure(o.rule.name, fmt.Errorf("the learning rate is %v at step %d", lr, o.progress.updates))
	}
	return lr, nil
}

// scalar makes a number of the dtype that the group's parameters need.
func (g *group) scalar(at millrace.Place, v float64) *millrace.Tensor {
	for _, p := range g.params {
		if p.Tensor().DType() == millrace.Float64 {
			return millrace.ScalarOn(at, v)
		}
	}
	return millrace.ScalarOn(at, float32(v))
}

// computed is the dtype of a parameter's update: Float64 for Float64, else Float32. 16 bits would
// lose small steps and moments.
func computed(dt millrace.DType) millrace.DType {
	if dt == millrace.Float64 {
		return dt
	}
	return millrace.Float32
}

// zeros makes zeros that are stored in memory. An op would only describe zeros, and a Recording can
// set only a tensor that is stored.
func zeros(at millrace.Place, dt millrace.DType, shape ...int) *millrace.Tensor {
	t, err := millrace.FromReaderOn(at, nothing{}, dt, shape...)
	if err != nil {
		return hostapi.Fail("zeros", err, nil).(*millrace.Tensor)
	}
	return t
}

// nothing reads as an endless sequence of zeros.
type nothing struct{}

func (nothing) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// failure adds the line of the program to an error.
func failure(op string, err error) error {
	if err == nil {
		return nil
	}
	return hostapi.Fail(op, err, nil).(*millrace.Tensor).Err()
}
