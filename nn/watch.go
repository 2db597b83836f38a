package nn

import (
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// What the package needs of gradients is here.

// watched is a handle of t's value that is followed.
func (o CtxOptions) watched(t *millrace.Tensor) *millrace.Tensor {
	return autodiff.Options{CheckFinite: o.CheckFinite}.Watch(t)
}

// detached is t's value, not followed; t itself where it is not.
func detached(t *millrace.Tensor) *millrace.Tensor {
	if !autodiff.Watched(t) {
		return t
	}
	return autodiff.Detach(t)
}
