package optim

import (
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// Update updates the parameters by gradients that the caller computed: one for each of
// [Optimizer.Params], nil for a parameter that stays unchanged. A gradient has its parameter's
// shape and a float dtype. With [LossScale] the gradients are those of the loss times
// [Optimizer.Scale]. The update is recorded once and then replayed, which makes later calls cheap;
// Update does not wait for it. If it returns an error, nothing has changed. An error found later,
// such as lack of memory, is carried by the parameters.
func (o *Optimizer) Update(grads []*millrace.Tensor) error {
	if err := o.check("update"); err != nil {
		return err
	}
	if err := o.turn.take(nil, "update"); err != nil {
		return err
	}
	defer o.turn.give()
	if o.shard != nil {
		return failure("update", errDivided)
	}
	if err := o.begin(); err != nil {
		return err
	}
	if len(grads) != len(o.params) {
		return failure(o.rule.name, fmt.Errorf("%w: %d gradients were given for %d parameters", millrace.ErrShape, len(grads), len(o.params)))
	}
	if err := (&pass{o: o, grads: grads}).check(); err != nil {
		return err
	}
	for i, g := range grads {
		if g != nil {
			o.params[i].begin(o.shard) // a frozen parameter may have no state yet
		}
	}
	if err := o.end(o.home(), ending{last: true, steps: 1}, grads, nil); err != nil {
		return err
	}
	o.progress.updated()
	return nil
}

// ending says how a step's gradients are used.
type ending struct {
	last  bool // this step completes the update
	steps int  // number of steps so far in the sums, this one included
}

// end applies an ending, with a Recording for each kind: which gradients exist, and which were
// summed before. ok, if not nil, says that these gradients are finite.
func (o *Optimizer) end(on *millrace.Stream, e ending, grads []*millrace.Tensor, ok *millrace.Tensor) error {
	in, err := o.rates(nil)
	if err != nil {
		return err
	}
	if e.steps > 1 {
		ok = nil // the sums are checked instead
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

// mostEnds is the number of kinds of updates whose recordings are kept.
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

// bits writes a list of bools as text.
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

// finish adds gradients to those of the earlier steps, or updates with their mean.
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

// add makes the gradients the sums over all steps so far, and stores them unless they are used at
// once.
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
	x.ok = nil // it covers this step only
}
