package millrace

import (
	"math"

	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/ir"
)

// The functions of this file have one operand. Shape and dtype of the result are t's; a dtype
// that the op does not take is ErrDType. docs/numerics.md lists the worst-case errors. NaN gives
// NaN unless an op says otherwise.

// Neg is -t, for numbers. Integers wrap around: the smallest signed value is its own negative, and
// for unsigned dtypes the result is modulo 2 to the width. Bool is ErrDType. The result has t's
// shape and dtype.
func (t *Tensor) Neg() *Tensor { return unary(ir.Neg, t) }

// Abs is the absolute value, for numbers. The smallest value of a signed integer dtype gives
// itself. Bool is ErrDType. The result has t's shape and dtype.
func (t *Tensor) Abs() *Tensor { return unary(ir.Abs, t) }

// Sign is -1, 0 or 1 by the sign of t, for numbers. Zeros keep their sign; NaN gives NaN. Bool is
// ErrDType. The result has t's shape and dtype.
func (t *Tensor) Sign() *Tensor { return unary(ir.Sign, t) }

// Sqrt is the square root, correctly rounded. Negative numbers give NaN. Floats only (else
// ErrDType). The result has t's shape and dtype.
func (t *Tensor) Sqrt() *Tensor { return unary(ir.Sqrt, t) }

// Rsqrt is 1/√t. ±0 gives ±Inf, and negative numbers give NaN. Floats only (else ErrDType). The
// result has t's shape and dtype.
func (t *Tensor) Rsqrt() *Tensor { return unary(ir.Rsqrt, t) }

// Recip is 1/t, the IEEE quotient. Floats only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Recip() *Tensor { return unary(ir.Recip, t) }

// Square is t * t, for numbers. Integers wrap around. Bool is ErrDType. The result has t's shape
// and dtype.
func (t *Tensor) Square() *Tensor { return unary(ir.Square, t) }

// Exp is e to the power t. Floats only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Exp() *Tensor { return unary(ir.Exp, t) }

// Exp2 is 2 to the power t. Floats only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Exp2() *Tensor { return unary(ir.Exp2, t) }

// Expm1 is e to the power t, minus 1, accurate near 0. Floats only (else ErrDType). The result has
// t's shape and dtype.
func (t *Tensor) Expm1() *Tensor { return unary(ir.Expm1, t) }

// Log is the natural logarithm. ±0 gives -Inf, and negative numbers give NaN. Floats only (else
// ErrDType). The result has t's shape and dtype.
func (t *Tensor) Log() *Tensor { return unary(ir.Log, t) }

// Log2 is the logarithm to base 2. ±0 gives -Inf, and negative numbers give NaN. Floats only (else
// ErrDType). The result has t's shape and dtype.
func (t *Tensor) Log2() *Tensor { return unary(ir.Log2, t) }

// Log1p is the natural logarithm of 1+t, accurate near 0. -1 gives -Inf, and numbers below -1 give
// NaN. Floats only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Log1p() *Tensor { return unary(ir.Log1p, t) }

// Sin is the sine of t in radians. ±Inf gives NaN. The argument is reduced exactly, however large
// it is. Floats only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Sin() *Tensor { return unary(ir.Sin, t) }

// Cos is the cosine of t in radians. ±Inf gives NaN. The argument is reduced exactly, however large
// it is. Floats only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Cos() *Tensor { return unary(ir.Cos, t) }

// Tan is the tangent of t in radians. ±Inf gives NaN. Floats only (else ErrDType). The result has
// t's shape and dtype.
func (t *Tensor) Tan() *Tensor { return unary(ir.Tan, t) }

// Tanh is the hyperbolic tangent. Floats only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Tanh() *Tensor { return unary(ir.Tanh, t) }

// Sinh is the hyperbolic sine. Floats only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Sinh() *Tensor { return unary(ir.Sinh, t) }

// Cosh is the hyperbolic cosine. Floats only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Cosh() *Tensor { return unary(ir.Cosh, t) }

// Asin is the arc sine, in [-π/2, π/2]. Numbers outside [-1, 1] give NaN. Floats only (else
// ErrDType). The result has t's shape and dtype.
func (t *Tensor) Asin() *Tensor { return unary(ir.Asin, t) }

// Acos is the arc cosine, in [0, π]. Numbers outside [-1, 1] give NaN. Floats only (else ErrDType).
// The result has t's shape and dtype.
func (t *Tensor) Acos() *Tensor { return unary(ir.Acos, t) }

// Atan is the arc tangent, in [-π/2, π/2]. Floats only (else ErrDType). The result has t's shape
// and dtype.
func (t *Tensor) Atan() *Tensor { return unary(ir.Atan, t) }

// Erf is the error function, 2/√π times the integral of exp(-x²) from 0 to t. Floats only (else
// ErrDType). The result has t's shape and dtype.
func (t *Tensor) Erf() *Tensor { return unary(ir.Erf, t) }

// Floor rounds down to a whole number. Floats only (else ErrDType). The result has t's shape and
// dtype.
func (t *Tensor) Floor() *Tensor { return unary(ir.Floor, t) }

// Ceil rounds up to a whole number. Floats only (else ErrDType). The result has t's shape and
// dtype.
func (t *Tensor) Ceil() *Tensor { return unary(ir.Ceil, t) }

// Round rounds to the nearest whole number, and halves to the even one. Floats only (else
// ErrDType). The result has t's shape and dtype.
func (t *Tensor) Round() *Tensor { return unary(ir.Round, t) }

// Trunc rounds toward zero to a whole number. Floats only (else ErrDType). The result has t's shape
// and dtype.
func (t *Tensor) Trunc() *Tensor { return unary(ir.Trunc, t) }

// The functions of this file are composed of other ops. 16-bit floats are computed in Float32.
// Package autodiff has a derivative for each function as a whole.

// Log10 is the logarithm to base 10. ±0 gives -Inf, and negative numbers give NaN. Powers of ten
// give exact whole numbers. Floats only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Log10() *Tensor {
	return elementwise("log10", adhook.Log10{}, t, func(x *Tensor) *Tensor {
		// A result within one or two ulp of a whole number becomes that number. Log is not exact
		// enough to tell the two apart, and users expect exact results for 10^n.
		y := x.Log().MulScalar(math.Log10E)
		n := y.Round()
		near := y.Sub(n).Abs().Le(y.Abs().MulScalar(0.95 * epsilon(x.DType())))
		return Where(near, n, y)
	})
}

// Asinh is the inverse of the hyperbolic sine. Zeros keep their sign. Floats only (else ErrDType).
// The result has t's shape and dtype.
func (t *Tensor) Asinh() *Tensor {
	return elementwise("asinh", adhook.Asinh{}, t, func(x *Tensor) *Tensor {
		// The result is log1p(a + a²/(1 + √(a²+1))), or log(2a) if a is large.
		a := x.Abs()
		part := a.Div(a.Square().AddScalar(1).Sqrt().AddScalar(1))
		return signed(logOfLarge(a, a, a.Add(a.Mul(part))), x)
	})
}

// Acosh is the inverse of the hyperbolic cosine, at least 0; numbers below 1 give NaN. Floats only
// (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Acosh() *Tensor {
	return elementwise("acosh", adhook.Acosh{}, t, func(x *Tensor) *Tensor {
		// With d = x-1, which is exact near 1, the result is log1p(d + √(d·(d+2))).
		d := x.SubScalar(1)
		y := logOfLarge(x, x, d.Add(d.Mul(d.AddScalar(2)).Sqrt()))
		return ScalarWhere(x.LtScalar(1), math.NaN(), y)
	})
}

// Atanh is the inverse of the hyperbolic tangent. ±1 gives ±Inf, and numbers outside [-1, 1] give
// NaN. Zeros keep their sign. Floats only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Atanh() *Tensor {
	return elementwise("atanh", adhook.Atanh{}, t, func(x *Tensor) *Tensor {
		// The result is log1p(2a/(1-a))/2. Near 0, the quotient is most accurate as 2a +
		// 2a·a/(1-a).
		a := x.Abs()
		left, twice := a.ScalarSub(1), a.MulScalar(2)
		near := twice.Add(twice.Mul(a.Div(left)))
		all := twice.Div(left)
		return signed(Where(a.LtScalar(0.5), near, all).Log1p().MulScalar(0.5), x)
	})
}

// elementwise records an elementwise op that consists of f's ops, in the dtype that t is computed
// in. Autodiff has a rule for the whole op.
func elementwise(name string, rule adhook.Composite, t *Tensor, f func(x *Tensor) *Tensor) *Tensor {
	return overRows(name, rule, t, nil, func(x *Tensor, _ []int) *Tensor { return f(x) })
}

// epsilon returns the distance from 1 to the next float.
func epsilon(dt DType) float64 {
	if dt == Float64 {
		return 0x1p-52
	}
	return 0x1p-23
}

// logOfLarge returns log(1+y), or log(2·big) if a is so large that neither 1 nor the difference
// between y and 2·big matters.
func logOfLarge(a, big, y *Tensor) *Tensor {
	large := a.GtScalar(4 / epsilon(a.DType()))
	log := Where(large, big, y).Log1p()
	return Where(large, log.AddScalar(math.Ln2), log)
}

// signed returns r, which is not negative, with the sign of x.
func signed(r, x *Tensor) *Tensor { return x.Sign().Mul(r) }
