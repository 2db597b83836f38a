package nn

import (
	"math"

	"github.com/millrace-go/millrace"
)

// Linear computes x·Wᵀ + b over the last dimension (PyTorch's nn.Linear).
type Linear struct {
	Weight *Param // (out, in)
	Bias   *Param // (out), or nil
}

// NewLinear makes a Linear. It takes [NoBias], [Weights] and [Biases]; weights and biases start
// uniform on ±1/√in.
func NewLinear(in, out int, opts ...Option) *Linear {
	o := settled("linear", opts, kNoBias|kWeights|kBiases)
	l := &Linear{Weight: o.draw(o.weights, initFan(in), out, in)}
	if !o.has(kNoBias) {
		l.Bias = o.draw(o.biases, initFan(in), out)
	}
	return l
}

// initFan is the start of PyTorch's Linear and Conv: uniform on ±1/√fan.
func initFan(fan int) Init {
	if fan <= 0 {
		return InitConstant(0)
	}
	a := 1 / math.Sqrt(float64(fan))
	return InitUniform(-a, a)
}

// Forward returns (…, out) for x of shape (…, in); another last dimension is [millrace.ErrShape].
// The dtype is c's compute dtype. If c has none, it is x's, and must be that of Weight, else
// [millrace.ErrDType].
func (l *Linear) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	x = c.Cast(x)
	w := l.Weight.In(c)
	if x.Rank() == 0 || w.Rank() != 2 || x.Dim(-1) != w.Dim(1) {
		return fail("linear", shapeErr("%v does not fit weights for %d features", x.Shape(), w.Dim(1)), x, w)
	}
	y := x.DotGeneral(w, nil, nil, []int{-1}, []int{1})
	if l.Bias != nil {
		y = y.Add(l.Bias.In(c))
	}
	return y
}
