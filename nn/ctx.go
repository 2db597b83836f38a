package nn

import (
	"errors"
	"sync"

	"github.com/millrace-go/millrace"
)

var (
	errNoParam  = errors.New("a Param is nil")
	errNoRandom = errors.New("the forward pass needs random numbers, but CtxOptions.Random is nil")
)

// CtxOptions say what a forward pass is for.
type CtxOptions struct {
	Train  bool            // layers such as Dropout and BatchNorm behave as in training
	Watch  bool            // weights are followed, which gradients need
	Random *Random         // source of random numbers; nil: drawing one is an error
	DType  millrace.DType  // dtype that layers compute in; Invalid: the dtype of their weights
	Scope  *millrace.Scope // owns the tensors that layers make from nothing or from weights alone; nil: no scope

	// As maps parameters to handles that the pass uses in their place. A Recording's function takes
	// parameters that it does not set as arguments and passes them here; otherwise the Recording
	// would keep their current values.
	As map[*Param]*millrace.Tensor

	// CheckFinite makes gradients report the first op that produced a number that is not finite:
	// see autodiff.Options.
	CheckFinite bool
}

// Ctx is one forward pass with its backward pass. Make one for each step, and end it with
// [Ctx.Commit]. A nil *Ctx behaves like [Eval].
type Ctx struct {
	opt CtxOptions

	mu      sync.Mutex
	uses    map[*Param]*use
	order   []*use // in order of first use
	watched []*use // in order of first use
	changed []*use // buffers with a new value, in order of their first update
	draws   int    // number of random tensors so far

	// For a part of a pass that is computed twice: the enclosing pass, the part's casts, and the
	// weights that the pass had cast before.
	first *Ctx
	casts map[*Param]*millrace.Tensor
	lows  map[*Param]bool
	// For the second run: the part's own values of buffers.
	repeat bool
	fresh  map[*Param]*millrace.Tensor
}

// use is a parameter in a pass.
type use struct {
	p      *Param
	handle *millrace.Tensor
	low    *millrace.Tensor // in the compute dtype, once used
	fresh  *millrace.Tensor // a buffer's new value
}

// end releases the pass's handle, unless it is the parameter's own. Calling it twice is harmless.
func (u *use) end() {
	if u.handle != u.p.t {
		drop(u.handle)
	}
}

// Eval returns a forward pass for inference: nothing is followed, dropped or updated.
func Eval() *Ctx { return new(Ctx) }

// NewCtx makes a forward pass.
func NewCtx(opt CtxOptions) *Ctx { return &Ctx{opt: opt} }

// Training reports whether layers behave as in training.
func (c *Ctx) Training() bool { return c != nil && c.opt.Train }

// DType is the dtype that layers compute in; Invalid means the dtype of their weights.
func (c *Ctx) DType() millrace.DType {
	if c == nil {
		return millrace.Invalid
	}
	return c.opt.DType
}

// Cast casts x to c's compute dtype. It returns x itself if x has that dtype already, if c has
// none, or if x is not of floats. The shape is x's; an error of x is carried on.
func (c *Ctx) Cast(x *millrace.Tensor) *millrace.Tensor {
	if dt := c.DType(); dt != millrace.Invalid && x.DType() != dt && x.DType().IsFloat() {
		return x.Cast(dt)
	}
	return x
}

// follows reports whether the pass prepares gradients.
func (c *Ctx) follows() bool { return c != nil && c.opt.Watch }

// result is the dtype of the result of a layer that computes in another dtype.
func (c *Ctx) result(x *millrace.Tensor) millrace.DType {
	if dt := c.DType(); dt != millrace.Invalid {
		return dt
	}
	return x.DType()
}

// plain reports whether the pass uses parameters without casts, watching or replacements.
func (c *Ctx) plain() bool {
	if c == nil {
		return true
	}
	if c.opt.Watch || c.opt.Scope != nil || len(c.opt.As) > 0 || c.opt.DType != millrace.Invalid {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.changed) == 0
}

// use returns the handle of a parameter in this pass.
func (c *Ctx) use(p *Param, cast bool) *millrace.Tensor {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first != nil {
		return c.useInPart(p, cast)
	}
	u := c.of(p)
	switch {
	case p.buffer && u.fresh != nil:
		return u.fresh
	case !cast || !c.lowers(p, u.handle):
		return u.handle
	case u.low == nil:
		u.low = u.handle.Cast(c.opt.DType)
	}
	return u.low
}

// lowers reports whether the pass computes in another dtype than the parameter's own.
func (c *Ctx) lowers(p *Param, handle *millrace.Tensor) bool {
	dt := c.opt.DType
	return !p.buffer && dt != millrace.Invalid && handle.DType() != dt && handle.DType().IsFloat()
}

// of returns the use of a parameter and creates it at first use. The caller holds c's lock.
func (c *Ctx) of(p *Param) *use {
	if u := c.uses[p]; u != nil {
		return u
	}
	u := &use{p: p, handle: p.t}
	if as := c.opt.As[p]; as != nil {
		u.handle = as
	} else if c.opt.Scope != nil {
		u.handle = p.t.To(c.opt.Scope)
	}
	if c.opt.Watch && !p.buffer && !p.Frozen() {
		own := *u
		u.handle = c.opt.watched(own.handle)
		if own.handle != c.opt.As[p] {
			own.end() // leaves one handle fewer of the value when a new one is set
		}
		c.watched = append(c.watched, u)
	}
	if c.uses == nil {
		c.uses = map[*Param]*use{}
	}
	c.uses[p] = u
	c.order = append(c.order, u)
	return u
}

// Used lists the weights and buffers that the pass has used and not given a new value so far.
func (c *Ctx) Used() []*Param {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*Param
	for _, u := range c.order {
		if u.fresh == nil {
			list = append(list, u.p)
		}
	}
	return list
}

// Changed lists the buffers that the pass has given new values so far, with these values, in the
// order of their first update. If random numbers were drawn, the last one is the counter of
// CtxOptions.Random. It is for a caller that sets them itself, in place of [Ctx.Commit].
func (c *Ctx) Changed() (buffers []*Param, values []*millrace.Tensor) {
	if c == nil {
		return nil, nil
	}
	if c.first != nil {
		return c.first.Changed()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.changed {
		buffers = append(buffers, u.p)
		values = append(values, u.fresh)
	}
	if c.draws > 0 {
		counter := c.of(c.opt.Random.Counter)
		buffers = append(buffers, counter.p)
		values = append(values, counter.handle.AddScalar(float64(c.draws)))
	}
	return buffers, values
}

func (c *Ctx) update(p *Param, t *millrace.Tensor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.repeat:
		c.fresh[p] = t
		return
	case c.first != nil:
		c.first.update(p, t)
		return
	}
	u := c.of(p)
	if u.fresh == nil {
		c.changed = append(c.changed, u)
	}
	u.fresh = detached(t)
}

// Watched lists the weights that the pass used with their followed handles, in the order of first
// use. Gradients are taken with respect to these handles. Shapes and dtypes are those of the
// weights. Both lists are nil if c is nil or follows no weights.
func (c *Ctx) Watched() (params []*Param, handles []*millrace.Tensor) {
	if c == nil {
		return nil, nil
	}
	if c.first != nil {
		return c.first.Watched()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.watched {
		params = append(params, u.p)
		handles = append(handles, u.handle)
	}
	return params, handles
}

// Release drops the handles that the pass made of parameters. They must not be used any more, nor
// gradients with respect to them be taken. It is for a pass that is abandoned; Commit does it for
// others.
func (c *Ctx) Release() {
	if c == nil || c.first != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release()
}

func (c *Ctx) release() {
	for _, u := range c.uses {
		u.end()
		drop(u.low)
	}
	clear(c.uses)
	c.watched = nil
}

// Commit ends a successful step, after the gradients are taken and before the weights get new
// values. Buffers get the values that the pass made, the next pass draws other random numbers, and
// the followed handles are released, which lets a weight's new value reuse its old memory. If a
// buffer's new value carries an error, Commit returns it and changes no buffer. Commit does not
// wait for values.
func (c *Ctx) Commit() error { return c.CommitIf(nil) }

// CommitIf is [Ctx.Commit] if ok, a Bool tensor of one element, is true; else buffers keep their
// values. The next pass draws other random numbers in both cases. The error is that of Commit.
func (c *Ctx) CommitIf(ok *millrace.Tensor) error {
	if c == nil || c.first != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		c.changed = nil
		c.release()
	}()
	for _, u := range c.changed {
		if err := u.fresh.Err(); err != nil {
			return err
		}
	}
	for _, u := range c.changed {
		fresh := u.fresh
		if ok != nil {
			fresh = millrace.Where(ok, fresh, u.handle)
			defer drop(fresh)
		}
		u.end() // frees the memory for the new value
		u.p.t.Set(fresh)
	}
	if c.draws > 0 {
		counter := c.opt.Random.Counter.t
		u := c.of(c.opt.Random.Counter) // on the pass's stream
		next := u.handle.AddScalar(float64(c.draws))
		u.end()
		counter.Set(next)
		drop(next)
		c.draws = 0
	}
	return nil
}
