package onnx

import (
	"math"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/linalg"
)

var (
	posInf = math.Inf(1)
	negInf = math.Inf(-1)
)

func init() {
	register(
		op{name: "Det", since: 11, run: unary(linalg.Det)},
		op{name: "Einsum", since: 12, run: one(func(c *call) *tensor { return millrace.Einsum(c.str("equation", ""), c.ts()...) })},
		op{name: "Gemm", since: 7, run: one(gemm)},
		op{name: "MatMul", since: 1, run: pairwise((*tensor).MatMul)},
		op{name: "MatMulInteger", since: 10, run: one(matMulInteger)},
		op{name: "QLinearMatMul", since: 10, run: one(qLinearMatMul)},
		op{name: "ConvInteger", since: 10, run: one(convInteger)},
		op{name: "QLinearConv", since: 10, run: one(qLinearConv)},
		op{name: "DequantizeLinear", since: 10, run: one(dequantize)},
		op{name: "QuantizeLinear", since: 10, run: one(quantize)},
		op{name: "DynamicQuantizeLinear", since: 11, run: dynamicQuantize},
	)
}

func gemm(c *call) *tensor {
	a, b := c.t(0), c.t(1)
	if c.int("transA", 0) != 0 {
		a = a.T()
	}
	if c.int("transB", 0) != 0 {
		b = b.T()
	}
	y := scaled(a.MatMul(b), c.float("alpha", 1))
	if c.has(2) {
		y = y.Add(scaled(c.t(2), c.float("beta", 1)))
	}
	return y
}

// scaled multiplies by a number other than 1.
func scaled(x *tensor, by float64) *tensor {
	if by == 1 {
		return x
	}
	if !isFloat(x.DType()) {
		return x.Cast(millrace.Float64).MulScalar(by).Cast(x.DType())
	}
	return x.MulScalar(by)
}

// shifted casts to int32 and subtracts a zero point, which has one element for each place of an
// axis, or one for all.
func (c *call) shifted(x *tensor, zero, axis int) *tensor {
	x = x.Cast(millrace.Int32)
	if !c.has(zero) {
		return x
	}
	return x.Sub(c.along(c.t(zero).Cast(millrace.Int32), x, axis))
}

// along gives a vector the shape that broadcasts along an axis of x. Scalars stay as they are, and
// so do tensors of x's rank.
func (c *call) along(v, x *tensor, axis int) *tensor {
	if v.Rank() == 1 && v.Dim(0) == 1 {
		return v.Reshape()
	}
	if v.Rank() != 1 {
		return v
	}
	axis = c.axis(axis, x.Rank())
	shape := make1(x.Rank())
	if c.err == nil {
		shape[axis] = v.Dim(0)
	}
	return v.Reshape(shape...)
}

func matMulInteger(c *call) *tensor {
	return c.shifted(c.t(0), 2, -2).MatMul(c.shifted(c.t(1), 3, -1))
}

// saturated rounds to integers, adds a zero point and limits the result to its dtype.
func saturated(x, zero *tensor) *tensor {
	lo, hi := limits(zero.DType())
	return x.Round().Add(zero.Cast(x.DType())).ClampScalar(float64(lo), float64(hi)).Cast(zero.DType())
}

func qLinearMatMul(c *call) *tensor {
	a := c.t(0).Cast(millrace.Int32).Sub(c.along(c.t(2).Cast(millrace.Int32), c.t(0), -2))
	b := c.t(3).Cast(millrace.Int32).Sub(c.along(c.t(5).Cast(millrace.Int32), c.t(3), -1))
	f := millrace.Float32
	y := a.MatMul(b).Cast(f)
	sa, sb := c.along(c.t(1).Cast(f), y, -2), c.along(c.t(4).Cast(f), y, -1)
	return saturated(y.Mul(sa.Mul(sb).Div(c.t(6).Cast(f))), c.t(7))
}

func convInteger(c *call) *tensor { return c.conv(c.shifted(c.t(0), 2, 1), c.shifted(c.t(1), 3, 0)) }

func qLinearConv(c *call) *tensor {
	x, w := c.shifted(c.t(0), 2, 1), c.shifted(c.t(3), 5, 0)
	y := c.conv(x, w)
	if c.has(8) {
		y = y.Add(c.along(c.t(8), y, 1))
	}
	scale := c.along(c.t(1).Mul(c.t(4)).Div(c.t(6)), y, 1)
	return saturated(y.Cast(millrace.Float32).Mul(scale), c.t(7))
}

// blocked repeats a scale or zero point along an axis, for blocks of elements.
func (c *call) blocked(v, x *tensor) *tensor {
	axis, size := c.int("axis", 1), c.int("block_size", 0)
	if size == 0 || v.Rank() != x.Rank() || v.Rank() == 0 {
		return c.along(v, x, axis)
	}
	axis = c.axis(axis, x.Rank())
	if c.err != nil || size < 0 {
		c.shapeFail("blocks of %d", size)
		return v
	}
	part := make([]millrace.Range, x.Rank())
	part[axis] = millrace.R(0, x.Dim(axis))
	index := millrace.ArangeOn(c.f.r.place, millrace.Int64, 0, float64(x.Dim(axis)), 1).FloorDivScalar(float64(size))
	return v.Take(index, axis)
}

// outputDType is the attribute output_dtype, which is absent if it is 0.
func (c *call) outputDType(or millrace.DType) millrace.DType {
	if c.int("output_dtype", 0) == 0 {
		return or
	}
	return c.dtypeAttr("output_dtype", or)
}

func dequantize(c *call) *tensor {
	x, scale := c.t(0), c.t(1)
	dt := c.outputDType(scale.DType())
	y := x.Cast(millrace.Float32)
	if x.DType() == millrace.Int32 {
		y = x.Cast(millrace.Float64)
	}
	if c.has(2) {
		y = y.Sub(c.blocked(c.t(2), x).Cast(y.DType()))
	}
	return y.Mul(c.blocked(scale, x).Cast(y.DType())).Cast(dt)
}

func quantize(c *call) *tensor {
	x, scale := c.t(0), c.t(1)
	dt := c.outputDType(millrace.Uint8)
	zero := millrace.ZerosOn(c.f.r.place, dt)
	if c.has(2) {
		zero = c.blocked(c.t(2), x)
	}
	if !isFloat(x.DType()) {
		x = x.Cast(millrace.Float32)
	}
	return saturated(x.Div(c.blocked(scale, x).Cast(x.DType())), zero)
}

func dynamicQuantize(c *call) []*value {
	x := c.t(0)
	lo, hi := x.Min().MinimumScalar(0), x.Max().MaximumScalar(0)
	scale := hi.Sub(lo).DivScalar(255)
	zero := lo.Neg().Div(scale).ClampScalar(0, 255).Round().Cast(millrace.Uint8)
	return results(saturated(x.Div(scale), zero), scale, zero)
}
