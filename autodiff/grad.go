package autodiff

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/internal/operror"
)

// ErrGraph is the error of a gradient that cannot be taken: the graph was given up by an earlier
// Grad, an op has no rule, or a tensor is not watched. Test for it with errors.Is.
var ErrGraph = errors.New("no gradient")

// Options say how gradients are taken. The zero value is the behaviour of the package's functions
// of the same names.
type Options struct {
	// Keep keeps the graph, so gradients can be taken through it again. Without Keep, each op
	// releases the values that it kept as soon as its gradient is known. PyTorch: retain_graph.
	Keep bool
	// Follow makes the gradients followed tensors, so they can be differentiated again. It keeps
	// the graph, too. PyTorch: create_graph.
	Follow bool
	// CheckFinite returns an error ([ErrGraph]) if a loss or a gradient has NaN or an infinity. The
	// error names the first op whose result had one; an op of the forward pass is named only if its
	// tensors were watched with CheckFinite. It reads every result from the device, so it is slow:
	// use it to find a fault. PyTorch: detect_anomaly.
	CheckFinite bool
	// Ready, if not nil, is called with each gradient as soon as no further op adds to it, while the
	// gradients of earlier ops are still to come: a program may begin to send it to other machines.
	// i is the gradient's index. Those of tensors that were watched in the course of the forward
	// pass, as nn's weights are, come from the last to the first; those that are zeros come last.
	// The handle is the one that is returned; it is released if an error is returned.
	Ready func(i int, grad *millrace.Tensor)
}

// Watch returns a new handle of t's value, with t's shape and dtype. Every op on that handle is
// followed, so gradients by it can be taken. Ops on t itself are not affected. The handle stays
// watched when Set gives it another value, so it can be a weight in every step of training. It
// belongs to t's scope, if t is in one. No element is copied. It is PyTorch's requires_grad_, on a
// new handle.
//
// t must be of floats (Float16, BFloat16, Float32 or Float64); of another dtype the result carries
// [millrace.ErrDType]. If t carries an error, the result carries it.
func Watch(t *millrace.Tensor) *millrace.Tensor { return Options{}.Watch(t) }

// Watch is the function [Watch] with options: the same shape, dtype and errors. Of the options only
// CheckFinite matters here.
func (o Options) Watch(t *millrace.Tensor) *millrace.Tensor {
	if t.Err() == nil && !t.DType().IsFloat() {
		return hostapi.Fail("watch", fmt.Errorf("%w: a tensor of %v cannot be watched, only floats", millrace.ErrDType, t.DType()), []any{t}).(*tensor)
	}
	if t.Err() != nil {
		return t.Neg() // the result carries t's error, or that of a nil tensor
	}
	return root.Watch(t, &node{seq: adhook.Count.Add(1), where: operror.TrailHere(), debug: o.CheckFinite})
}

// Watched reports that ops on t are followed: t is watched, or computed from a watched tensor.
func Watched(t *millrace.Tensor) bool { return t != nil && root.Node(t) != nil }

// Detach returns a new handle of t's value that is not followed: gradients treat it as a constant.
// Shape and dtype are t's, and an error of t is carried on. No element is copied. It is PyTorch's
// detach and JAX's stop_gradient.
func Detach(t *millrace.Tensor) *millrace.Tensor {
	if !Watched(t) {
		if t == nil {
			return t.Neg()
		}
		return t.Reshape(t.Shape()...)
	}
	return unfollowed(t)
}

// Grad returns the gradient of loss, one number, by each of the tensors wrt:
//
//	grads[i] = ∂loss/∂wrt[i]
//
// It is PyTorch's torch.autograd.grad. (JAX's jax.grad takes a function: see [ValueAndGrad].)
// wrt[i] is watched, or computed from a watched tensor, and of floats. grads[i] has its shape and
// dtype, and belongs to loss's scope. It is zeros if loss does not depend on wrt[i], or only
// through integers and bits.
//
// Grad returns an error if loss has more or fewer elements than one (ErrShape), if loss or some
// wrt[i] carries an error or is not of floats (ErrDType), if some wrt[i] is not watched, if an op
// between has no rule, if an earlier Grad gave up the graph, or if wrt[i] is on another device and
// loss does not depend on it (all [ErrGraph]). An error of a value on the way is carried by the
// gradients.
//
// Cost: Grad only records ops; they run when a gradient is needed. The ops between wrt and loss
// release the values that they kept, so a second Grad through them fails, unless [Options].Keep is
// set.
func Grad(loss *millrace.Tensor, wrt ...*millrace.Tensor) ([]*millrace.Tensor, error) {
	return Options{}.grad(operror.TrailHere(), loss, wrt)
}

// Grad is the function [Grad] with options: the same shapes, dtypes and errors. With CheckFinite it
// also returns [ErrGraph] if a number on the way is not finite.
func (o Options) Grad(loss *millrace.Tensor, wrt ...*millrace.Tensor) ([]*millrace.Tensor, error) {
	return o.grad(operror.TrailHere(), loss, wrt)
}

func (o Options) grad(by operror.Trail, loss *tensor, wrt []*tensor) ([]*tensor, error) {
	if err := loss.Err(); err != nil {
		return nil, fmt.Errorf("grad at %s: the loss: %w", by, err)
	}
	if loss.Len() != 1 {
		return nil, fmt.Errorf("grad at %s: %w: a loss of shape %v has no gradient: it must be one number; use Sum or VJP", by, millrace.ErrShape, loss.Shape())
	}
	return o.vjp(by, "grad", []*tensor{loss}, []*tensor{nil}, wrt)
}

// VJP returns vector-Jacobian products, which is what gradients by outs become on the way back to
// wrt:
//
//	grads[i] = Σ_k (∂outs[k]/∂wrt[i])ᵀ · cots[k]
//
// It is PyTorch's torch.autograd.grad with grad_outputs, and JAX's jax.vjp. cots[k] has the shape
// and dtype of outs[k], else VJP returns ErrShape; no cots[k] is nil ([ErrGraph]). Otherwise the
// rules, errors and cost are those of [Grad], but outs may have any shape.
func VJP(outs, cots, wrt []*millrace.Tensor) ([]*millrace.Tensor, error) {
	return Options{}.products(operror.TrailHere(), "vjp", outs, cots, wrt)
}

// VJP is the function [VJP] with options: the same shapes, dtypes and errors. With CheckFinite it
// also returns [ErrGraph] if a number on the way is not finite.
func (o Options) VJP(outs, cots, wrt []*millrace.Tensor) ([]*millrace.Tensor, error) {
	return o.products(operror.TrailHere(), "vjp", outs, cots, wrt)
}

// products is vjp for cots of which none may be nil.
func (o Options) products(by operror.Trail, name string, outs, cots, wrt []*tensor) ([]*tensor, error) {
	if i := slices.Index(cots, nil); i >= 0 {
		return nil, fmt.Errorf("%s at %s: %w: the vector for result %d is nil", name, by, ErrGraph, i)
	}
	return o.vjp(by, name, outs, cots, wrt)
}

// vjp walks back from outs. A nil in cots stands for ones.
func (o Options) vjp(by operror.Trail, name string, outs, cots, wrt []*tensor) (ds []*tensor, err error) {
	fail := func(format string, args ...any) ([]*tensor, error) {
		return nil, fmt.Errorf(name+" at %s: "+format, append([]any{by}, args...)...)
	}
	o.Keep = o.Keep || o.Follow
	if len(cots) != len(outs) {
		return fail("%w: %d gradients were given for %d results", millrace.ErrShape, len(cots), len(outs))
	}
	goals := make([]link, len(wrt))
	for i, t := range wrt {
		if err := t.Err(); err != nil {
			return fail("argument tensor %d: %w", i, err)
		}
		if goals[i] = linkOf(t); goals[i].node == nil {
			return fail("%w: argument tensor %d is not watched", ErrGraph, i)
		}
		if !t.DType().IsFloat() { // Set may have given the watched handle a value of any dtype
			return fail("%w: argument tensor %d has dtype %v: floats only", millrace.ErrDType, i, t.DType())
		}
	}
	for i, t := range outs {
		if err := t.Err(); err != nil {
			return fail("result %d: %w", i, err)
		}
		if !t.DType().IsFloat() {
			return fail("%w: result %d has dtype %v: floats only", millrace.ErrDType, i, t.DType())
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
		return fail("%w: no results were given", ErrGraph)
	}
	if o.CheckFinite {
		if err := firstNotFinite(outs); err != nil {
			return fail("%w", err)
		}
	}
	b := newWalk(o, &by, goals)
	defer func() { // also if a function of the program panics
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
		if err == nil && b.found[goals[i]] == nil && !root.OneDevice(t, outs[0]) {
			err = fmt.Errorf("%w: argument tensor %d, %s at %s, is on device %s, and the results on %s do not depend on it",
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
		case d == nil: // zeros in the results' scope, like the other gradients
			d = root.Full(outs[0], t.DType(), 0, t.Shape())
			b.found[goals[i]] = d
			b.ready(goals[i])
		case slices.Index(goals, goals[i]) < i: // the same tensor was given before
			d = root.Hold(d)
		}
		ds = append(ds, d)
	}
	return ds, nil
}

// seed is a handle of the gradient that a walk starts with.
func seed(t, cot *tensor, followed bool) *tensor {
	switch {
	case cot == nil:
		return fullLike(t, 1, t.Shape()...)
	case followed || !Watched(cot):
		return root.Hold(cot)
	}
	return Detach(cot)
}

// ValueAndGrad calls f with watched handles of in. It returns f's result, one number, and the
// gradients by each of in:
//
//	grads[i] = ∂f(in)/∂in[i]
//
// It is JAX's jax.value_and_grad. in need not be watched, but must be of floats. grads[i] has the
// shape and dtype of in[i]. value is not followed, and f's own result is released. If an error is
// returned, value is f's result.
//
// It returns an error if f is nil, and the errors of [Grad].
func ValueAndGrad(f func(in []*millrace.Tensor) *millrace.Tensor, in ...*millrace.Tensor) (value *millrace.Tensor, grads []*millrace.Tensor, err error) {
	return Options{}.ValueAndGrad(f, in...)
}

// ValueAndGrad is the function [ValueAndGrad] with options: the same shapes, dtypes and errors.
// With Follow, value is f's own result, still followed.
func (o Options) ValueAndGrad(f func(in []*millrace.Tensor) *millrace.Tensor, in ...*millrace.Tensor) (value *millrace.Tensor, grads []*millrace.Tensor, err error) {
	by := operror.TrailHere()
	if f == nil {
		return nil, nil, fmt.Errorf("valueandgrad at %s: the function is nil", by)
	}
	before := adhook.Count.Load()
	ws := o.watchAll(in)
	if !o.Follow { // with Follow, functions within f may use them when gradients are taken again
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

// watchAll makes watched handles of tensors. With Follow, a followed tensor gets a second handle of
// the same node.
func (o Options) watchAll(in []*tensor) []*tensor {
	ws := make([]*tensor, len(in))
	for i, t := range in {
		if Watched(t) && o.Follow {
			ws[i] = root.Hold(t)
		} else {
			ws[i] = o.Watch(t)
		}
	}
	return ws
}
