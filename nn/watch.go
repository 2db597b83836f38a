package nn

import (
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// This file has the package's use of gradients.

// watched returns a followed handle of t's value.
func (o CtxOptions) watched(t *millrace.Tensor) *millrace.Tensor {
	return autodiff.Options{CheckFinite: o.CheckFinite}.Watch(t)
}

// detached returns t's value without following; t itself if it is not followed.
func detached(t *millrace.Tensor) *millrace.Tensor {
	if !autodiff.Watched(t) {
		return t
	}
	return autodiff.Detach(t)
}
