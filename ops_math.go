package millrace

import "github.com/millrace-go/millrace/ir"

// The functions of this file have one operand. Shape and dtype of the result are t's; a dtype
// that the op does not take is ErrDType. docs/numerics.md lists the worst-case errors. NaN gives
// NaN unless an op says otherwise.

// Neg is -t, for numbers. Integers wrap around: the smallest signed value is its own negative,
// and for unsigned dtypes the result is modulo 2 to the width.
func (t *Tensor) Neg() *Tensor { return unary(ir.Neg, t) }

// Abs is the absolute value, for numbers. The smallest value of a signed integer dtype gives
// itself.
func (t *Tensor) Abs() *Tensor { return unary(ir.Abs, t) }

// Sign is -1, 0 or 1 by the sign of t, for numbers. Zeros keep their sign; NaN gives NaN.
func (t *Tensor) Sign() *Tensor { return unary(ir.Sign, t) }

// Sqrt is the square root, correctly rounded. Negative numbers give NaN. Floats only.
func (t *Tensor) Sqrt() *Tensor { return unary(ir.Sqrt, t) }

// Rsqrt is 1/√t. ±0 gives ±Inf, and negative numbers give NaN. Floats only.
func (t *Tensor) Rsqrt() *Tensor { return unary(ir.Rsqrt, t) }

// Recip is 1/t, the IEEE quotient. Floats only.
func (t *Tensor) Recip() *Tensor { return unary(ir.Recip, t) }

// Square is t * t, for numbers. Integers wrap around.
func (t *Tensor) Square() *Tensor { return unary(ir.Square, t) }

// Exp is e to the power t. Floats only.
func (t *Tensor) Exp() *Tensor { return unary(ir.Exp, t) }

// Exp2 is 2 to the power t. Floats only.
func (t *Tensor) Exp2() *Tensor { return unary(ir.Exp2, t) }

// Expm1 is e to the power t, minus 1, accurate near 0. Floats only.
func (t *Tensor) Expm1() *Tensor { return unary(ir.Expm1, t) }

// Log is the natural logarithm. ±0 gives -Inf, and negative numbers give NaN. Floats only.
func (t *Tensor) Log() *Tensor { return unary(ir.Log, t) }

// Log2 is the logarithm to base 2. ±0 gives -Inf, and negative numbers give NaN. Floats only.
func (t *Tensor) Log2() *Tensor { return unary(ir.Log2, t) }

// Log1p is the natural logarithm of 1+t, accurate near 0. -1 gives -Inf, and numbers below -1
// give NaN. Floats only.
func (t *Tensor) Log1p() *Tensor { return unary(ir.Log1p, t) }

// Sin is the sine of t in radians. ±Inf gives NaN. The argument is reduced exactly, however large
// it is. Floats only.
func (t *Tensor) Sin() *Tensor { return unary(ir.Sin, t) }

// Cos is the cosine of t in radians. ±Inf gives NaN. The argument is reduced exactly, however
// large it is. Floats only.
func (t *Tensor) Cos() *Tensor { return unary(ir.Cos, t) }

// Tan is the tangent of t in radians. ±Inf gives NaN. Floats only.
func (t *Tensor) Tan() *Tensor { return unary(ir.Tan, t) }

// Tanh is the hyperbolic tangent. Floats only.
func (t *Tensor) Tanh() *Tensor { return unary(ir.Tanh, t) }

// Sinh is the hyperbolic sine. Floats only.
func (t *Tensor) Sinh() *Tensor { return unary(ir.Sinh, t) }

// Cosh is the hyperbolic cosine. Floats only.
func (t *Tensor) Cosh() *Tensor { return unary(ir.Cosh, t) }

// Asin is the arc sine, in [-π/2, π/2]. Numbers outside [-1, 1] give NaN. Floats only.
func (t *Tensor) Asin() *Tensor { return unary(ir.Asin, t) }

// Acos is the arc cosine, in [0, π]. Numbers outside [-1, 1] give NaN. Floats only.
func (t *Tensor) Acos() *Tensor { return unary(ir.Acos, t) }

// Atan is the arc tangent, in [-π/2, π/2]. Floats only.
func (t *Tensor) Atan() *Tensor { return unary(ir.Atan, t) }

// Erf is the error function, 2/√π times the integral of exp(-x²) from 0 to t.
// Floats only.
func (t *Tensor) Erf() *Tensor { return unary(ir.Erf, t) }

// Floor rounds down to a whole number. Floats only.
func (t *Tensor) Floor() *Tensor { return unary(ir.Floor, t) }

// Ceil rounds up to a whole number. Floats only.
func (t *Tensor) Ceil() *Tensor { return unary(ir.Ceil, t) }

// Round rounds to the nearest whole number, and halves to the even one. Floats only.
func (t *Tensor) Round() *Tensor { return unary(ir.Round, t) }

// Trunc rounds toward zero to a whole number. Floats only.
func (t *Tensor) Trunc() *Tensor { return unary(ir.Trunc, t) }
