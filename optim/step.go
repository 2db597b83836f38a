package optim

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/nn"
)

// Step is a training step: a loss, its gradients and an update. Its methods are safe for
// concurrent use; runs of all steps of an optimiser come one after another.
type Step struct {
	o      *Optimizer
	f      func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor
	random *nn.Random
	dt     millrace.DType
	on     *millrace.Stream // nil: the stream of the parameters
	steps  int              // number of steps that make one update
	record bool
	finite bool
	ranks  ranks  // nil: the step is of one rank
	number int64  // among the optimiser's steps with ranks, from 1
	shard  *shard // how it divides the optimiser's state; nil: not at all
	err    error  // error of a bad option

	closed atomic.Bool
	// Under the optimiser's turn.
	tapes  []*tape     // most recently used at the end
	others []*nn.Param // what some tapes use and do not set, besides the optimiser's parameters
}

// StepOption changes a [Step].
type StepOption func(s *Step) error

// Record makes the step record itself when it first runs with inputs of some dtypes and shapes.
// Later runs do not call its function, which must depend on nothing else: see [millrace.Recording].
// Other inputs, such as the smaller last batch of an epoch, get a recording of their own; the same
// happens after parameters are frozen or unfrozen. The 32 most recently used recordings are kept.
// The results have the same bits as without Record.
func Record() StepOption {
	return func(s *Step) error {
		s.record = true
		return nil
	}
}

// On is the stream on which steps run, or a device, which stands for its default stream. The
// default is the stream of the parameters.
func On(p millrace.Place) StepOption {
	return func(s *Step) error {
		switch p := p.(type) {
		case *millrace.Device:
			if p != nil {
				s.on = p.DefaultStream()
			}
		case *millrace.Stream:
			s.on = p
		default:
			return errors.New("On: a step cannot run in a scope: give a device or a stream")
		}
		if s.on == nil {
			return errors.New("On: the stream or device is nil")
		}
		return nil
	}
}

// Accumulate makes n runs one update, by the mean of their gradients: for a batch that is too large
// for memory. If losses are means, the parts must have one size to give the batch's mean. Learning
// rates change from update to update. Several accumulating steps of an optimiser add to the same
// sums and must have the same n; updates by other steps between the parts leave the sums unchanged.
func Accumulate(n int) StepOption {
	return func(s *Step) error {
		if n < 1 {
			return fmt.Errorf("Accumulate: %d runs", n)
		}
		s.steps = n
		return nil
	}
}

// Random is the source of the function's random numbers, for dropout among others.
func Random(r *nn.Random) StepOption {
	return func(s *Step) error {
		s.random = r
		return nil
	}
}

// Compute is the dtype in which layers compute, such as BFloat16. Parameters, their gradients and
// the state keep their dtypes: mixed precision. With Float16 the optimiser should have a
// [LossScale].
func Compute(dt millrace.DType) StepOption {
	return func(s *Step) error {
		if !dt.IsFloat() {
			return fmt.Errorf("%w: Compute: layers cannot compute in %v, only in floats", millrace.ErrDType, dt)
		}
		s.dt = dt
		return nil
	}
}

// CheckFinite makes a run fail if the loss or a gradient is not finite. The error names the first
// op that made such a number, and nothing is updated. It reads every result and is for debugging:
// steps take much longer, and are not recorded.
func CheckFinite() StepOption {
	return func(s *Step) error {
		s.finite = true
		return nil
	}
}

// Step makes a training step of a function f, which computes a loss, one number of a float dtype,
// from a pass and the inputs of a run. The tensors that f makes belong to a scope that ends with
// the run. f should take parameters by [nn.Param.In], as layers do.
//
// f, and a [Rate], may call [Optimizer.Updates], Params and Scale, and close a step. Calls that
// would wait for the running step are errors there: Update, State, nn.Save and nn.Load with the
// optimiser, and Run and Bind of any of its steps.
func (o *Optimizer) Step(f func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor, opts ...StepOption) *Step {
	s := &Step{o: o, f: f, steps: 1}
	err := o.check("step")
	if f == nil && err == nil {
		err = failure("step", errors.New("the function is nil"))
	}
	for _, opt := range opts {
		if bad := opt(s); err == nil {
			err = failure("step", bad)
		}
	}
	if s.ranks != nil && o != nil {
		s.number = o.joint.Add(1)
	}
	if s.shard != nil && err == nil {
		err = failure("step", o.divide(s.shard))
		s.shard = o.shard
	}
	if s.steps > 1 && err == nil {
		err = o.sum()
	}
	if s.err = err; err != nil {
		return s
	}
	if s.on == nil {
		s.on = o.home()
	}
	if s.random != nil {
		s.others = append(s.others, s.random.Key)
	}
	return s
}

// sum makes the tensors for sums of gradients.
func (o *Optimizer) sum() error {
	if err := o.turn.take(nil, "step"); err != nil {
		return err
	}
	defer o.turn.give()
	for _, p := range o.params {
		if t := p.Tensor(); p.sum == nil {
			p.sum = o.sums().buffer(p, func(shape ...int) *millrace.Tensor { return zeros(t.Stream(), computed(t.DType()), shape...) })
		}
	}
	return nil
}

// check returns an error for a zero step or one with bad options.
func (s *Step) check(op string) error {
	if s == nil || s.o == nil {
		return failure(op, errNone)
	}
	return s.err
}

// Run runs one step: it computes the loss of the inputs and updates the parameters. The loss is
// that of the parameters before the update. If it returns an error, nothing has changed:
// parameters, moments, counts and buffers keep their values. Run does not wait for a recorded step,
// nor for the update of any step. Reading the loss waits for the step and returns its errors.
func (s *Step) Run(ctx context.Context, in ...*millrace.Tensor) (loss *millrace.Tensor, err error) {
	if s != nil && s.ranks != nil {
		err = errPanicked
		defer func() {
			if err != nil {
				s.ranks.fail(err)
			}
		}()
	}
	loss, err = s.run(ctx, in)
	return loss, err
}

var errPanicked = errors.New("the function of a Step panicked")

func (s *Step) run(ctx context.Context, in []*millrace.Tensor) (*millrace.Tensor, error) {
	if err := s.check("step"); err != nil {
		return nil, err
	}
	if ctx != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	o := s.o
	if err := o.turn.take(ctx, "step"); err != nil {
		return nil, err
	}
	defer o.turn.give()
	if s.closed.Load() {
		return nil, failure("step", fmt.Errorf("%w: the Step was closed", millrace.ErrClosed))
	}
	if s.shard != o.shard {
		return nil, failure("step", errDivided)
	}
	if err := o.begin(); err != nil {
		return nil, err
	}
	for _, t := range in {
		if err := t.Err(); err != nil {
			return nil, err
		}
	}
	if s.ranks != nil {
		if err := s.ranks.begin(ctx, s, in); err != nil {
			return nil, err
		}
	}
	e, err := o.progress.ending(s.steps)
	if err != nil {
		return nil, err
	}
	var loss *millrace.Tensor
	var has []bool
	if s.record && !s.finite {
		loss, has, err = s.replay(e, in)
	} else {
		loss, has, err = s.eager(e, in)
	}
	if err != nil {
		return nil, err
	}
	o.progress.after(e, has)
	return loss, nil
}

// Close frees the recordings and their memory after the current run has ended. Calling it twice is
// harmless.
func (s *Step) Close() {
	if s.check("close") != nil {
		return
	}
	s.closed.Store(true)
	s.o.turn.soon(func() {
		for _, t := range s.tapes {
			t.rec.Release()
		}
		s.tapes = nil
	})
}

// ranks is how a step works with other ranks. Only [Across] makes one, so that programs without it
// are not linked with package dist.
type ranks interface {
	// check reports inputs that the ranks cannot divide.
	check(in []*millrace.Tensor) error
	// begin prepares a run.
	begin(ctx context.Context, s *Step, in []*millrace.Tensor) error
	// gradients is backward for the whole batch.
	gradients(s *Step, sc *millrace.Scope, in []*millrace.Tensor, as map[*nn.Param]*millrace.Tensor) (found, error)
	// fail tells the other ranks of an error of a run.
	fail(err error)
}

// found is the result of a forward and backward pass.
type found struct {
	loss  *millrace.Tensor
	grads []*millrace.Tensor // by parameter, nil for those that the pass did not use
	ok    *millrace.Tensor   // a Bool number: gradients are finite; nil if not checked
	used  []*nn.Param        // parameters that it used and did not change
	sets  []set              // new values of buffers that are still to be set

	// held are the handles of the weights in the gradients, if the update continues with them.
	// The engine then sees one tensor, which the new value can replace in place.
	held map[*nn.Param]*millrace.Tensor
}

// handles returns a scope's own handles for a pass: those of as, and of the parameters. Without as,
// a pass makes them itself.
func (s *Step) handles(inner *millrace.Scope, as map[*nn.Param]*millrace.Tensor) map[*nn.Param]*millrace.Tensor {
	own := make(map[*nn.Param]*millrace.Tensor, len(as))
	for p, t := range as {
		own[p] = t.To(inner)
	}
	if as != nil {
		for _, p := range s.o.params {
			if own[p.Param] == nil {
				own[p.Param] = p.Tensor().To(inner)
			}
		}
	}
	return own
}

// passed is a pass with its gradients.
type passed struct {
	c      *nn.Ctx
	loss   *millrace.Tensor
	params []*param // that it used
	grads  []*millrace.Tensor
}

// pass computes the loss and its gradients in a scope; finite is [CheckFinite]. ready, if not nil, is called with each
// gradient as soon as it is complete.
func (s *Step) pass(inner *millrace.Scope, in []*millrace.Tensor, own map[*nn.Param]*millrace.Tensor, finite bool, ready func(p *param, grad *millrace.Tensor)) (x passed, err error) {
	o := s.o
	x.c = nn.NewCtx(nn.CtxOptions{Train: true, Watch: true, Random: s.random, DType: s.dt, Scope: inner, As: own, CheckFinite: finite})
	args := make([]*millrace.Tensor, len(in))
	for i, t := range in {
		args[i] = t.To(inner)
	}
	o.turn.ask(func() { x.loss = s.f(x.c, args) })
	if err := x.loss.Err(); err != nil {
		return x, err
	}
	scaled := x.loss
	if o.scaling != nil {
		scale := own[o.scaling.scale]
		if scale == nil {
			scale = o.scaling.scale.Tensor().To(inner)
		}
		scaled = x.loss.Cast(millrace.Float32).Mul(scale)
	}
	var handles []*millrace.Tensor
	x.params, handles = o.own(x.c.Watched())
	if len(x.params) == 0 {
		return x, failure("step", o.noneUsed())
	}
	options := autodiff.Options{CheckFinite: finite}
	if ready != nil {
		options.Ready = func(i int, grad *millrace.Tensor) { ready(x.params[i], grad) }
	}
	x.grads, err = options.Grad(scaled, handles...)
	return x, failure("step", err)
}

// backward computes the loss and its gradients in a scope inside of sc; sc owns the returned
// tensors. as are replacement handles of parameters, for a recorded step. Without them everything
// is computed before buffers change.
func (s *Step) backward(sc *millrace.Scope, in []*millrace.Tensor, as map[*nn.Param]*millrace.Tensor) (x found, err error) {
	if s.ranks != nil {
		return s.ranks.gradients(s, sc, in, as)
	}
	err = sc.Scope(func(inner *millrace.Scope) error {
		own := s.handles(inner, as)
		p, err := s.pass(inner, in, own, s.finite, nil)
		if err != nil {
			return err
		}
		x.grads = make([]*millrace.Tensor, len(s.o.params))
		for i, of := range p.params {
			x.grads[of.index] = p.grads[i]
		}
		x.loss = autodiff.Detach(p.loss)
		if s.o.scaling != nil {
			x.ok = s.o.finite(x.grads)
		}
		if err := s.finish(inner, &x, own, as); err != nil {
			return err
		}
		x.used = p.c.Used()
		return p.c.CommitIf(x.ok)
	})
	return x, err
}

// finish keeps what was found when its scope ends. Without as it is computed first.
func (s *Step) finish(inner *millrace.Scope, x *found, own, as map[*nn.Param]*millrace.Tensor) error {
	keep := append([]*millrace.Tensor{x.loss, x.ok}, x.grads...)
	for _, set := range x.sets {
		keep = append(keep, set.to)
	}
	for _, t := range keep {
		if t == nil {
			continue
		}
		if err := t.Err(); err != nil {
			return err
		}
		if as == nil {
			if err := t.Eval(); err != nil {
				return err
			}
		}
		inner.Keep(t)
	}
	if as != nil {
		x.held = map[*nn.Param]*millrace.Tensor{}
		for i, p := range s.o.params {
			if x.grads[i] != nil && as[p.Param] == nil {
				x.held[p.Param] = inner.Keep(own[p.Param])
			}
		}
	}
	return nil
}

var errAllFrozen = errors.New("all parameters of the optimiser are frozen")

var errNoneUsed = errors.New("the loss uses no parameter of the optimiser through In")

// noneUsed says why a loss has no gradient with respect to any parameter.
func (o *Optimizer) noneUsed() error {
	for _, p := range o.params {
		if !p.Frozen() {
			return errNoneUsed
		}
	}
	return errAllFrozen
}

// own selects the followed parameters of a pass that belong to the optimiser.
func (o *Optimizer) own(used []*nn.Param, handles []*millrace.Tensor) (params []*param, theirs []*millrace.Tensor) {
	known := make(map[*nn.Param]*param, len(o.params))
	for _, p := range o.params {
		known[p.Param] = p
	}
	for i, q := range used {
		if p := known[q]; p != nil {
			params = append(params, p)
			theirs = append(theirs, handles[i])
		}
	}
	return params, theirs
}

// eager runs the step by calling the function.
func (s *Step) eager(e ending, in []*millrace.Tensor) (loss *millrace.Tensor, has []bool, err error) {
	err = s.on.Scope(func(sc *millrace.Scope) error {
		x, err := s.backward(sc, in, nil)
		if err != nil {
			return err
		}
		if err := s.o.end(s.on, e, x.grads, x.ok); err != nil {
			return err
		}
		for _, b := range x.sets {
			b.p.Tensor().Set(b.to)
		}
		has = which(x.grads)
		loss = sc.Keep(x.loss)
		return nil
	})
	return loss, has, err
}

func which(grads []*millrace.Tensor) []bool {
	has := make([]bool, len(grads))
	for i, g := range grads {
		has[i] = g != nil
	}
	return has
}
