package autodiff

import (
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/follow"
	"github.com/millrace-go/millrace/operror"
)

// JVP is f's results for in, and their derivatives along v, a tensor for each of in: the
// rates at which results change when in changes by v. Two passes back are one forward.
func JVP(f func(in []*millrace.Tensor) []*millrace.Tensor, in, v []*millrace.Tensor) (out, d []*millrace.Tensor, err error) {
	by := operror.TrailHere()
	if f == nil || len(v) != len(in) {
		return nil, nil, fmt.Errorf("jvp at %s: %w: nil function, or %d tensors with %d directions", by, millrace.ErrShape, len(in), len(v))
	}
	before := recorded.Load()
	ws := Options{}.watchAll(in)
	defer letGo(ws...)
	followed := f(ws)
	us := make([]*tensor, len(followed)) // VJP is linear in them: their value is of no account
	for i, t := range followed {
		if err := t.Err(); err != nil {
			return nil, nil, fmt.Errorf("jvp at %s: result %d: %w", by, i, err)
		}
		zero := zerosLike(t, t.Shape())
		us[i] = Watch(zero)
		follow.LetGo(zero)
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

// HessianVectorProduct is, for f's result, one number, the product of its second
// derivatives by in with v, a tensor for each of in.
func HessianVectorProduct(f func(in []*millrace.Tensor) *millrace.Tensor, in, v []*millrace.Tensor) ([]*millrace.Tensor, error) {
	by := operror.TrailHere()
	if f == nil || len(v) != len(in) {
		return nil, fmt.Errorf("hessianvectorproduct at %s: %w: nil function, or %d tensors with %d directions", by, millrace.ErrShape, len(in), len(v))
	}
	before := recorded.Load()
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
