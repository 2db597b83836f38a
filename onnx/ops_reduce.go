package onnx

import (
	"github.com/millrace-go/millrace"
)

// reduction makes the row of a reduction, whose axes are an input from the opset on.
func reduction(name string, axesInput int, f func(c *call, x *tensor, axes []int) *tensor) op {
	return op{name: name, since: 1, onHost: 1 << 1, run: one(func(c *call) *tensor {
		x, rank := c.t(0), c.rank(0)
		axes := c.axes(c.axesOr("axes", 1, axesInput), rank)
		if len(axes) == 0 {
			if c.int("noop_with_empty_axes", 0) != 0 {
				return x
			}
			axes = seq(rank)
		}
		if c.err != nil {
			return nil
		}
		if c.int("keepdims", 1) != 0 {
			return f(c, x, axes)
		}
		if rank == 0 {
			return f(c, x, axes)
		}
		return f(c, x, axes).Squeeze(axes...)
	})}
}

// keep makes a reduction of the Keep form of an op. A 0-d tensor is its own sum.
func keep(f func(t *tensor, axes ...int) *tensor) func(c *call, x *tensor, axes []int) *tensor {
	return func(c *call, x *tensor, axes []int) *tensor { return f(x, axes...) }
}

// extreme is max or min: of bools too, and of no elements the least or largest number.
func extreme(f func(t *tensor, axes ...int) *tensor, empty float64) func(c *call, x *tensor, axes []int) *tensor {
	return func(c *call, x *tensor, axes []int) *tensor {
		if x.DType() == millrace.Bool {
			return f(x.Cast(millrace.Uint8), axes...).Cast(millrace.Bool)
		}
		n := 1
		for _, a := range axes {
			n *= x.Dim(a)
		}
		if n > 0 || !isFloat(x.DType()) && n > 0 {
			return f(x, axes...)
		}
		dims := x.Shape()
		for _, a := range axes {
			dims[a] = 1
		}
		if dt := x.DType(); !isFloat(dt) {
			lo, hi := limits(dt)
			v := lo
			if empty > 0 {
				v = hi
			}
			return millrace.FromSliceOn(c.f.r.place, []int64{v}).Cast(dt).Reshape().Expand(dims...)
		}
		return millrace.FullOn(c.f.r.place, x.DType(), empty, dims...)
	}
}

func sumSquare(c *call, x *tensor, axes []int) *tensor { return x.Mul(x).SumKeep(axes...) }

func init() {
	sum := reduction("ReduceSum", 13, keep((*tensor).SumKeep))
	sum.host = func(c *call) (*host, error) { return fold(c, 0, func(a, b int64) int64 { return a + b }) }
	prod := reduction("ReduceProd", 18, keep((*tensor).ProdKeep))
	prod.host = func(c *call) (*host, error) { return fold(c, 1, func(a, b int64) int64 { return a * b }) }
	register(
		sum, prod,
		reduction("ReduceL1", 18, func(c *call, x *tensor, axes []int) *tensor { return x.Abs().SumKeep(axes...) }),
		reduction("ReduceL2", 18, func(c *call, x *tensor, axes []int) *tensor {
			if dt := x.DType(); !isFloat(dt) {
				return sumSquare(c, x.Cast(millrace.Float64), axes).Sqrt().Cast(dt)
			}
			return sumSquare(c, x, axes).Sqrt()
		}),
		reduction("ReduceLogSum", 18, func(c *call, x *tensor, axes []int) *tensor { return x.SumKeep(axes...).Log() }),
		reduction("ReduceLogSumExp", 18, func(c *call, x *tensor, axes []int) *tensor {
			if dims := x.Shape(); product(dims) == 0 { // the logarithm of a sum of nothing
				return x.SumKeep(axes...).Log()
			}
			return x.LogSumExpKeep(axes...)
		}),
		reduction("ReduceMax", 18, extreme((*tensor).MaxKeep, negInf)),
		reduction("ReduceMean", 18, func(c *call, x *tensor, axes []int) *tensor {
			if dt := x.DType(); !isFloat(dt) {
				return x.Cast(millrace.Float64).MeanKeep(axes...).Cast(dt)
			}
			return x.MeanKeep(axes...)
		}),
		reduction("ReduceMin", 18, extreme((*tensor).MinKeep, posInf)),
		reduction("ReduceSumSquare", 18, sumSquare),
		op{name: "Hardmax", since: 1, run: one(func(c *call) *tensor { return coerced(c, hardmax) })},
		op{name: "LogSoftmax", since: 1, run: one(func(c *call) *tensor { return coerced(c, (*tensor).LogSoftmax) })},
		op{name: "LpNormalization", since: 1, run: one(lpNormalization)},
		op{name: "Softmax", since: 1, run: one(func(c *call) *tensor { return coerced(c, (*tensor).Softmax) })},
	)
}

func hardmax(x *tensor, axis int) *tensor {
	n := x.Dim(axis)
	return x.ArgMax(axis).OneHot(x.DType(), n).MoveAxis(-1, axis)
}

// coerced applies a function along an axis. Before opset 13 it was along all axes from there on, as
// one.
func coerced(c *call, f func(x *tensor, axis int) *tensor) *tensor {
	x, dims := c.t(0), c.shape(0)
	if c.n.opset >= 13 {
		axis := c.axis(c.int("axis", -1), len(dims))
		if c.err != nil {
			return nil
		}
		return f(x, axis)
	}
	axis := c.int("axis", 1)
	if axis != len(dims) {
		axis = c.axis(axis, len(dims))
	}
	if c.err != nil {
		return nil
	}
	return f(x.Reshape(product(dims[:axis]), product(dims[axis:])), 1).Reshape(dims...)
}

func lpNormalization(c *call) *tensor {
	x, axis := c.t(0), c.axis(c.int("axis", -1), c.rank(0))
	if c.err != nil {
		return nil
	}
	norm := x.Norm2Keep(axis)
	if p := c.int("p", 2); p == 1 {
		norm = x.Norm1Keep(axis)
	} else if p != 2 {
		c.fail("%w: p is %d", millrace.ErrUnsupported, p)
	}
	return x.Div(norm)
}
