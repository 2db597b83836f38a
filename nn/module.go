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

// Forward passes x through the modules and returns the last one's result; x if there is none.
// Shapes, dtypes and errors are those of the modules.
func (s Sequential) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	for _, m := range s {
		x = m.Forward(c, x)
	}
	return x
}
