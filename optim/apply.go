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

	own  []*millrace.Tensor // handles of values as they are now
	sets []set
}

// set is a parameter's, or a state's, new value.
type set struct {
	p  *nn.Param
	to *millrace.Tensor
}

// now is a handle of what p is, of the scope's, so that what is computed from it alone
// does not outlive the step.
func (x *pass) now(p *nn.Param) *millrace.Tensor {
	if t := x.as[p]; t != nil {
		return t
	}
	t := p.Tensor().To(x.sc)
	x.own = append(x.own, t)
	return t
}

// put notes a new value. What is computed on gradients that are not finite changes nothing.
func (x *pass) put(p *nn.Param, old, to *millrace.Tensor) {
	if x.ok != nil {
		to = millrace.Where(x.ok, to, old)
	}
	x.sets = append(x.sets, set{p, to})
}

// end sets what there is to set, or nothing where a new value carries an error. Handles
// of the old values end before, so that their memory can be the new ones'.
func (x *pass) end() error {
	for _, s := range x.sets {
		if err := s.to.Err(); err != nil {
			return err
		}
	}
	for _, t := range x.own {
		handle.Drop(t)
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

// cast is t in a dtype.
func cast(t *millrace.Tensor, dt millrace.DType) *millrace.Tensor {
	if t.DType() == dt {
		return t
	}
	return t.Cast(dt)
}

// update records what the rule makes of the gradients, each a sum of so many.
func (x *pass) update(steps int) error {
	if err := x.check(); err != nil {
		return err
	}
	o := x.o
	for i, g := range x.grads {
		if g == nil {
			continue
		}
		g = cast(g, computed(o.params[i].Tensor().DType()))
		if steps > 1 {
			g = g.DivScalar(float64(steps))
		}
		x.grads[i] = g
	}
	if o.scaling != nil {
		x.unscale()
	}
	x.clip()
	counts := x.count()
	for k, g := range o.groups {
		x.group(g, x.rates[k], counts)
	}
	return nil
}

// unscale takes the loss's scale out of the gradients, and finds the next one.
func (x *pass) unscale() {
	s := x.o.scaling
	scale, good := x.now(s.scale), x.now(s.good)
	if x.ok == nil {
		x.ok = finite(x.grads)
	}
	if x.ok == nil { // no gradients
		return
	}
	inverse := by{scale.Recip(), nil}
	for i, g := range x.grads {
		if g != nil {
			x.grads[i] = g.Mul(inverse.in(g.DType()))
		}
	}
	nextScale, nextGood := s.after(scale, good, x.ok)
	x.sets = append(x.sets, set{s.scale, nextScale}, set{s.good, nextGood})
}

// by is a number by which tensors of several dtypes are multiplied.
type by struct{ t, wide *millrace.Tensor }

func (b *by) in(dt millrace.DType) *millrace.Tensor {
	if b.t.DType() == dt {
		return b.t
	}
	if b.wide == nil {
		b.wide = b.t.Cast(dt)
	}
	return b.wide
}

// clip bounds the gradients, first each element, then the norm of all.
func (x *pass) clip() {
	if v := x.o.clipValue; v > 0 {
		for i, g := range x.grads {
			if g != nil {
				x.grads[i] = g.ClampScalar(-v, v)
			}
		}
	}
	if x.o.clipNorm == 0 {
		return
	}
	norm := x.total()
	if norm == nil {
		return
	}
	// As in PyTorch, where the 1e-6 keeps the norm just below the limit.
	factor := by{norm.AddScalar(1e-6).ScalarDiv(x.o.clipNorm).MinimumScalar(1), nil}
	for i, g := range x.grads {
		if g != nil {
			x.grads[i] = g.Mul(factor.in(g.DType()))
		}
	}
}

// total is the norm of all gradients together, in the widest dtype among them.
func (x *pass) total() *millrace.Tensor {
	dt := millrace.Float32
	for _, g := range x.grads {
		if g != nil && g.DType() == millrace.Float64 {
			dt = millrace.Float64
		}
	}
	var sum *millrace.Tensor
	for _, g := range x.grads {
		if g == nil {
			continue
		}
		part := g.Square().Sum()
		part = cast(part, dt)
		if sum != nil {
			part = sum.Add(part)
		}
		sum = part
	}
	if sum == nil {
		return nil
	}
	return sum.Sqrt()
}

// count gives the number of updates of each parameter, this one included.
func (x *pass) count() *millrace.Tensor {
	if x.o.counts == nil {
		return nil
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
	old := x.now(x.o.counts)
	counts := old.AddScalar(1)
	if !all {
		counts = old.Add(millrace.FromSliceOn(x.sc, more))
	}
	x.put(x.o.counts, old, counts)
	return counts
}

// group updates the parameters of one.
func (x *pass) group(g *group, rate, counts *millrace.Tensor) {
	common := map[millrace.DType]*shared{}
	for _, p := range g.params {
		grad := x.grads[p.index]
		if grad == nil {
			continue
		}
		dt := grad.DType()
		if common[dt] == nil {
			common[dt] = g.shared(dt, rate, counts)
		}
		x.param(p, grad, common[dt])
	}
}

// shared is what parameters of a group and a dtype have in common.
type shared struct {
	lr    *millrace.Tensor
	lists []*millrace.Tensor // an element for each parameter of the group
}

func (g *group) shared(dt millrace.DType, rate, counts *millrace.Tensor) *shared {
	s := &shared{lr: cast(rate, dt)}
	h, r := &g.settings, g.rule
	if r.common == nil {
		return s
	}
	if !r.counts(h) {
		counts = nil
	} else {
		first := g.params[0].slot
		if n := len(g.params); n != counts.Len() {
			counts = counts.Slice(millrace.R(first, first+n))
		}
		counts = counts.Cast(dt)
	}
	if counts != nil {
		s.lists = r.common(h, s.lr, counts)
	}
	return s
}

func (x *pass) param(p *param, grad *millrace.Tensor, s *shared) {
	h := &p.group.settings
	old := x.now(p.Param)
	u := &update{grad: grad, lr: s.lr}
	u.value = cast(old, grad.DType())
	for _, list := range s.lists {
		u.common = append(u.common, list.Slice(millrace.At(p.slot-p.group.params[0].slot)))
	}
	for _, st := range p.state {
		u.state = append(u.state, x.now(st))
	}
	before := append([]*millrace.Tensor{}, u.state...)
	to := x.o.rule.update(h, u)
	x.put(p.Param, old, cast(to, old.DType()))
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
