package optim

import (
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// Update updates the parameters by gradients that the caller computed: one for each of
// [Optimizer.Params], nil for a parameter that stays as it is. Gradients have their
// parameter's shape, and are of a float dtype. With [LossScale] they are those of the loss
// times [Optimizer.Scale]. It is recorded once and run from then on, so that a loop costs
// little, and not waited for. Where there is an error nothing has changed; one that is met
// later, as when memory runs out, is carried by the parameters.
func (o *Optimizer) Update(grads []*millrace.Tensor) error {
	if err := o.check("update"); err != nil {
		return err
	}
	if err := o.turn.take(nil, "update"); err != nil {
		return err
	}
	defer o.turn.give()
	if err := o.begin(); err != nil {
		return err
	}
	if len(grads) != len(o.params) {
		return failure(o.rule.name, fmt.Errorf("%w: %d gradients for %d parameters", millrace.ErrShape, len(grads), len(o.params)))
	}
	if err := (&pass{o: o, grads: grads}).check(); err != nil {
		return err
	}
	if err := o.end(o.home(), ending{last: true, steps: 1}, grads, nil); err != nil {
		return err
	}
	o.progress.updated()
	return nil
}

// ending is what is done with the gradients of a step.
type ending struct {
	last  bool // of the steps that are added up
	steps int  // how many are
}

// end does it, in a Recording for each kind: which gradients there are, and which were
// added up before. ok, where there is one, says that these gradients are finite.
func (o *Optimizer) end(on *millrace.Stream, e ending, grads []*millrace.Tensor, ok *millrace.Tensor) error {
	in, err := o.rates(nil)
	if err != nil {
		return err
	}
	if e.steps > 1 {
		ok = nil // of the sums it is asked again
	}
	if ok != nil {
		in = append(in, ok)
	}
	has := make([]bool, len(grads))
	for i, g := range grads {
		if g != nil {
			has[i] = true
			in = append(in, g)
		}
	}
	sums := o.progress.summed(e)
	if e.last {
		for i, is := range sums {
			if is {
				in = append(in, o.params[i].sum.Tensor())
			}
		}
	}
	key := fmt.Sprintf("%+v %t %v %v", e, ok != nil, bits(has), bits(sums))
	rec := o.ends[key]
	if rec == nil {
		rec = millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
			x := &pass{o: o, sc: sc, rates: in[:len(o.groups)], grads: make([]*millrace.Tensor, len(has)), as: map[*nn.Param]*millrace.Tensor{}}
			in = in[len(o.groups):]
			if ok != nil {
				x.ok, in = in[0], in[1:]
			}
			for i, is := range has {
				if is {
					x.grads[i], in = in[0], in[1:]
				}
			}
			for i, is := range sums {
				if is && e.last {
					x.as[o.params[i].sum], in = in[0], in[1:]
				}
			}
			return nil, x.finish(e, sums)
		})
		o.remember(key, rec)
	}
	_, err = rec.RunWith(nil, millrace.RunOptions{On: on, NoWait: true}, in...)
	return err
}

// mostEnds is how many kinds of updates are kept recorded.
const mostEnds = 64

func (o *Optimizer) remember(key string, rec *millrace.Recording) {
	if len(o.ends) >= mostEnds {
		for k, old := range o.ends {
			old.Release()
			delete(o.ends, k)
			break
		}
	}
	o.ends[key] = rec
}

// bits are a list of bools as text.
func bits(list []bool) string {
	b := make([]byte, len(list))
	for i, is := range list {
		b[i] = '0'
		if is {
			b[i] = '1'
		}
	}
	return string(b)
}

// finish adds gradients to those of the steps before, or updates with their mean.
func (x *pass) finish(e ending, sums []bool) error {
	if e.steps > 1 {
		x.add(e, sums)
	}
	if e.last {
		if err := x.update(e.steps); err != nil {
			return err
		}
	}
	return x.end()
}

// add has the gradients be those of all steps so far, and keeps them unless they are used
// at once.
func (x *pass) add(e ending, sums []bool) {
	for i, g := range x.grads {
		p := x.o.params[i]
		fresh := g != nil
		var to val
		if fresh {
			to = x.temps.of(g).cast(computed(p.Tensor().DType()))
		}
		if sums[i] {
			sum := x.now(p.sum, &x.temps)
			if fresh {
				sum = sum.add(to)
			}
			to = sum
		}
		x.grads[i] = to.t
		if fresh && !e.last {
			x.sets = append(x.sets, set{p.sum, x.temps.keep(to)})
		}
	}
	x.ok = nil // it tells of this step's only
}
