package nn

import (
	"maps"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// Checkpoint returns f's results for in and stores only in for gradients. When gradients are taken,
// f runs a second time. The second run draws the same random numbers, and buffers are updated only
// once; [autodiff.Checkpoint] guarantees neither. f must take everything that it uses of the pass
// from the Ctx that it is given.
//
// Shapes, dtypes and errors of the results are those of f. If c follows no weights, or is nil,
// Checkpoint only calls f. Else an f that does something else in its second run is an error of the
// gradients, as for autodiff.Checkpoint.
//
// It saves the memory of f's inner values and costs one more forward computation of f (PyTorch's
// torch.utils.checkpoint).
func Checkpoint(c *Ctx, f func(c *Ctx, in []*millrace.Tensor) []*millrace.Tensor, in ...*millrace.Tensor) []*millrace.Tensor {
	if c == nil || !c.opt.Watch {
		return f(c, in)
	}
	again := c.again()
	first := true
	return autodiff.Checkpoint(func(in []*millrace.Tensor) []*millrace.Tensor {
		part := again(!first)
		first = false
		defer part.dropCasts()
		return f(part, in)
	}, in...)
}

// again returns a function that makes passes which repeat what c does from now on. They use c's
// weight handles, the current buffers and the same random numbers; updates are their own.
func (c *Ctx) again() func(repeat bool) *Ctx {
	from := c
	for from.first != nil && !from.repeat {
		from = from.first
	}
	from.mu.Lock()
	defer from.mu.Unlock()
	draws, fresh, lows := from.draws, maps.Clone(from.fresh), from.lows
	if lows == nil {
		lows = map[*Param]bool{}
		for p, u := range from.uses {
			lows[p] = u.low != nil
		}
	}
	if fresh == nil {
		fresh = map[*Param]*millrace.Tensor{}
	}
	for _, u := range from.changed {
		fresh[u.p] = u.fresh
	}
	return func(repeat bool) *Ctx {
		if !repeat {
			return &Ctx{opt: c.opt, first: c, lows: lows}
		}
		return &Ctx{opt: c.opt, first: c, draws: draws, repeat: true, fresh: maps.Clone(fresh), lows: lows}
	}
}

// useInPart is use for a part of a pass that is computed twice. The part casts weights for itself:
// its two runs share no casts, and it does not use casts that the pass made in between.
func (c *Ctx) useInPart(p *Param, cast bool) *millrace.Tensor {
	switch fresh := c.fresh[p]; {
	case fresh != nil:
		return fresh
	case p.buffer && !c.repeat:
		return c.first.use(p, false)
	}
	handle, low := c.around(p)
	if !cast || !c.lowers(p, handle) {
		return handle
	}
	if low == nil {
		low = c.casts[p]
	}
	if low == nil {
		low = handle.Cast(c.opt.DType)
		if c.casts == nil {
			c.casts = map[*Param]*millrace.Tensor{}
		}
		c.casts[p] = low
	}
	return low
}

// have returns the handle of a weight, and the cast one in the compute dtype if there is one.
func (c *Ctx) have(p *Param) (handle, low *millrace.Tensor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == nil {
		u := c.of(p)
		return u.handle, u.low
	}
	if handle, low = c.around(p); low == nil {
		low = c.casts[p]
	}
	return handle, low
}

// around returns the handles that the enclosing pass has of a weight.
func (c *Ctx) around(p *Param) (handle, low *millrace.Tensor) {
	handle, low = c.first.have(p)
	if c.first.first == nil && !c.lows[p] {
		low = nil
	}
	return handle, low
}

func (c *Ctx) dropCasts() {
	for _, t := range c.casts {
		drop(t)
	}
	c.casts = nil
}
