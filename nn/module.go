package nn

import "github.com/millrace-go/millrace"

// Module is what takes one tensor and gives one, as most layers do.
type Module interface {
	Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor
}

// Sequential are modules one after another; their parameters' names begin with their
// positions.
type Sequential []Module

// NewSequential makes a Sequential.
func NewSequential(ms ...Module) Sequential { return ms }

// Forward gives what the last one gives.
func (s Sequential) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	for _, m := range s {
		x = m.Forward(c, x)
	}
	return x
}
