package nn

import (
	"sync/atomic"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hold"
)

// Param is state of a module: a weight, which is learned, or a buffer, such as a running mean,
// which is saved and loaded but has no gradient. Weights are tied if a layer occurs in several
// places of a model, or if several layers share a Param; they count as one Param.
type Param struct {
	t      *millrace.Tensor
	buffer bool
	frozen atomic.Bool
	turn   hold.Turn  // of the optimiser that changes it with others; nil: none
	part   *hold.Part // which elements it has, if it is a part of a larger tensor
}

// NewParam makes a weight of a tensor and owns its handle from now on: the value changes by
// [millrace.Tensor.Set], the pointer never does. The tensor should belong to no scope.
func NewParam(t *millrace.Tensor) *Param { return &Param{t: t} }

// NewBuffer makes a buffer of a tensor. Otherwise it is like [NewParam].
func NewBuffer(t *millrace.Tensor) *Param { return &Param{t: t, buffer: true} }

// Tensor is the parameter's own handle, with its shape, in the dtype that stores it. It carries the
// error of the constructor that made the parameter, if there was one. It is nil for a nil Param.
func (p *Param) Tensor() *millrace.Tensor {
	if p == nil {
		return nil
	}
	return p.t
}

// Buffer reports whether p is a buffer, which is not learned.
func (p *Param) Buffer() bool { return p != nil && p.buffer }

// Freeze stops (true) or resumes (false) the learning of a weight: a frozen one has no gradient,
// and optimisers do not change it. It takes effect in the next forward pass.
func (p *Param) Freeze(on bool) { p.frozen.Store(on) }

// Frozen reports whether a weight is frozen.
func (p *Param) Frozen() bool { return p != nil && p.frozen.Load() }

// In returns the handle for a forward pass, with the parameter's shape. It is followed if c follows
// weights and p is a weight that is not frozen. It has c's compute dtype if c has one. One pass
// always gets the same handle, so tied weights have one gradient. A buffer has the value of the
// pass's last [Param.Update]. A nil Param gives a tensor with an error.
func (p *Param) In(c *Ctx) *millrace.Tensor {
	if p == nil {
		return fail("param", errNoParam)
	}
	if c.plain() {
		return p.t
	}
	return c.use(p, true)
}

// master is In without the cast to c's compute dtype.
func (p *Param) master(c *Ctx) *millrace.Tensor {
	if c.plain() {
		return p.t
	}
	return c.use(p, false)
}

// Update gives a buffer a new value. The rest of the pass sees it at once; other passes see it
// after [Ctx.Commit], even if the pass does not train. With a nil c the value is set at once.
func (p *Param) Update(c *Ctx, t *millrace.Tensor) {
	if c == nil {
		p.t.Set(t)
		return
	}
	c.update(p, t)
}
