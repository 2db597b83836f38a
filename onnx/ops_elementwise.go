package onnx

import (
	"math"

	"github.com/millrace-go/millrace"
)

// unary makes the function of an op with one input.
func unary(f func(t *tensor) *tensor) func(c *call) []*value {
	return one(func(c *call) *tensor { return f(c.t(0)) })
}

// pairwise makes the function of an op with two inputs that broadcast.
func pairwise(f func(t, u *tensor) *tensor) func(c *call) []*value {
	return one(func(c *call) *tensor { return f(c.t(0), c.t(1)) })
}

// variadic makes the function of an op with any number of inputs.
func variadic(f func(t, u *tensor) *tensor) func(c *call) []*value {
	return one(func(c *call) *tensor {
		ts := c.ts()
		if len(ts) == 0 {
			c.fail("%w: 0", errNoInput)
			return nil
		}
		r := ts[0]
		for _, t := range ts[1:] {
			r = f(r, t)
		}
		return r
	})
}

func mean(c *call) *tensor {
	ts := c.ts()
	r := c.t(0)
	for i := 1; i < len(ts); i++ {
		r = r.Add(ts[i])
	}
	return r.DivScalar(float64(max(len(ts), 1)))
}

func init() {
	register(
		op{name: "Abs", since: 6, run: unary((*tensor).Abs)},
		op{name: "Acos", since: 7, run: unary((*tensor).Acos)},
		op{name: "Acosh", since: 9, run: unary((*tensor).Acosh)},
		op{name: "Add", since: 7, run: pairwise((*tensor).Add), host: arith(func(a, b int64) int64 { return a + b }, func(a, b float64) float64 { return a + b })},
		op{name: "And", since: 7, run: pairwise((*tensor).And), host: arith(func(a, b int64) int64 { return a & b }, nil)},
		op{name: "Asin", since: 7, run: unary((*tensor).Asin)},
		op{name: "Asinh", since: 9, run: unary((*tensor).Asinh)},
		op{name: "Atan", since: 7, run: unary((*tensor).Atan)},
		op{name: "Atanh", since: 9, run: unary((*tensor).Atanh)},
		op{name: "BitShift", since: 11, run: one(bitShift)},
		op{name: "BitwiseAnd", since: 18, run: pairwise((*tensor).BitAnd)},
		op{name: "BitwiseNot", since: 18, run: unary((*tensor).BitNot)},
		op{name: "BitwiseOr", since: 18, run: pairwise((*tensor).BitOr)},
		op{name: "BitwiseXor", since: 18, run: pairwise((*tensor).BitXor)},
		op{name: "Cast", since: 6, run: one(cast), host: hostCast},
		op{name: "CastLike", since: 15, run: one(castLike)},
		op{name: "Ceil", since: 6, run: unary((*tensor).Ceil), host: mapped(math.Ceil)},
		op{name: "Celu", since: 12, run: one(celu)},
		op{name: "Clip", since: 6, run: one(clip)},
		op{name: "Cos", since: 7, run: unary((*tensor).Cos)},
		op{name: "Cosh", since: 9, run: unary((*tensor).Cosh)},
		op{name: "Div", since: 7, run: pairwise((*tensor).Div), host: arith(hostDiv, func(a, b float64) float64 { return a / b })},
		op{name: "Elu", since: 6, run: one(elu)},
		op{name: "Equal", since: 7, run: one(equal), host: compare(func(a, b float64) bool { return a == b }, func(a, b int64) bool { return a == b })},
		op{name: "Erf", since: 9, run: unary((*tensor).Erf)},
		op{name: "Exp", since: 6, run: unary((*tensor).Exp)},
		op{name: "Floor", since: 6, run: unary((*tensor).Floor), host: mapped(math.Floor)},
		op{name: "Gelu", since: 20, run: one(gelu)},
		op{name: "Greater", since: 7, run: pairwise((*tensor).Gt), host: compare(func(a, b float64) bool { return a > b }, func(a, b int64) bool { return a > b })},
		op{name: "GreaterOrEqual", since: 12, run: pairwise((*tensor).Ge), host: compare(func(a, b float64) bool { return a >= b }, func(a, b int64) bool { return a >= b })},
		op{name: "HardSigmoid", since: 6, run: one(hardSigmoid)},
		op{name: "HardSwish", since: 14, run: one(func(c *call) *tensor {
			return c.t(0).Mul(c.t(0).DivScalar(6).AddScalar(0.5).ClampScalar(0, 1))
		})},
		op{name: "Identity", since: 1, run: func(c *call) []*value { c.dtype(0); return c.in }},
		op{name: "IsInf", since: 10, run: one(isInf)},
		op{name: "IsNaN", since: 9, run: unary((*tensor).IsNaN)},
		op{name: "LeakyRelu", since: 6, run: one(leakyRelu)},
		op{name: "Less", since: 7, run: pairwise((*tensor).Lt), host: compare(func(a, b float64) bool { return a < b }, func(a, b int64) bool { return a < b })},
		op{name: "LessOrEqual", since: 12, run: pairwise((*tensor).Le), host: compare(func(a, b float64) bool { return a <= b }, func(a, b int64) bool { return a <= b })},
		op{name: "Log", since: 6, run: unary((*tensor).Log)},
		op{name: "Max", since: 6, run: variadic((*tensor).Maximum), host: arith(func(a, b int64) int64 { return max(a, b) }, math.Max)},
		op{name: "Mean", since: 6, run: one(mean)},
		op{name: "Min", since: 6, run: variadic((*tensor).Minimum), host: arith(func(a, b int64) int64 { return min(a, b) }, math.Min)},
		op{name: "Mish", since: 18, run: one(func(c *call) *tensor { return c.t(0).Mul(c.t(0).Softplus().Tanh()) })},
		op{name: "Mod", since: 10, run: one(mod), host: hostMod},
		op{name: "Mul", since: 7, run: pairwise((*tensor).Mul), host: arith(func(a, b int64) int64 { return a * b }, func(a, b float64) float64 { return a * b })},
		op{name: "Neg", since: 6, run: unary((*tensor).Neg), host: mappedInt(func(a int64) int64 { return -a }, func(a float64) float64 { return -a })},
		op{name: "Not", since: 1, run: unary((*tensor).Not), host: mappedInt(func(a int64) int64 { return 1 - a }, nil)},
		op{name: "Or", since: 7, run: pairwise((*tensor).Or), host: arith(func(a, b int64) int64 { return a | b }, nil)},
		op{name: "PRelu", since: 7, run: one(prelu)},
		op{name: "Pow", since: 7, run: one(pow)},
		op{name: "Reciprocal", since: 6, run: unary((*tensor).Recip)},
		op{name: "Relu", since: 6, run: one(func(c *call) *tensor { return c.t(0).MaximumScalar(0) })},
		op{name: "Round", since: 11, run: unary((*tensor).Round), host: mapped(math.RoundToEven)},
		op{name: "Selu", since: 6, run: one(selu)},
		op{name: "Shrink", since: 9, run: one(shrink)},
		op{name: "Sigmoid", since: 6, run: unary((*tensor).Sigmoid)},
		op{name: "Sign", since: 9, run: unary((*tensor).Sign)},
		op{name: "Sin", since: 7, run: unary((*tensor).Sin)},
		op{name: "Sinh", since: 9, run: unary((*tensor).Sinh)},
		op{name: "Softplus", since: 1, run: unary((*tensor).Softplus)},
		op{name: "Softsign", since: 1, run: one(func(c *call) *tensor { return c.t(0).Div(c.t(0).Abs().AddScalar(1)) })},
		op{name: "Sqrt", since: 6, run: unary((*tensor).Sqrt), host: mapped(math.Sqrt)},
		op{name: "Sub", since: 7, run: pairwise((*tensor).Sub), host: arith(func(a, b int64) int64 { return a - b }, func(a, b float64) float64 { return a - b })},
		op{name: "Sum", since: 6, run: variadic((*tensor).Add)},
		op{name: "Swish", since: 24, run: one(func(c *call) *tensor {
			return c.t(0).Mul(c.t(0).MulScalar(c.float("alpha", 1)).Sigmoid())
		})},
		op{name: "Tan", since: 7, run: unary((*tensor).Tan)},
		op{name: "Tanh", since: 6, run: unary((*tensor).Tanh)},
		op{name: "ThresholdedRelu", since: 10, run: one(func(c *call) *tensor {
			x := c.t(0)
			return millrace.WhereScalar(x.GtScalar(c.float("alpha", 1)), x, 0)
		})},
		op{name: "Where", since: 9, run: one(func(c *call) *tensor { return millrace.Where(c.t(0), c.t(1), c.t(2)) }), host: hostWhere},
		op{name: "Xor", since: 7, run: pairwise((*tensor).Xor), host: arith(func(a, b int64) int64 { return a ^ b }, nil)},
	)
}

func bitShift(c *call) *tensor {
	switch c.str("direction", "") {
	case "LEFT":
		return c.t(0).Shl(c.t(1))
	case "RIGHT":
		return c.t(0).Shr(c.t(1))
	}
	c.fail("direction %q is neither LEFT nor RIGHT", c.str("direction", ""))
	return nil
}

func cast(c *call) *tensor { return castTo(c.t(0), c.dtypeAttr("to", millrace.Invalid)) }

func castLike(c *call) *tensor { return castTo(c.t(0), c.dtype(1)) }

// castTo is Cast, but integers wrap around as in ONNX, where Tensor.Cast takes the nearest limit.
func castTo(t *tensor, dt millrace.DType) *tensor {
	from := t.DType()
	if isFloat(from) || from == millrace.Bool || isFloat(dt) || dt == millrace.Bool || from == dt {
		return t.Cast(dt)
	}
	// The lowest bits of a number of two's complement are those of the narrower one.
	lo, hi := limits(dt)
	fromLo, fromHi := limits(from)
	switch {
	case fromLo >= lo && fromHi <= hi && from != millrace.Uint64:
		return t.Cast(dt)
	case sizeOf(from) == sizeOf(dt):
		return t.Bitcast(dt)
	case sizeOf(from) < sizeOf(dt): // a signed number becomes an unsigned one
		return t.Cast(signedOf(dt)).Bitcast(dt)
	}
	wide := t
	if !isSigned(from) {
		wide = t.Bitcast(signedOf(from))
	}
	bits := float64(8 * (sizeOf(from) - sizeOf(dt)))
	return wide.ShlScalar(bits).ShrScalar(bits).Cast(signedOf(dt)).Bitcast(dt)
}

// signedOf is the signed dtype of the same size.
func signedOf(dt millrace.DType) millrace.DType {
	return map[int]millrace.DType{1: millrace.Int8, 2: millrace.Int16, 4: millrace.Int32, 8: millrace.Int64}[sizeOf(dt)]
}

func celu(c *call) *tensor {
	x, a := c.t(0), c.float("alpha", 1)
	return x.MaximumScalar(0).Add(x.DivScalar(a).Expm1().MulScalar(a).MinimumScalar(0))
}

func clip(c *call) *tensor {
	x := c.t(0)
	if c.n.opset < 11 {
		if c.given("min") {
			x = x.MaximumScalar(c.float("min", 0))
		}
		if c.given("max") {
			x = x.MinimumScalar(c.float("max", 0))
		}
		return x
	}
	if c.has(1) {
		x = x.Maximum(c.t(1))
	}
	if c.has(2) {
		x = x.Minimum(c.t(2))
	}
	return x
}

func elu(c *call) *tensor {
	x := c.t(0)
	return millrace.Where(x.LtScalar(0), x.Expm1().MulScalar(c.float("alpha", 1)), x)
}

func equal(c *call) *tensor {
	if c.dtype(0) == millrace.Bool && c.dtype(1) == millrace.Bool {
		return c.t(0).Xor(c.t(1)).Not()
	}
	return c.t(0).Eq(c.t(1))
}

func gelu(c *call) *tensor {
	if c.str("approximate", "none") == "tanh" {
		return c.t(0).GeluTanh()
	}
	return c.t(0).Gelu()
}

func hardSigmoid(c *call) *tensor {
	return c.t(0).MulScalar(c.float("alpha", 0.2)).AddScalar(c.float("beta", 0.5)).ClampScalar(0, 1)
}

func isInf(c *call) *tensor {
	x := c.t(0)
	up, down := c.int("detect_positive", 1) != 0, c.int("detect_negative", 1) != 0
	switch {
	case up && down:
		return x.IsInf()
	case up:
		return x.IsInf().And(x.GtScalar(0))
	case down:
		return x.IsInf().And(x.LtScalar(0))
	}
	return x.IsInf().And(x.IsInf().Not())
}

func leakyRelu(c *call) *tensor {
	x := c.t(0)
	return millrace.Where(x.LtScalar(0), x.MulScalar(c.float("alpha", 0.01)), x)
}

// mod has the sign of the divisor, or with fmod that of the dividend, as in C.
func mod(c *call) *tensor {
	x, y := c.t(0), c.t(1)
	if c.int("fmod", 0) == 0 {
		return x.Rem(y)
	}
	if !isFloat(x.DType()) {
		r := x.Rem(y)
		if !isSigned(x.DType()) {
			return r
		}
		zero := c.like(x, 0)
		return millrace.Where(r.Ne(zero).And(x.Lt(zero).Xor(y.Lt(zero))), r.Sub(y), r)
	}
	r := x.Abs().Rem(y.Abs())
	return millrace.Where(x.Lt(c.like(x, 0)), r.Neg(), r)
}

func prelu(c *call) *tensor {
	x, slope := c.t(0), c.t(1)
	return millrace.Where(x.Lt(c.like(x, 0)), x.Mul(slope), x)
}

// pow casts the exponent to the base's dtype, or computes in float64 if that would change it.
func pow(c *call) *tensor {
	x, y := c.t(0), c.t(1)
	switch {
	case x.DType() == y.DType():
		return x.Pow(y)
	case isFloat(y.DType()) && !isFloat(x.DType()):
		return x.Cast(millrace.Float64).Pow(y.Cast(millrace.Float64)).Cast(x.DType())
	}
	return x.Pow(y.Cast(x.DType()))
}

func selu(c *call) *tensor {
	x := c.t(0)
	a, g := c.float("alpha", 1.67326319217681884765625), c.float("gamma", 1.05070102214813232421875)
	return millrace.Where(x.GtScalar(0), x, x.Expm1().MulScalar(a)).MulScalar(g)
}

func shrink(c *call) *tensor {
	x, bias, limit := c.t(0), c.float("bias", 0), c.float("lambd", 0.5)
	if dt := x.DType(); !isFloat(dt) {
		x = x.Cast(millrace.Float64)
		return shrunk(x, bias, limit).Cast(dt)
	}
	return shrunk(x, bias, limit)
}

func shrunk(x *tensor, bias, limit float64) *tensor {
	low := millrace.WhereScalar(x.LtScalar(-limit), x.AddScalar(bias), 0)
	return millrace.Where(x.GtScalar(limit), x.SubScalar(bias), low)
}
