package nn

import "github.com/millrace-go/millrace"

// Module maps one tensor to one tensor, as most layers do.
type Module interface {
	Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor
}

// Sequential applies modules one after another. Their parameters' names begin with their positions
// (PyTorch's nn.Sequential).
type Sequential []Module

// NewSequential makes a Sequential.
func NewSequential(ms ...Module) Sequential { return ms }

// Forward returns the result of the last module; x if there is none.
func (s Sequential) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	for _, m := range s {
		x = m.Forward(c, x)
	}
	return x
}
