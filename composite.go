package millrace

import (
	"slices"
	"sync"

	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/stream"
)

// A composite is an op that consists of other ops, such as Softmax. Its function reads like its
// formula, because it need not release what the ops on the way make:
//
//	func (t *Tensor) Norm(axes ...int) (r *Tensor) {
//		c := compose("norm", nil, &t)
//		defer c.end(&r)
//		if c.bad != nil {
//			return c.bad
//		}
//		return t.Square().Sum(axes...).Sqrt()
//	}
//
// compose makes t a step: a handle that only the composite has. Every result of an op with a step
// among its operands is a step, too, and end releases all steps but the results. A tensor without
// operands is a step if its place is beside a step. A mark on the handle tells a step from other
// tensors.

// steps are the tensors that a composite has made so far, in order. A composite within another one
// adds to the same list.
type steps struct {
	list   []*Tensor
	wanted bool    // they stay in memory until they are released: see stream.Want
	used   *Tensor // a step that belongs to another owner, or nil: see Use
	room   [24]*Tensor
}

var idleSteps = sync.Pool{New: func() any { return new(steps) }}

func newSteps(wanted bool) *steps {
	s := idleSteps.Get().(*steps)
	s.list, s.wanted = s.room[:0], wanted
	return s
}

func (s *steps) free() {
	clear(s.list)
	s.list = nil
	idleSteps.Put(s)
}

// steps returns the list of which t is a step, or nil.
func (t *Tensor) steps() *steps {
	if t == nil || t.v.Marks()&stream.MarkStep == 0 {
		return nil
	}
	return t.step().steps
}

// add makes t, a new stepped tensor, a step. A nil list has no steps.
func (s *steps) add(t *Tensor) {
	if s == nil {
		return
	}
	t.step().steps = s
	t.v.Mark(stream.MarkStep)
	s.list = append(s.list, t)
	if s.wanted {
		stream.Want(&t.v)
	}
}

// leave makes t, a step, a tensor like others.
func (t *Tensor) leave() {
	t.step().steps = nil
	t.v.Unmark(stream.MarkStep)
}

// Step, Use, Take and End are for package autodiff: see adhook.Steps.

func (s *steps) Step(t *Tensor, plain bool) *Tensor {
	r := markedHandle(t)
	s.add(r)
	if plain {
		r.v.Mark(stream.MarkPlain)
	}
	return r
}

func (s *steps) Use(t *Tensor) *Tensor {
	if s.used != nil || !t.v.Roomy() || t.v.Marks()&stream.MarkStep != 0 {
		return s.Step(t, false)
	}
	t.step().steps = s
	t.v.Mark(stream.MarkStep)
	s.used = t
	return t
}

func (s *steps) Take(t *Tensor) bool {
	k := slices.Index(s.list, t)
	if k < 0 || t.v.Now() != &t.v {
		return false
	}
	s.list = slices.Delete(s.list, k, k+1)
	t.leave()
	return true
}

func (s *steps) End() {
	for _, t := range s.list {
		s.release(t)
	}
	if s.used != nil {
		s.used.leave()
		s.used = nil
	}
	s.free()
}

func (s *steps) release(t *Tensor) {
	switch {
	case !s.wanted:
		done(t)
	case t.made():
		stream.LetGo(&t.v)
	}
}

// handle makes a step of the value that t names now.
func (s *steps) handle(t *Tensor) *Tensor {
	r := markedHandle(t)
	s.add(r)
	return r
}

// part is the steps of a list from number from on.
type part struct {
	*steps
	from int
}

// within begins a part of a composite, of which one of the tensors is a step. The end of the part
// releases the steps that were made since. A long composite has parts, to release its steps early.
func within(ts ...*Tensor) part {
	for _, t := range ts {
		if s := t.steps(); s != nil {
			return part{s, len(s.list)}
		}
	}
	return part{}
}

// end releases the steps of the part, from the first to the last, but for the results.
func (p part) end(results ...**Tensor) {
	if p.steps == nil {
		return
	}
	left := p.list[:p.from]
	for _, t := range p.list[p.from:] {
		if slices.ContainsFunc(results, func(r **Tensor) bool { return *r == t }) {
			left = append(left, t)
		} else {
			p.release(t)
		}
	}
	clear(p.list[len(left):])
	p.list = left
}

// inTurn returns f(… f(f(x, 0), 1) …, n-1). It releases each intermediate result when the next one
// is there.
func inTurn(n int, x *Tensor, f func(x *Tensor, i int) *Tensor) *Tensor {
	p := within(x)
	for i := range n {
		x = f(x, i)
		p.end(&x)
	}
	return x
}

// composite is a composite op that is being recorded.
type composite struct {
	part
	name  string
	bad   *Tensor              // the result where an operand carries an error, was released, or was never made
	call  *adhook.Call[Tensor] // what autodiff will be told, or nil
	own   int                  // number of its own handles, the first steps of the part
	outer bool                 // the list is its own
	to    *steps               // the list that the results join, or nil
}

// compose begins a composite op. Each variable, up to three, then names a step with the value that
// its tensor has now; a nil pointer stands for an operand that is left out. Errors name the op. If
// there is a rule, package autodiff sees one op, else the ops of which it consists.
func compose(name string, rule adhook.Composite, ts ...**Tensor) (c composite) {
	var given [3]*Tensor
	for i, t := range ts {
		if t != nil {
			given[i] = *t
		}
	}
	c.name = name
	c.begin(within(given[:]...).steps)
	if rule != nil && followed(given[:]...) {
		c.call = &adhook.Call[Tensor]{Name: name, With: rule}
	}
	for i, t := range ts {
		if t == nil {
			continue
		}
		if k := slices.Index(given[:i], given[i]); k < 0 || ts[k] == nil {
			*t = c.operand(i, given[i])
			continue
		} else if *t = *ts[k]; c.call != nil { // an op sees one value of a handle
			c.call.In[i] = c.call.In[k]
		}
	}
	if c.call != nil {
		wantOperands(&c.call.In)
	}
	return c
}

// optional is a variable for compose, nil if the program left the operand out.
func optional(t **Tensor) **Tensor {
	if *t == nil {
		return nil
	}
	return t
}

// composeAll is compose for operands in a list.
func composeAll(name string, ts []*Tensor) (own []*Tensor, c composite) {
	c.name = name
	c.begin(within(ts...).steps)
	own = make([]*Tensor, len(ts))
	for i, t := range ts {
		if k := slices.Index(ts[:i], t); k >= 0 {
			own[i] = own[k]
		} else {
			own[i] = c.operand(i, t)
		}
	}
	return own, c
}

// composeIn is compose for an op without operands. A tensor made in the returned place is a step.
func composeIn(name string, p at) (at, composite) {
	c := composite{name: name}
	c.begin(p.steps)
	p.steps = c.steps
	return p, c
}

// begin begins a part of s. If there is no s, or its steps are wanted, it begins a new list.
func (c *composite) begin(s *steps) {
	if c.outer = s == nil || s.wanted; c.outer {
		c.to, s = s, newSteps(false)
	}
	c.part = part{s, len(s.list)}
}

// operand returns the step for operand i.
func (c *composite) operand(i int, t *Tensor) *Tensor {
	r := t
	switch {
	case t == nil:
	case c.call != nil: // autodiff sees the operand, and nothing that is computed from it
		c.call.In[i] = still(t)
		r = plainly(c.call.In[i])
		c.add(r)
		c.own++
	case t.steps() != c.steps:
		r = c.handle(t)
		c.own++
	}
	if c.bad == nil {
		c.bad = unusable(c.name, r)
	}
	return r
}

// end ends the op: it releases its steps but for the results.
func (c *composite) end(results ...**Tensor) {
	for _, r := range results {
		if slices.Contains(c.list[c.from:c.from+c.own], *r) { // an operand is the result
			*r = (*r).same()
		}
	}
	c.part.end(results...)
	if c.outer {
		for _, r := range results {
			if t := *r; t.steps() == c.steps {
				t.leave()
				c.to.add(t)
			}
		}
		c.free()
	}
	if c.call == nil {
		return
	}
	if r := *results[0]; r != nil && r.v.Cause() == nil {
		c.call.Out = r
		r.signedAs(c.name, c.call.With, c.call.In[:])
		tell(c.call)
	} else {
		endOperands(&c.call.In)
	}
}
