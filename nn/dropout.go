package nn

import "github.com/millrace-go/millrace"

// Dropout sets each number to 0 with probability P in training, and multiplies the others by
// 1/(1-P). Outside of training it returns its input.
type Dropout struct{ P float64 }

// NewDropout makes a Dropout.
func NewDropout(p float64) *Dropout { return &Dropout{p} }

// Forward returns a tensor of x's shape and dtype. In training it needs CtxOptions.Random. A P
// outside [0, 1] is [millrace.ErrShape], an x that is not of floats [millrace.ErrDType].
func (l *Dropout) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	return dropout("dropout", c, l.P, x)
}

func dropout(name string, c *Ctx, p float64, x *millrace.Tensor) *millrace.Tensor {
	switch {
	case !(p >= 0 && p <= 1):
		return fail(name, shapeErr("probability %v is not between 0 and 1", p), x)
	case !x.DType().IsFloat():
		return fail(name, dtypeErr("%v is not a float dtype; use Cast", x.DType()), x)
	case !c.Training() || p == 0:
		return x
	case c.opt.Random == nil:
		return fail(name, errNoRandom, x)
	}
	kept := c.Bernoulli(1-p, x.Shape()...)
	if p < 1 {
		x = x.MulScalar(1 / (1 - p))
	}
	return millrace.WhereScalar(kept, x, 0)
}
