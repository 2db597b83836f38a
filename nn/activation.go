package nn

import (
	"cmp"

	"github.com/millrace-go/millrace"
)

// Activations as modules, for [Sequential]: those that a tensor has a method for do what
// that does.
type (
	ReLU      struct{}                // x where it is above 0, else 0
	GELU      struct{}                // x·Φ(x)
	GELUTanh  struct{}                // GELU by way of Tanh
	SiLU      struct{}                // x·sigmoid(x)
	Tanh      struct{}                // the hyperbolic tangent
	Sigmoid   struct{}                // 1/(1+exp(-x))
	Softplus  struct{}                // log(1+exp(x))
	LeakyReLU struct{ Slope float64 } // x where it is above 0, else Slope·x; 0 stands for 0.01
	ELU       struct{ Alpha float64 } // x where it is above 0, else Alpha·(exp(x)-1); 0 stands for 1
	Softmax   struct{ Axis int }      // positive, with a sum of 1 along Axis
	Identity  struct{}                // x
)

// Func is a function as a module.
type Func func(c *Ctx, x *millrace.Tensor) *millrace.Tensor

// Forward is [millrace.Tensor.Relu].
func (ReLU) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Relu() }

// Forward is [millrace.Tensor.Gelu].
func (GELU) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Gelu() }

// Forward is [millrace.Tensor.GeluTanh].
func (GELUTanh) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.GeluTanh() }

// Forward is [millrace.Tensor.Silu].
func (SiLU) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Silu() }

// Forward is [millrace.Tensor.Tanh].
func (Tanh) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Tanh() }

// Forward is [millrace.Tensor.Sigmoid].
func (Sigmoid) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Sigmoid() }

// Forward is [millrace.Tensor.Softplus].
func (Softplus) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Softplus() }

// Forward gives x's shape and dtype.
func (l LeakyReLU) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor {
	return millrace.Where(x.GtScalar(0), x, x.MulScalar(cmp.Or(l.Slope, 0.01)))
}

// Forward gives x's shape and dtype.
func (l ELU) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor {
	below := x.MinimumScalar(0) // so that what is not chosen is finite
	return millrace.Where(x.GtScalar(0), x, below.Expm1().MulScalar(cmp.Or(l.Alpha, 1)))
}

// Forward is [millrace.Tensor.Softmax].
func (l Softmax) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Softmax(l.Axis) }

// Forward gives x.
func (Identity) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x }

// Forward calls f.
func (f Func) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor { return f(c, x) }

// Flatten makes the dimensions from Start on one; those before it stay. 0 stands for 1:
// the batch's does.
type Flatten struct{ Start int }

// Forward gives (batch, rest) where Start is 1.
func (l Flatten) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor {
	shape, start := x.Shape(), cmp.Or(l.Start, 1)
	if start < 0 || start > len(shape) {
		return fail("flatten", shapeErr("%v from dimension %d", shape, start), x)
	}
	n := 1
	for _, d := range shape[start:] {
		n *= d
	}
	return x.Reshape(append(shape[:start], n)...)
}
