package gomlxbackend

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// Where takes elements of onTrue where the condition is true, else of onFalse.
func (f *Function) Where(condition, onTrue, onFalse compute.Value) (compute.Value, error) {
	const op = compute.OpTypeWhere
	return f.build(op, []compute.Value{condition, onTrue, onFalse}, func(in []*Node) (*Node, error) {
		shape, err := shapeinference.Where(in[0].shape, in[1].shape, in[2].shape)
		if err != nil {
			return nil, err
		}
		return f.add(op, shape, nil, func(_ *run, in []*tensor) *tensor {
			return millrace.Where(in[0], in[1], in[2])
		}, in...)
	})
}

// Clamp limits x to [low, high], and to high where that is below low.
func (f *Function) Clamp(low, x, high compute.Value) (compute.Value, error) {
	const op = compute.OpTypeClamp
	return f.build(op, []compute.Value{low, x, high}, func(in []*Node) (*Node, error) {
		shape, err := shapeinference.BinaryOp(compute.OpTypeMax, in[0].shape, in[1].shape)
		if err == nil {
			shape, err = shapeinference.BinaryOp(compute.OpTypeMin, shape, in[2].shape)
		}
		if err != nil {
			return nil, err
		}
		if !isNumber(shape.DType) {
			return nil, errors.Errorf("not defined for %s", shape.DType)
		}
		shape = withZeros(shape, in[0].shape, in[1].shape, in[2].shape)
		do := func(_ *run, in []*tensor) *tensor { return in[1].Clamp(in[0], in[2]) }
		if lo, hi := in[0].splat, in[2].splat; lo != nil && hi != nil && in[1].shape.EqualDimensions(shape) {
			do = func(_ *run, in []*tensor) *tensor { return in[1].ClampScalar(*lo, *hi) }
		}
		return f.add(op, shape, nil, do, in...)
	})
}

// ConvertDType converts the elements. Integers keep their low bits; floats are
// rounded toward zero and limited to what an integer type holds, NaN is 0; what
// is not 0 is true. See convertComplex for complex elements.
func (f *Function) ConvertDType(x compute.Value, dt dtypes.DType) (compute.Value, error) {
	const op = compute.OpTypeConvertDType
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		from := in[0].shape.DType
		if from == dt {
			return in[0], nil
		}
		shape := withDType(in[0].shape, dt)
		if err := f.builder.backend.holds("result", shape); err != nil {
			return nil, err
		}
		if from.IsComplex() || dt.IsComplex() {
			return f.convertComplex(in[0], dt)
		}
		n, err := f.add(op, shape, nil, func(r *run, in []*tensor) *tensor { return convert(r, in[0], from, dt) }, in...)
		if err == nil && n.splat == nil && from.IsFloat() && dt == dtypes.Float64 {
			n.splat = in[0].splat
		}
		return n, err
	})
}

// convert is Tensor.Cast but between integers, which it wraps instead of
// limiting them to what the type holds.
func convert(r *run, x *tensor, from, to dtypes.DType) *tensor {
	from = container(from)
	if to.IsPacked() {
		return within(r, r.temp(convert(r, x, from, container(to))), to)
	}
	row := dtypeRows[to]
	if !from.IsInt() || !to.IsInt() || fits(from, to) {
		return x.Cast(row.dt)
	}
	if from.Bits() < to.Bits() {
		// A negative number to a larger unsigned type: the sign is copied first.
		x = r.temp(x.Cast(dtypeRows[row.signed].dt))
		from = row.signed
	}
	// The top bit is taken apart, so that the others are a number that both types
	// hold. As a number float64 can name it, whatever the width.
	bits := to.Bits()
	var top, low *tensor
	if from.Bits() == bits {
		value := float64(uint64(1) << (bits - 1))
		if !from.IsUnsigned() {
			value = -value
		}
		low = r.temp(x.BitXor(r.temp(x.BitAndScalar(value))))
		top = r.temp(x.ShrScalar(float64(bits - 1)))
	} else {
		low = r.temp(x.BitAndScalar(float64(uint64(1)<<(bits-1) - 1)))
		top = r.temp(x.ShrScalar(float64(bits - 1)))
	}
	top = r.temp(r.temp(top.BitAndScalar(1)).Cast(row.dt))
	return r.temp(low.Cast(row.dt)).BitOr(r.temp(top.ShlScalar(float64(bits - 1))))
}

// fits says that an integer type holds every number of another.
func fits(from, to dtypes.DType) bool {
	switch {
	case from.IsUnsigned() == to.IsUnsigned():
		return from.Bits() <= to.Bits()
	case from.IsUnsigned():
		return from.Bits() < to.Bits()
	}
	return false
}

// Identity is its operand.
func (f *Function) Identity(x compute.Value) (compute.Value, error) {
	return f.build(compute.OpTypeIdentity, []compute.Value{x}, func(in []*Node) (*Node, error) { return in[0], nil })
}

// OptimizationBarrier gives its operands: what Millrace rewrites is exact, so
// that there is nothing to keep from happening.
func (f *Function) OptimizationBarrier(operands ...compute.Value) ([]compute.Value, error) {
	const op = compute.OpTypeOptimizationBarrier
	if len(operands) == 0 {
		return nil, errors.Errorf("%s: needs at least one operand", op)
	}
	if _, err := f.operands(operands); err != nil {
		return nil, errors.WithMessage(err, op.String())
	}
	return append([]compute.Value{}, operands...), nil
}

// SchedulingBarrier gives its operand. Nothing an op does can be seen from
// outside but its value, so that an order of ops that are not needed has none.
func (f *Function) SchedulingBarrier(operand compute.Value, dependencies ...compute.Value) (compute.Value, error) {
	return f.build(compute.OpTypeSchedulingBarrier, append([]compute.Value{operand}, dependencies...), func(in []*Node) (*Node, error) {
		return in[0], nil
	})
}

// Iota counts along an axis. Numbers that the dtype cannot hold wrap; complex
// ones have the imaginary part 0.
func (f *Function) Iota(shape shapes.Shape, axis int) (compute.Value, error) {
	const op = compute.OpTypeIota
	shape = shape.Clone()
	return f.build(op, nil, func([]*Node) (*Node, error) {
		shape, err := f.concrete(shape)
		if err != nil {
			return nil, err
		}
		if err := f.builder.backend.holds("result", shape); err != nil {
			return nil, err
		}
		if axis < 0 || axis >= shape.Rank() {
			return nil, errors.Errorf("axis %d of a %s", axis, shape)
		}
		if row, ok := complexRows[shape.DType]; ok {
			e := &expansion{f: f}
			re := e.get(f.Iota(withDType(shape, row.part), axis))
			n := e.pair(op, re, re, func(e *expansion, a, _ *Node) (re, im *Node) { return a, e.zeros(a) })
			return n, e.err
		}
		if !isNumber(shape.DType) {
			return nil, errors.Errorf("not defined for %s", shape.DType)
		}
		dims := append([]int{}, shape.Dimensions...)
		if len(dims) > maxRank {
			return f.wideIota(shape, axis)
		}
		return f.add(op, shape, axis, func(r *run, _ []*tensor) *tensor { return counting(r, shape.DType, dims, axis) })
	})
}

// narrow is the bits of dtypes that a dimension may have too many elements for.
const narrow = 16

func counting(r *run, dt dtypes.DType, dims []int, axis int) *tensor {
	n := float64(dims[axis])
	line := dtypes.Int32
	if dt.Bits() > narrow {
		line = dt
	}
	t := r.temp(millrace.ArangeOn(r.sc, dtypeRows[line].dt, 0, n, 1))
	if line != dt {
		t = r.temp(convert(r, t, line, dt))
	}
	column := make([]int, len(dims))
	for i := range column {
		column[i] = 1
	}
	column[axis] = dims[axis]
	return r.temp(t.Reshape(column...)).Expand(dims...)
}
