package nn

import (
	"cmp"

	"github.com/millrace-go/millrace"
)

// Activations as modules, for [Sequential]. Those with a tensor method of the same name call that
// method.
type (
	ReLU      struct{}                // max(x, 0)
	GELU      struct{}                // x·Φ(x), with the normal distribution function Φ
	GELUTanh  struct{}                // GELU approximated by tanh, as PyTorch's approximate="tanh"
	SiLU      struct{}                // x·sigmoid(x)
	Tanh      struct{}                // the hyperbolic tangent
	Sigmoid   struct{}                // 1/(1+exp(-x))
	Softplus  struct{}                // log(1+exp(x))
	LeakyReLU struct{ Slope float64 } // x if x > 0, else Slope·x; Slope 0 stands for 0.01
	ELU       struct{ Alpha float64 } // x if x > 0, else Alpha·(exp(x)-1); Alpha 0 stands for 1
	Softmax   struct{ Axis int }      // exp(x)/Σexp(x) along Axis
	Identity  struct{}                // x
)

// Func makes a module of a function.
type Func func(c *Ctx, x *millrace.Tensor) *millrace.Tensor

// Forward returns [millrace.Tensor.Relu] of x, with x's shape and dtype.
func (ReLU) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Relu() }

// Forward returns [millrace.Tensor.Gelu] of x, with x's shape and dtype.
func (GELU) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Gelu() }

// Forward returns [millrace.Tensor.GeluTanh] of x, with x's shape and dtype.
func (GELUTanh) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.GeluTanh() }

// Forward returns [millrace.Tensor.Silu] of x, with x's shape and dtype.
func (SiLU) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Silu() }

// Forward returns [millrace.Tensor.Tanh] of x, with x's shape and dtype.
func (Tanh) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Tanh() }

// Forward returns [millrace.Tensor.Sigmoid] of x, with x's shape and dtype.
func (Sigmoid) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Sigmoid() }

// Forward returns [millrace.Tensor.Softplus] of x, with x's shape and dtype.
func (Softplus) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Softplus() }

// Forward returns x where x > 0, else Slope·x. The result has x's shape and dtype. Of integers, a
// Slope that is not whole is [millrace.ErrDType].
func (l LeakyReLU) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor {
	return millrace.Where(x.GtScalar(0), x, x.MulScalar(cmp.Or(l.Slope, 0.01)))
}

// Forward returns x where x > 0, else Alpha·(exp(x)-1). The result has x's shape and dtype. Floats
// only, else [millrace.ErrDType].
func (l ELU) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor {
	below := x.MinimumScalar(0) // keeps the branch that is not selected finite
	return millrace.Where(x.GtScalar(0), x, below.Expm1().MulScalar(cmp.Or(l.Alpha, 1)))
}

// Forward returns [millrace.Tensor.Softmax] of x along Axis, with x's shape and dtype. An Axis that
// x does not have is [millrace.ErrShape].
func (l Softmax) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x.Softmax(l.Axis) }

// Forward returns x itself, of whatever shape and dtype, even if it carries an error.
func (Identity) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor { return x }

// Forward calls f; shape, dtype and errors of the result are f's.
func (f Func) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor { return f(c, x) }

// Flatten joins the dimensions from Start on into one (PyTorch's nn.Flatten). Start 0 stands for 1,
// which keeps the batch dimension.
type Flatten struct{ Start int }

// Forward returns x with shape (batch, rest) if Start is 1, and x's dtype. A Start beyond x's rank
// is [millrace.ErrShape].
func (l Flatten) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor {
	shape, start := x.Shape(), cmp.Or(l.Start, 1)
	if start < 0 || start > len(shape) {
		return fail("flatten", shapeErr("dimension %d, the first to be joined, does not exist in %v", start, shape), x)
	}
	n := 1
	for _, d := range shape[start:] {
		n *= d
	}
	return x.Reshape(append(shape[:start], n)...)
}
