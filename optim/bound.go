package optim

import (
	"fmt"

	"github.com/millrace-go/millrace"
)

// BoundStep is a [Step] with inputs, loss and parameters at fixed places in memory: see
// [millrace.BoundRecording]. It is for models so small that finding the recorded step takes longer
// than computing it. Its methods are safe for concurrent use.
type BoundStep struct {
	s     *Step
	t     *tape
	b     *millrace.BoundRecording
	lr    []float64 // learning rates by group, as in the recording's inputs
	wide  []bool    // whether they are float64
	first int       // index of the step's first input among the recording's
	count int       // of the step's inputs
	in    []*millrace.Tensor
}

// Bind makes a BoundStep for inputs of these dtypes and shapes; [SetInput] writes the inputs. Its
// results have the bits of Run's. A step that accumulates, checks for finite numbers, reads a value or
// has [Ranks].Sharded cannot be bound: that is millrace.ErrUnsupported. Later Freeze calls on
// parameters have no effect on a BoundStep. All ranks of a step with [Across] bind it at the same
// point and make the same runs.
func (s *Step) Bind(in ...*millrace.Tensor) (b *BoundStep, err error) {
	if s != nil && s.ranks != nil {
		err = errPanicked
		defer func() {
			if err != nil {
				s.ranks.fail(err)
			}
		}()
	}
	b, err = s.bound(in)
	return b, err
}

func (s *Step) bound(in []*millrace.Tensor) (*BoundStep, error) {
	if err := s.check("bind"); err != nil {
		return nil, err
	}
	if s.steps > 1 || s.finite || s.o.scaling != nil {
		return nil, failure("bind", fmt.Errorf("%w: a Step with Accumulate, CheckFinite or a LossScale cannot be bound", millrace.ErrUnsupported))
	}
	if s.shard != nil {
		return nil, failure("bind", fmt.Errorf("%w: a Step with Ranks.Sharded cannot be bound", millrace.ErrUnsupported))
	}
	o := s.o
	if err := o.turn.take(nil, "bind"); err != nil {
		return nil, err
	}
	defer o.turn.give()
	if s.closed.Load() {
		return nil, failure("bind", fmt.Errorf("%w: the Step was closed", millrace.ErrClosed))
	}
	if s.shard != o.shard {
		return nil, failure("bind", errDivided)
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
		if err := s.ranks.check(in); err != nil {
			return nil, err
		}
	}
	for {
		b, again, err := s.bind(in)
		if err != nil || !again {
			return b, err
		}
	}
}

// bind is Bind; again says that it found another argument and must be called once more.
func (s *Step) bind(in []*millrace.Tensor) (b *BoundStep, again bool, err error) {
	o := s.o
	b = &BoundStep{s: s, in: in}
	if e := (ending{last: true, steps: s.steps}); s.ranks == nil {
		b.t = s.tape(e, in)
	} else {
		b.t = s.newTape(e, in) // other ranks may have no recording yet, and recording makes collectives
	}
	var args []*millrace.Tensor
	for _, g := range o.groups {
		lr, err := o.rate(g)
		if err != nil {
			return nil, false, err
		}
		t := g.scalar(o.home(), lr)
		b.lr, b.wide = append(b.lr, lr), append(b.wide, t.DType() == millrace.Float64)
		args = append(args, t)
	}
	for _, p := range b.t.args {
		args = append(args, p.Tensor())
	}
	b.first, b.count = len(args), len(in)
	b.b, err = b.t.rec.BindWith(millrace.BindOptions{On: s.on}, append(args, in...)...)
	if len(b.t.more) == 0 {
		return b, false, err
	}
	s.others = append(s.others, b.t.more...)
	b.t.args, b.t.more = append(b.t.args, b.t.more...), nil
	b.t.rec.Release()
	if err == nil {
		err = b.b.Close()
	}
	return nil, true, err
}

// Run runs one step and returns after its end. If an error comes up during the step, such as an
// index out of range, the dependent results carry it.
func (b *BoundStep) Run() (err error) {
	if b == nil || b.s == nil {
		return failure("step", errNone)
	}
	if b.s.ranks != nil {
		err = errPanicked // a rate's function may panic
		defer func() {
			if err != nil {
				b.s.ranks.fail(err)
			}
		}()
	}
	err = b.run()
	return err
}

func (b *BoundStep) run() error {
	o := b.s.o
	if err := o.turn.take(nil, "step"); err != nil {
		return err
	}
	defer o.turn.give()
	if b.s.shard != o.shard {
		return failure("step", errDivided)
	}
	if err := o.progress.read(); err != nil {
		return err
	}
	for i, p := range o.params {
		if p.Frozen() != b.t.frozen[i] {
			return failure("step", fmt.Errorf("%w: parameter %q was frozen or unfrozen after Bind", millrace.ErrUnsupported, p.Name))
		}
	}
	if b.s.ranks != nil {
		if err := b.s.ranks.begin(nil, b.s, b.in); err != nil {
			return err
		}
	}
	for i, g := range o.groups {
		lr, err := o.rate(g)
		if err != nil {
			return err
		}
		if lr == b.lr[i] {
			continue
		}
		if b.wide[i] {
			err = millrace.SetInput(b.b, i, lr)
		} else {
			err = millrace.SetInput(b.b, i, float32(lr))
		}
		if err != nil {
			return err
		}
		b.lr[i] = lr
	}
	if err := b.b.Run(); err != nil {
		return err
	}
	o.progress.after(ending{last: true, steps: 1}, b.t.has)
	return nil
}

// Loss is the loss of the last run, one number in the dtype of the function's result, computed from
// the parameters before that run. It is the same handle all the time. It carries the run's error if
// it depends on the failed op. It is nil for a nil BoundStep.
func (b *BoundStep) Loss() *millrace.Tensor {
	if b == nil || b.s == nil {
		return nil
	}
	return b.b.Results()[0]
}

// Close frees the memory of the steps. Parameters and inputs keep their values. It never returns an
// error, and closing twice is harmless.
func (b *BoundStep) Close() error {
	if b == nil {
		return nil
	}
	return b.b.Close()
}

// SetInput writes new elements into input i of a bound step, in row-major order: see
// [millrace.SetInput]. An i that is no input of the step is millrace.ErrShape, and so is another
// number of elements; elements of another dtype are millrace.ErrDType.
func SetInput[T millrace.Element](b *BoundStep, i int, elements ...T) error {
	if b == nil || b.s == nil {
		return failure("setinput", errNone)
	}
	if i < 0 || i >= b.count { // below 0 are inputs that the step adds
		return failure("setinput", fmt.Errorf("%w: input %d does not exist, the step has %d", millrace.ErrShape, i, b.count))
	}
	return millrace.SetInput(b.b, b.first+i, elements...)
}
