package gomlxbackend

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// Reshape gives the elements in row-major order other dimensions.
func (f *Function) Reshape(x compute.Value, dims ...int) (compute.Value, error) {
	const op = compute.OpTypeReshape
	own(&dims)
	axes := f.axesInOrder(x)
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		dims, err := f.inOrder(dims, axes)
		if err != nil {
			return nil, err
		}
		to := shapes.Shape{DType: in[0].shape.DType, Dimensions: append([]int{}, dims...)}
		if err := f.builder.backend.holds("result", to); err != nil {
			return nil, err
		}
		shape, err := shapeinference.Reshape(in[0].shape, dims)
		if err != nil {
			return nil, err
		}
		switch {
		case shape.EqualDimensions(in[0].shape):
			return in[0], nil
		case shape.Rank() > maxRank:
			return f.shaped(in[0], to.Dimensions)
		case in[0].isWide():
			return f.shaped(in[0].flat, to.Dimensions)
		}
		return f.view(op, shape, nil, in[0], func(x *tensor) *tensor { return x.Reshape(to.Dimensions...) })
	})
}

// Transpose puts the axes in another order.
func (f *Function) Transpose(x compute.Value, permutation ...int) (compute.Value, error) {
	const op = compute.OpTypeTranspose
	own(&permutation)
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		shape, err := shapeinference.Transpose(in[0].shape, permutation)
		if err != nil {
			return nil, err
		}
		if slices.IsSorted(permutation) {
			return in[0], nil
		}
		if in[0].isWide() {
			return f.wideTranspose(in[0], permutation, shape.Dimensions)
		}
		axes := slices.Clone(permutation)
		return f.view(op, shape, axes, in[0], func(x *tensor) *tensor { return x.Permute(axes...) })
	})
}

// BroadcastInDim puts axis i of x at axis axes[i] of the result and repeats x
// along the others and along those of size 1.
func (f *Function) BroadcastInDim(x compute.Value, shape shapes.Shape, axes []int) (compute.Value, error) {
	const op = compute.OpTypeBroadcastInDim
	shape = shape.Clone()
	own(&axes)
	if n, err := f.builder.node(x); err == nil && n.isComplex() {
		if shape.DType != n.shape.DType {
			return nil, errors.Errorf("%s: the result %s is of another dtype", signature(op, []*Node{n}), shape)
		}
		shape = withDType(shape, complexRows[shape.DType].part)
	}
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		from := in[0].shape
		shape, err := f.concrete(shape)
		if err != nil {
			return nil, err
		}
		if err := f.builder.backend.holds("result", shape); err != nil {
			return nil, err
		}
		if shape.DType != from.DType {
			return nil, errors.Errorf("the result %s is of another dtype", shape)
		}
		if err := shapeinference.BroadcastInDim(from, shape, axes, nil); err != nil {
			return nil, err
		}
		if !slices.IsSorted(axes) {
			return nil, errors.Errorf("axes %v do not increase", axes)
		}
		column := make([]int, shape.Rank())
		for i := range column {
			column[i] = 1
		}
		for i, axis := range axes {
			column[axis] = from.Dimensions[i]
		}
		dims := append([]int{}, shape.Dimensions...)
		if slices.Equal(dims, from.Dimensions) {
			return in[0], nil
		}
		if len(dims) > maxRank {
			return f.wideBroadcast(in[0], column, shape)
		}
		return f.view(op, shape, axes, in[0], func(x *tensor) *tensor {
			if slices.Equal(column, x.Shape()) {
				return x.Expand(dims...)
			}
			c := x.Reshape(column...)
			defer c.Release()
			return c.Expand(dims...)
		})
	})
}

// Slice takes every stride-th element from start up to limit along each axis.
// Negative starts and limits count from the end. What is not there is an error, or
// with versions of compute that limit both, nothing.
func (f *Function) Slice(x compute.Value, starts, limits, strides []int) (compute.Value, error) {
	const op = compute.OpTypeSlice
	own(&starts, &limits, &strides)
	whole := f.wholeAxes(x, limits)
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		from := in[0].shape
		limits := filledIn(limits, whole, from)
		rank := from.Rank()
		if len(starts) != rank || len(limits) != rank || (len(strides) != 0 && len(strides) != rank) {
			return nil, errors.Errorf("starts %v, limits %v and strides %v for %d axes", starts, limits, strides, rank)
		}
		clip := func(at, size int) int {
			if at < 0 {
				at += size
			}
			if !slicesClip {
				return at
			}
			return min(max(at, 0), size)
		}
		first, last, step := make([]int, rank), make([]int, rank), make([]int, rank)
		ranges := make([]millrace.Range, rank)
		for i, size := range from.Dimensions {
			first[i], last[i], step[i] = clip(starts[i], size), clip(limits[i], size), 1
			if len(strides) > 0 {
				step[i] = min(max(1, strides[i]), max(1, size)) // more takes the first alone, too
			}
			ranges[i] = millrace.R(first[i], last[i], step[i])
		}
		shape, err := shapeinference.Slice(from, first, last, step)
		if err != nil {
			return nil, err
		}
		if shape.EqualDimensions(from) {
			return in[0], nil
		}
		if in[0].isWide() {
			return f.wideSlice(in[0], first, last, step, shape.Dimensions)
		}
		return f.view(op, shape, []any{first, last, step}, in[0], func(x *tensor) *tensor { return x.Slice(ranges...) })
	})
}

// Reverse turns the order of the elements along the axes.
func (f *Function) Reverse(x compute.Value, axes ...int) (compute.Value, error) {
	const op = compute.OpTypeReverse
	own(&axes)
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		turned := slices.Clone(axes)
		slices.Sort(turned)
		turned = slices.Compact(turned)
		if err := checkAxes(in[0].shape, turned); err != nil {
			return nil, err
		}
		if len(turned) == 0 {
			return in[0], nil
		}
		if in[0].isWide() {
			return f.wideReverse(in[0], turned)
		}
		return f.view(op, in[0].shape, turned, in[0], func(x *tensor) *tensor { return x.Flip(turned...) })
	})
}

// checkAxes reports axes that a shape does not have.
func checkAxes(shape shapes.Shape, axes []int) error {
	for _, a := range axes {
		if a < 0 || a >= shape.Rank() {
			return errors.Errorf("axis %d of a %s", a, shape)
		}
	}
	return nil
}

// view adds an op that only says where elements are found. All elements of the
// result are the same number if all of x are.
func (f *Function) view(op compute.OpType, shape shapes.Shape, attr any, x *Node, do func(*tensor) *tensor) (*Node, error) {
	n, err := f.add(op, shape, attr, func(_ *run, in []*tensor) *tensor { return do(in[0]) }, x)
	if err != nil {
		return nil, err
	}
	n.splat, n.isView = x.splat, true
	return n, nil
}

// Concatenate puts its operands one after another along an axis.
func (f *Function) Concatenate(axis int, operands ...compute.Value) (compute.Value, error) {
	const op = compute.OpTypeConcatenate
	return f.build(op, operands, func(in []*Node) (*Node, error) {
		var from []shapes.Shape
		for _, n := range in {
			from = append(from, n.shape)
		}
		shape, err := shapeinference.Concatenate(from, axis)
		if err != nil {
			return nil, err
		}
		if len(in) == 1 {
			return in[0], nil
		}
		if wideAmong(in) {
			return f.wideConcatenate(in, axis, shape.Dimensions)
		}
		return f.add(op, shape, axis, func(_ *run, in []*tensor) *tensor { return millrace.Concat(axis, in...) }, in...)
	})
}

// Pad surrounds x with a value, also between neighbours. Negative amounts take
// elements away at the ends, after what is put between them.
func (f *Function) Pad(x, fill compute.Value, axes ...compute.PadAxis) (compute.Value, error) {
	const op = compute.OpTypePad
	own(&axes)
	return f.build(op, []compute.Value{x, fill}, func(in []*Node) (*Node, error) {
		from, value := in[0].shape, in[1]
		if value.shape.DType != from.DType || !value.shape.IsScalar() {
			return nil, errors.Errorf("a %s to pad a %s with; it must be a scalar of that dtype", value.shape, from)
		}
		shape, err := shapeinference.Pad(from, axes...)
		if err != nil {
			return nil, err
		}
		if from.IsZeroSize() {
			column := slices.Repeat([]int{1}, shape.Rank())
			return f.add(op, shape, fmt.Sprint(axes), func(r *run, in []*tensor) *tensor {
				return r.temp(in[1].Reshape(column...)).Expand(shape.Dimensions...)
			}, in...)
		}
		pads, cut := padding(from, shape, axes)
		do := func(r *run, in []*tensor) *tensor {
			inside := r.temp(r.temp(millrace.FullOn(r.sc, millrace.Bool, 1, from.Dimensions...)).Pad(0, pads...))
			padded := r.temp(in[0].Pad(0, pads...))
			return cut(r, millrace.Where(inside, padded, in[1]))
		}
		if value.splat != nil {
			v := *value.splat
			do = func(r *run, in []*tensor) *tensor { return cut(r, in[0].Pad(v, pads...)) }
		}
		return f.add(op, shape, fmt.Sprint(axes), do, in...)
	})
}

// padding is what is put around and between elements, and a slice that takes
// away what negative amounts say.
func padding(from, to shapes.Shape, axes []compute.PadAxis) ([]millrace.Padding, func(*run, *tensor) *tensor) {
	pads := make([]millrace.Padding, from.Rank())
	ranges := make([]millrace.Range, from.Rank())
	cuts := false
	for i := range pads {
		ranges[i] = millrace.All
		if i >= len(axes) {
			continue
		}
		a := axes[i]
		pads[i] = millrace.Padding{Before: max(a.Start, 0), After: max(a.End, 0), Between: a.Interior}
		if a.Start < 0 || a.End < 0 {
			first := max(-a.Start, 0)
			ranges[i], cuts = millrace.R(first, first+to.Dimensions[i]), true
		}
	}
	return pads, func(r *run, t *tensor) *tensor {
		if !cuts {
			return t
		}
		return r.temp(t).Slice(ranges...)
	}
}
