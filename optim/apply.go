package optim

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/nn"
)

// pass is one update while it is recorded: it holds ops on the current values, and the assignments
// to make once all results are known to carry no error.
type pass struct {
	o     *Optimizer
	sc    *millrace.Scope
	rates []*millrace.Tensor             // learning rate of each group, 0-d
	grads []*millrace.Tensor             // by parameter; nil without a gradient
	ok    *millrace.Tensor               // a Bool number: gradients are finite; nil if not checked
	as    map[*nn.Param]*millrace.Tensor // handles that replace the parameters' own, for parameters that are not set
	held  map[*nn.Param]*millrace.Tensor // handles of current values, which this pass ends

	steps   int   // the gradients are sums of so many steps
	temps   temps // temporaries of the whole pass, shared by parameters
	inverse by    // inverse of the loss scale
	factor  by    // factor of clipping by norm
	sets    []set
	shares  []*shares // new values of parameters of which this rank computes a part
	open    map[millrace.DType]*shares
}

// set is the new value of a parameter or of its state.
type set struct {
	p  *nn.Param
	to *millrace.Tensor
}

// now returns the current value of p as a handle of the scope. Results computed from it alone do
// not outlive the step, and the handle ends with temps.
func (x *pass) now(p *nn.Param, temps *temps) val {
	if t := x.as[p]; t != nil {
		return temps.of(t)
	}
	if t := x.held[p]; t != nil {
		return temps.own(t)
	}
	return temps.own(p.Tensor().To(x.sc))
}

// put notes a new value. If ok is false, that is if a gradient is not finite, the value stays old.
func (x *pass) put(p *nn.Param, old, to val) {
	if x.ok != nil {
		to = old.x.of(x.ok).ifElse(to, old)
	}
	x.sets = append(x.sets, set{p, to.x.keep(to)})
}

// end makes the assignments, or none if a new value carries an error. The handles of the old values
// have ended, so the new values can reuse their memory.
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

// check reports gradients that do not match their parameters.
func (x *pass) check() error {
	for i, g := range x.grads {
		if g == nil {
			continue
		}
		p := x.o.params[i]
		if err := g.Err(); err != nil {
			return err
		}
		if x.o.sums() != nil {
			continue // the step made it
		}
		var err error
		switch {
		case !slices.Equal(g.Shape(), p.Tensor().Shape()):
			err = fmt.Errorf("%w: the gradient of %q has shape %v, the parameter has %v", millrace.ErrShape, p.Name, g.Shape(), p.Tensor().Shape())
		case !g.DType().IsFloat():
			err = fmt.Errorf("%w: the gradient of %q has dtype %v, which is not a float", millrace.ErrDType, p.Name, g.DType())
		}
		if err != nil {
			return failureOf(x.o.rule.name, err, g, p.Tensor())
		}
	}
	return nil
}

// update records the rule's ops on the gradients, each a sum over steps.
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
	x.received()
	return nil
}

// unscale computes the inverse of the loss scale, and the next scale.
func (x *pass) unscale() {
	s := x.o.scaling
	if x.ok == nil {
		x.ok = x.o.finite(x.grads)
	}
	if x.ok == nil { // there are no gradients
		return
	}
	scale, good := x.now(s.scale, &x.temps), x.now(s.good, &x.temps)
	x.inverse = by{t: scale.under(1)}
	nextScale, nextGood := s.after(scale, good, x.temps.of(x.ok))
	x.sets = append(x.sets, set{s.scale, x.temps.keep(nextScale)}, set{s.good, x.temps.keep(nextGood)})
}

// by is a factor for tensors of several dtypes.
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

// grad returns a parameter's gradient in the dtype of the update: the mean, without the loss scale,
// and clipped by value. A second call records the ops again; each use computes them in its own
// kernel, and nothing is written in between.
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

// clip computes the factor that brings the norm of all gradients below the limit, in the widest
// dtype among them.
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
		// As in PyTorch: the 1e-6 keeps the norm just below the limit.
		x.factor = by{t: sum.sqrt().plus(1e-6).under(x.o.clipNorm).atMost(1)}
	}
}

// count returns each parameter's number of updates, including this one.
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

// group updates the parameters of a group.
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

// shared holds what parameters of one group and dtype have in common.
type shared struct {
	lr    val
	lists []val // one element for each parameter of the group
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

// param updates one parameter.
func (x *pass) param(p *param, s *shared) {
	var temps temps
	defer temps.end()
	here := func(v val) val { return temps.of(v.t) }
	old, grad := x.now(p.Param, &temps), x.grad(p, &temps)
	d := x.o.shard
	if d != nil {
		old = d.cut(old)
		if d.whole {
			grad = d.cut(grad)
		}
	}
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
	to := x.o.rule.update(&p.group.settings, u).cast(old.t.DType())
	if d != nil {
		x.share(p, old, to)
	} else {
		x.put(p.Param, old, to)
	}
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
	return hostapi.Fail(op, err, operands).(*millrace.Tensor).Err()
}
