package nn

import "github.com/millrace-go/millrace"

// Module is what takes one tensor and gives one, as most layers do.
type Module interface {
	Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor
}
