package optim

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/handle"
	"github.com/millrace-go/millrace/nn"
)

// pass is an update as it is recorded: ops on values as they are now, and what is to be
// set to their results when all of them are known to be good.
type pass struct {
	o     *Optimizer
	sc    *millrace.Scope
	rates []*millrace.Tensor             // of groups, 0-d
	grads []*millrace.Tensor             // by parameter; nil for those that have none
	ok    *millrace.Tensor               // a Bool number: gradients are finite; nil where nobody asks
	as    map[*nn.Param]*millrace.Tensor // handles in place of parameters' own, where those are not set
	held  map[*nn.Param]*millrace.Tensor // handles of what parameters are now, to be ended here

	steps   int   // gradients are a sum of so many
	temps   temps // of the whole pass: what parameters have in common
	inverse by    // of the loss's scale
	factor  by    // of clipping
	sets    []set
}

// set is a parameter's, or a state's, new value.
type set struct {
	p  *nn.Param
	to *millrace.Tensor
}

// now is what p is: a handle of the scope's, so that what is computed from it alone does
// not outlive the step, and which ends with the temps.
func (x *pass) now(p *nn.Param, temps *temps) val {
	if t := x.as[p]; t != nil {
		return temps.of(t)
	}
	if t := x.held[p]; t != nil {
		return temps.own(t)
	}
	return temps.own(p.Tensor().To(x.sc))
}

// put notes a new value. What is computed on gradients that are not finite changes nothing.
func (x *pass) put(p *nn.Param, old, to val) {
	if x.ok != nil {
		to = old.x.of(x.ok).ifElse(to, old)
	}
	x.sets = append(x.sets, set{p, to.x.keep(to)})
}

// end sets what there is to set, or nothing where a new value carries an error. Handles
// of the old values have ended, so that their memory can be the new ones'.
func (x *pass) end() error {
	x.temps.end()
	for _, s := range x.sets {
		if err := s.to.Err(); err != nil {
			return err
		}
	}
	for _, s := range x.sets {
		s.p.Tensor().Set(s.to)
	}
	return nil
}

// check finds gradients that are not those of the parameters.
func (x *pass) check() error {
	for i, g := range x.grads {
		if g == nil {
			continue
		}
		p := x.o.params[i]
		if err := g.Err(); err != nil {
			return err
		}
		var err error
		switch {
		case !slices.Equal(g.Shape(), p.Tensor().Shape()):
			err = fmt.Errorf("%w: gradient of %q", millrace.ErrShape, p.Name)
		case !g.DType().IsFloat():
			err = fmt.Errorf("%w: gradient of %q is of %v", millrace.ErrDType, p.Name, g.DType())
		}
		if err != nil {
			return failureOf(x.o.rule.name, err, g, p.Tensor())
		}
	}
	return nil
}

// update records what the rule makes of the gradients, each a sum of so many.
func (x *pass) update(steps int) error {
	if err := x.check(); err != nil {
		return err
	}
	o := x.o
	x.steps = steps
	if o.scaling != nil {
		x.unscale()
	}
	if o.clipNorm > 0 {
		x.clip()
	}
	counts := x.count()
	for k, g := range o.groups {
		x.group(g, x.temps.of(x.rates[k]), counts)
	}
	return nil
}

// unscale finds what takes the loss's scale out of the gradients, and the next scale.
func (x *pass) unscale() {
	s := x.o.scaling
	if x.ok == nil {
		x.ok = finite(x.grads)
	}
	if x.ok == nil { // no gradients
		return
	}
	scale, good := x.now(s.scale, &x.temps), x.now(s.good, &x.temps)
	x.inverse = by{t: scale.under(1)}
	nextScale, nextGood := s.after(scale, good, x.temps.of(x.ok))
	x.sets = append(x.sets, set{s.scale, x.temps.keep(nextScale)}, set{s.good, x.temps.keep(nextGood)})
}

// by is a number by which tensors of several dtypes are multiplied.
type by struct{ t, wide val }

func (b *by) in(dt millrace.DType) val {
	if b.t.t.DType() == dt {
		return b.t
	}
	if b.wide.t == nil {
		b.wide = b.t.cast(dt)
	}
	return b.wide
}

// grad is the gradient of a parameter in the dtype in which its update is computed: the
// mean, without the loss's scale, and clipped by value. What is asked for twice is recorded
// twice, and computed in either place without being written between.
func (x *pass) grad(p *param, temps *temps) val {
	dt := computed(p.Tensor().DType())
	g := temps.of(x.grads[p.index]).cast(dt)
	if x.steps > 1 {
		g = g.over(float64(x.steps))
	}
	if x.inverse.t.t != nil {
		g = g.mul(x.inverse.in(dt))
	}
	if v := x.o.clipValue; v > 0 {
		g = g.clamp(v)
	}
	return g
}

// clip finds what brings the norm of all gradients below the limit. It is computed in the
// widest dtype among them.
func (x *pass) clip() {
	dt := millrace.Float32
	for _, p := range x.o.params {
		if x.grads[p.index] != nil && p.Tensor().DType() == millrace.Float64 {
			dt = millrace.Float64
		}
	}
	var sum val
	for _, p := range x.o.params {
		if x.grads[p.index] == nil {
			continue
		}
		var temps temps
		part := x.temps.own(temps.keep(x.grad(p, &temps).sumOfSquares().cast(dt)))
		temps.end()
		if sum.t != nil {
			part = sum.add(part)
		}
		sum = part
	}
	if sum.t != nil {
		// As in PyTorch, where the 1e-6 keeps the norm just below the limit.
		x.factor = by{t: sum.sqrt().plus(1e-6).under(x.o.clipNorm).atMost(1)}
	}
}

// count gives the number of updates of each parameter, this one included.
func (x *pass) count() val {
	if x.o.counts == nil {
		return val{}
	}
	more := make([]int32, len(x.grads))
	all := true
	for i, g := range x.grads {
		if g != nil {
			more[x.o.params[i].slot] = 1
		} else {
			all = false
		}
	}
	old := x.now(x.o.counts, &x.temps)
	counts := old.plus(1)
	if !all {
		counts = old.add(x.temps.own(millrace.FromSliceOn(x.sc, more)))
	}
	x.put(x.o.counts, old, counts)
	return counts
}

// group updates the parameters of one.
func (x *pass) group(g *group, rate, counts val) {
	common := map[millrace.DType]*shared{}
	for _, p := range g.params {
		if x.grads[p.index] == nil {
			continue
		}
		dt := computed(p.Tensor().DType())
		if common[dt] == nil {
			common[dt] = g.shared(dt, rate, counts)
		}
		x.param(p, common[dt])
	}
}

// shared is what parameters of a group and a dtype have in common.
type shared struct {
	lr    val
	lists []val // an element for each parameter of the group
}

func (g *group) shared(dt millrace.DType, rate, counts val) *shared {
	s := &shared{lr: rate.cast(dt)}
	if h, r := &g.settings, g.rule; r.counts(h) {
		first := g.params[0].slot
		if n := len(g.params); n != counts.t.Len() {
			counts = counts.slice(first, first+n)
		}
		s.lists = r.common(h, s.lr, counts.cast(dt))
	}
	return s
}

// param updates one.
func (x *pass) param(p *param, s *shared) {
	var temps temps
	defer temps.end()
	here := func(v val) val { return temps.of(v.t) }
	old, grad := x.now(p.Param, &temps), x.grad(p, &temps)
	dt := grad.t.DType()
	if x.factor.t.t != nil {
		grad = grad.mul(x.factor.in(dt))
	}
	u := &update{value: old.cast(dt), grad: grad, lr: here(s.lr)}
	for _, list := range s.lists {
		u.common = append(u.common, here(list).at(p.slot-p.group.params[0].slot))
	}
	for _, st := range p.state {
		u.state = append(u.state, x.now(st, &temps))
	}
	before := slices.Clone(u.state)
	x.put(p.Param, old, x.o.rule.update(&p.group.settings, u).cast(old.t.DType()))
	for i, st := range p.state {
		x.put(st, before[i], u.state[i])
	}
}

// failureOf is failure with the shapes of operands.
func failureOf(op string, err error, ts ...*millrace.Tensor) error {
	operands := make([]any, len(ts))
	for i, t := range ts {
		operands[i] = t
	}
	return handle.Fail(op, err, operands).(*millrace.Tensor).Err()
}
