package autodiff

import (
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/internal/operror"
)

// JVP returns f's results for in and their directional derivatives along v:
//
//	d[k] = Σ_i ∂out[k]/∂in[i] · v[i]
//
// It is PyTorch's torch.func.jvp and JAX's jax.jvp. v has one tensor for each of in, with its shape
// and dtype; all of in are floats. out[k] and d[k] have the shape and dtype of f's result k. They
// are not followed, and f's results are released. in need not be watched.
//
// JVP returns an error if f is nil or v has another length than in (ErrShape), if a result of f
// carries an error or is not a float (ErrDType), if some v[i] does not fit (ErrShape), or if an op
// within f has no rule ([ErrGraph]).
//
// Cost: one forward pass and two backward passes, because JVP takes the derivative of a VJP. The
// first backward pass keeps the graph, with all values that the second one needs.
func JVP(f func(in []*millrace.Tensor) []*millrace.Tensor, in, v []*millrace.Tensor) (out, d []*millrace.Tensor, err error) {
	by := operror.TrailHere()
	if f == nil || len(v) != len(in) {
		return nil, nil, fmt.Errorf("jvp at %s: %w: the function is nil, or %d directions were given for %d tensors", by, millrace.ErrShape, len(v), len(in))
	}
	before := adhook.Count.Load()
	ws := Options{}.watchAll(in)
	defer letGo(ws...)
	followed := f(ws)
	us := make([]*tensor, len(followed)) // VJP is linear in them, so their values do not matter
	for i, t := range followed {
		if err := t.Err(); err != nil {
			return nil, nil, fmt.Errorf("jvp at %s: result %d: %w", by, i, err)
		}
		zero := zerosLike(t, t.Shape())
		us[i] = Watch(zero)
		root.LetGo(zero)
	}
	defer letGo(us...)
	back, err := Options{Follow: true}.vjp(by, "jvp", followed, us, ws)
	if err != nil {
		return nil, nil, err
	}
	inner := within(append(back, followed...), before)
	d, err = Options{}.products(by, "jvp", back, v, us)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range followed {
		out = append(out, Detach(t))
	}
	own := made(followed, ws, before)
	severed(inner, &by)
	letGo(back...)
	letGo(own...)
	return out, d, nil
}

// HessianVectorProduct returns H·v, where f's result for in is one number and H is the matrix of
// its second derivatives:
//
//	r[i] = Σ_j ∂²f/∂in[i]∂in[j] · v[j]
//
// It is PyTorch's torch.autograd.functional.hvp and JAX's jvp of grad. v has one tensor for each of
// in, with its shape and dtype; all of in are floats. r[i] has the shape and dtype of in[i]. in
// need not be watched.
//
// It returns an error if f is nil or v has another length than in (ErrShape), if f's result carries
// an error, has not one element (ErrShape) or is not a float (ErrDType), if some v[i] does not fit
// (ErrShape), or if an op within f has no rule ([ErrGraph]).
//
// Cost: one forward pass and two backward passes; the second one also goes back through the first.
// H is never stored.
func HessianVectorProduct(f func(in []*millrace.Tensor) *millrace.Tensor, in, v []*millrace.Tensor) ([]*millrace.Tensor, error) {
	by := operror.TrailHere()
	if f == nil || len(v) != len(in) {
		return nil, fmt.Errorf("hessianvectorproduct at %s: %w: the function is nil, or %d directions were given for %d tensors", by, millrace.ErrShape, len(v), len(in))
	}
	before := adhook.Count.Load()
	ws := Options{}.watchAll(in)
	defer letGo(ws...)
	loss := f(ws)
	grads, err := Options{Follow: true}.grad(by, loss, ws)
	if err != nil {
		return nil, err
	}
	inner := within(append(grads, loss), before)
	r, err := Options{}.products(by, "hessianvectorproduct", grads, v, ws)
	own := made([]*tensor{loss}, ws, before)
	severed(inner, &by)
	letGo(grads...)
	letGo(own...)
	return r, err
}
