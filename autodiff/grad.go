package autodiff

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/follow"
	"github.com/millrace-go/millrace/internal/handle"
	"github.com/millrace-go/millrace/operror"
)

// ErrGraph: a gradient that cannot be taken: of a graph that was given up, through an op
// without a rule, by a tensor that is not watched. Test for it with errors.Is.
var ErrGraph = errors.New("no gradient")

// Options say how gradients are taken. The zero value is how the package's functions of
// the same names do.
type Options struct {
	// Keep the graph, so that gradients can be taken through it again. Otherwise each op
	// gives up what it kept as soon as its gradient is known.
	Keep bool
	// Follow the gradients, too, so that they can be differentiated. It keeps the graph.
	Follow bool
	// CheckFinite has a loss or gradient that is not finite be an error that names the
	// first op that made one; of tensors watched with the same option, the first op of
	// the forward pass. It reads every result: it is for finding a fault.
	CheckFinite bool
}

// Watch is a new handle of t's value of which every op is followed: gradients by it can
// be asked for. t itself is as it was. It stays watched when Set gives it another value,
// so that it may be a weight from one step to the next; it is in t's scope, if t is in one.
// For a tensor without gradients (of integers, say), or one that carries an error, the
// result carries an error.
func Watch(t *millrace.Tensor) *millrace.Tensor { return Options{}.Watch(t) }

// Watch is the function of this name, with options.
func (o Options) Watch(t *millrace.Tensor) *millrace.Tensor {
	if t.Err() == nil && !t.DType().IsFloat() {
		return handle.Fail("watch", fmt.Errorf("%w: %v tensor: floats only", millrace.ErrDType, t.DType()), []any{t}).(*tensor)
	}
	if t.Err() != nil {
		return t.Neg() // it carries the error on, or is none at all
	}
	return follow.Watch(t, &node{seq: recorded.Add(1), where: operror.TrailHere(), debug: o.CheckFinite}).(*tensor)
}

// Watched reports that ops on t are followed: it is watched, or computed from what is.
func Watched(t *millrace.Tensor) bool { return t != nil && follow.Node(t) != nil }

// Detach is t's value, computed from nothing as far as gradients are concerned.
func Detach(t *millrace.Tensor) *millrace.Tensor {
	if !Watched(t) {
		if t == nil {
			return t.Neg()
		}
		return t.Reshape(t.Shape()...)
	}
	return unfollowed(t)
}

// Grad is the gradient of loss, which has one element, by each of the tensors, which
// are watched or computed from such, floats only (else ErrDType): of their shapes and dtypes, zeros where loss does not
// depend on one, or only by way of integers and bits. They belong to loss's scope. The ops between give up what they kept; see
// [Options]. Errors of values ride in the gradients; an error that is returned says
// that the question itself makes no sense.
func Grad(loss *millrace.Tensor, wrt ...*millrace.Tensor) ([]*millrace.Tensor, error) {
	return Options{}.grad(operror.TrailHere(), loss, wrt)
}

// Grad is the function of this name, with options.
func (o Options) Grad(loss *millrace.Tensor, wrt ...*millrace.Tensor) ([]*millrace.Tensor, error) {
	return o.grad(operror.TrailHere(), loss, wrt)
}

func (o Options) grad(by operror.Trail, loss *tensor, wrt []*tensor) ([]*tensor, error) {
	if err := loss.Err(); err != nil {
		return nil, fmt.Errorf("grad at %s: the loss: %w", by, err)
	}
	if loss.Len() != 1 {
		return nil, fmt.Errorf("grad at %s: %w: a loss of shape %v has no gradient: it must be one number; sum it up, or ask VJP", by, millrace.ErrShape, loss.Shape())
	}
	return o.vjp(by, "grad", []*tensor{loss}, []*tensor{nil}, wrt)
}

// VJP is the sum over outs of the product of each's gradient by a tensor with cot, which
// has out's shape and dtype: what a gradient of outs becomes on its way back.
func VJP(outs, cots, wrt []*millrace.Tensor) ([]*millrace.Tensor, error) {
	return Options{}.products(operror.TrailHere(), "vjp", outs, cots, wrt)
}

// VJP is the function of this name, with options.
func (o Options) VJP(outs, cots, wrt []*millrace.Tensor) ([]*millrace.Tensor, error) {
	return o.products(operror.TrailHere(), "vjp", outs, cots, wrt)
}

// products is vjp with a tensor for each of outs: nil stands for none.
func (o Options) products(by operror.Trail, name string, outs, cots, wrt []*tensor) ([]*tensor, error) {
	if i := slices.Index(cots, nil); i >= 0 {
		return nil, fmt.Errorf("%s at %s: %w: tensor %d to multiply by is nil", name, by, ErrGraph, i)
	}
	return o.vjp(by, name, outs, cots, wrt)
}

// vjp walks back from outs; a cot that is nil is ones.
func (o Options) vjp(by operror.Trail, name string, outs, cots, wrt []*tensor) (ds []*tensor, err error) {
	fail := func(format string, args ...any) ([]*tensor, error) {
		return nil, fmt.Errorf(name+" at %s: "+format, append([]any{by}, args...)...)
	}
	o.Keep = o.Keep || o.Follow
	if len(cots) != len(outs) {
		return fail("%w: %d results and %d gradients of them", millrace.ErrShape, len(outs), len(cots))
	}
	goals := make([]link, len(wrt))
	for i, t := range wrt {
		if err := t.Err(); err != nil {
			return fail("tensor %d of those asked for: %w", i, err)
		}
		if goals[i] = linkOf(t); goals[i].node == nil {
			return fail("%w: tensor %d of those asked for is not watched", ErrGraph, i)
		}
		if !t.DType().IsFloat() { // a watched handle may have been Set to anything since
			return fail("%w: tensor %d of those asked for is of %v: floats only", millrace.ErrDType, i, t.DType())
		}
	}
	for i, t := range outs {
		if err := t.Err(); err != nil {
			return fail("result %d: %w", i, err)
		}
		if !t.DType().IsFloat() {
			return fail("%w: result %d is of %v: floats only", millrace.ErrDType, i, t.DType())
		}
		if c := cots[i]; c != nil {
			if err := c.Err(); err != nil {
				return fail("the gradient of result %d: %w", i, err)
			}
			if c.DType() != t.DType() || !slices.Equal(c.Shape(), t.Shape()) {
				return fail("%w: %v of %v for result %d, which is %v of %v", millrace.ErrShape, c.Shape(), c.DType(), i, t.Shape(), t.DType())
			}
		}
	}
	if len(outs) == 0 {
		return fail("%w: of no results", ErrGraph)
	}
	if o.CheckFinite {
		if err := firstNotFinite(outs); err != nil {
			return fail("%w", err)
		}
	}
	b := newWalk(o, &by, goals)
	defer func() { // also where a program's function panics
		b.forget()
		if ds == nil {
			b.abandon()
		}
	}()
	for i, t := range outs {
		to := linkOf(t)
		if to.node == nil || !b.leadsOn(to.node) {
			continue
		}
		b.give(to, seed(t, cots[i], o.Follow), nil)
	}
	err = b.run()
	for i, t := range wrt {
		if err == nil && b.found[goals[i]] == nil && !follow.OneDevice(t, outs[0]) {
			err = fmt.Errorf("%w: tensor %d of those asked for, %s at %s, is on device %s, and the results on %s do not depend on it",
				ErrGraph, i, goals[i].name(), goals[i].at(), t.Stream().Device().Name(), outs[0].Stream().Device().Name())
		}
	}
	if err != nil {
		return fail("%w", err)
	}
	ds = make([]*tensor, 0, len(wrt))
	for i, t := range wrt {
		d := b.found[goals[i]]
		switch {
		case d == nil: // in the results' scope, as the others
			d = follow.Full(outs[0], t.DType(), 0, t.Shape()).(*tensor)
			b.found[goals[i]] = d
		case slices.Index(goals, goals[i]) < i: // asked for twice
			d = follow.Hold(d).(*tensor)
		}
		ds = append(ds, d)
	}
	return ds, nil
}

// seed is a handle of the gradient that a walk starts from.
func seed(t, cot *tensor, followed bool) *tensor {
	switch {
	case cot == nil:
		return fullLike(t, 1, t.Shape()...)
	case followed || !Watched(cot):
		return follow.Hold(cot).(*tensor)
	}
	return Detach(cot)
}

// ValueAndGrad is f's result for in, one number, and its gradients by each of in, which
// need not be watched. The result is not followed; what f returned is released.
func ValueAndGrad(f func(in []*millrace.Tensor) *millrace.Tensor, in ...*millrace.Tensor) (value *millrace.Tensor, grads []*millrace.Tensor, err error) {
	return Options{}.ValueAndGrad(f, in...)
}

// ValueAndGrad is the function of this name, with options.
func (o Options) ValueAndGrad(f func(in []*millrace.Tensor) *millrace.Tensor, in ...*millrace.Tensor) (value *millrace.Tensor, grads []*millrace.Tensor, err error) {
	by := operror.TrailHere()
	if f == nil {
		return nil, nil, fmt.Errorf("valueandgrad at %s: nil function", by)
	}
	before := recorded.Load()
	ws := o.watchAll(in)
	if !o.Follow { // else functions within f may use them when gradients are taken again
		defer letGo(ws...)
	}
	loss := f(ws)
	own := made([]*tensor{loss}, ws, before)
	grads, err = o.grad(by, loss, ws)
	if err != nil || o.Follow {
		return loss, grads, err
	}
	value = Detach(loss)
	letGo(own...)
	return value, grads, nil
}

// watchAll watches tensors; those that are followed already are followed on.
func (o Options) watchAll(in []*tensor) []*tensor {
	ws := make([]*tensor, len(in))
	for i, t := range in {
		if Watched(t) && o.Follow {
			ws[i] = follow.Hold(t).(*tensor)
		} else {
			ws[i] = o.Watch(t)
		}
	}
	return ws
}
