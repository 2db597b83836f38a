package apitest

import (
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

type tensor = millrace.Tensor

// unaryForms are the methods of ops with one operand.
var unaryForms = map[ir.Op]func(*tensor) *tensor{
	ir.Neg: (*tensor).Neg, ir.Abs: (*tensor).Abs, ir.Sign: (*tensor).Sign,
	ir.Sqrt: (*tensor).Sqrt, ir.Rsqrt: (*tensor).Rsqrt, ir.Recip: (*tensor).Recip, ir.Square: (*tensor).Square,
	ir.Exp: (*tensor).Exp, ir.Exp2: (*tensor).Exp2, ir.Expm1: (*tensor).Expm1,
	ir.Log: (*tensor).Log, ir.Log2: (*tensor).Log2, ir.Log1p: (*tensor).Log1p,
	ir.Sin: (*tensor).Sin, ir.Cos: (*tensor).Cos, ir.Tan: (*tensor).Tan,
	ir.Tanh: (*tensor).Tanh, ir.Sinh: (*tensor).Sinh, ir.Cosh: (*tensor).Cosh,
	ir.Asin: (*tensor).Asin, ir.Acos: (*tensor).Acos, ir.Atan: (*tensor).Atan,
	ir.Sigmoid: (*tensor).Sigmoid, ir.Erf: (*tensor).Erf, ir.Relu: (*tensor).Relu,
	ir.Gelu: (*tensor).Gelu, ir.GeluTanh: (*tensor).GeluTanh, ir.Silu: (*tensor).Silu, ir.Softplus: (*tensor).Softplus,
	ir.Floor: (*tensor).Floor, ir.Ceil: (*tensor).Ceil, ir.Round: (*tensor).Round, ir.Trunc: (*tensor).Trunc,
	ir.Not:   func(t *tensor) *tensor { return byKind(t, (*tensor).Not, (*tensor).BitNot)(t) },
	ir.IsNaN: (*tensor).IsNaN, ir.IsInf: (*tensor).IsInf, ir.IsFinite: (*tensor).IsFinite,
}

// binaryForm holds the ways to call an op with two operands: two tensors, a number on the right, a
// number on the left. The last two may be missing.
type binaryForm struct {
	tensors     func(t, u *tensor) *tensor
	right, left func(t *tensor, s float64) *tensor
}

var binaryForms = map[ir.Op]binaryForm{
	ir.Add:      {(*tensor).Add, (*tensor).AddScalar, nil},
	ir.Sub:      {(*tensor).Sub, (*tensor).SubScalar, (*tensor).ScalarSub},
	ir.Mul:      {(*tensor).Mul, (*tensor).MulScalar, nil},
	ir.Div:      {(*tensor).Div, (*tensor).DivScalar, (*tensor).ScalarDiv},
	ir.FloorDiv: {(*tensor).FloorDiv, (*tensor).FloorDivScalar, (*tensor).ScalarFloorDiv},
	ir.Rem:      {(*tensor).Rem, (*tensor).RemScalar, (*tensor).ScalarRem},
	ir.Pow:      {(*tensor).Pow, (*tensor).PowScalar, (*tensor).ScalarPow},
	ir.Maximum:  {(*tensor).Maximum, (*tensor).MaximumScalar, nil},
	ir.Minimum:  {(*tensor).Minimum, (*tensor).MinimumScalar, nil},
	ir.Atan2:    {(*tensor).Atan2, (*tensor).Atan2Scalar, (*tensor).ScalarAtan2},
	ir.And:      {logic((*tensor).And, (*tensor).BitAnd), bits((*tensor).BitAndScalar), nil},
	ir.Or:       {logic((*tensor).Or, (*tensor).BitOr), bits((*tensor).BitOrScalar), nil},
	ir.Xor:      {logic((*tensor).Xor, (*tensor).BitXor), bits((*tensor).BitXorScalar), nil},
	ir.Shl:      {(*tensor).Shl, (*tensor).ShlScalar, nil},
	ir.Shr:      {(*tensor).Shr, (*tensor).ShrScalar, nil},
	ir.MulHigh:  {(*tensor).MulHigh, nil, nil},
	ir.Eq:       {(*tensor).Eq, (*tensor).EqScalar, nil},
	ir.Ne:       {(*tensor).Ne, (*tensor).NeScalar, nil},
	ir.Lt:       {(*tensor).Lt, (*tensor).LtScalar, nil},
	ir.Le:       {(*tensor).Le, (*tensor).LeScalar, nil},
	ir.Gt:       {(*tensor).Gt, (*tensor).GtScalar, nil},
	ir.Ge:       {(*tensor).Ge, (*tensor).GeScalar, nil},
}

// byKind picks the method for bool tensors or that for integer ones.
func byKind[F any](t *tensor, onBool, onInt F) F {
	if t.DType() == millrace.Bool {
		return onBool
	}
	return onInt
}

func logic(onBool, onInt func(t, u *tensor) *tensor) func(t, u *tensor) *tensor {
	return func(t, u *tensor) *tensor { return byKind(t, onBool, onInt)(t, u) }
}

// bits is a Scalar form that bool tensors lack: a 0-d tensor replaces the number.
func bits(onInt func(t *tensor, s float64) *tensor) func(t *tensor, s float64) *tensor {
	return func(t *tensor, s float64) *tensor {
		if t.DType() == millrace.Bool {
			return nil
		}
		return onInt(t, s)
	}
}
