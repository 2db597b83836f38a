package gomlxbackend

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// reduction is an op that folds the elements along axes.
type reduction struct {
	takes func(dtypes.DType) bool
	do    func(r *run, dt dtypes.DType, x *tensor, axes []int) *tensor
	// none is the result of no elements, where do refuses to find one.
	none func(dtypes.DType) any
}

func folded(takes func(dtypes.DType) bool, m func(x *tensor, axes ...int) *tensor, none func(dtypes.DType) any) reduction {
	return reduction{takes, func(_ *run, _ dtypes.DType, x *tensor, axes []int) *tensor { return m(x, axes...) }, none}
}

// reductions has a row for each op that folds along axes into its operand's
// dtype.
var reductions = map[compute.OpType]reduction{
	compute.OpTypeReduceSum:     folded(isNumber, (*tensor).Sum, nil),
	compute.OpTypeReduceProduct: folded(isNumber, (*tensor).Prod, nil),
	compute.OpTypeReduceMax:     folded(isNumber, (*tensor).Max, dtypes.DType.LowestValue),
	compute.OpTypeReduceMin:     folded(isNumber, (*tensor).Min, dtypes.DType.HighestValue),

	compute.OpTypeReduceLogicalAnd: folded(isBool, (*tensor).All, nil),
	compute.OpTypeReduceLogicalOr:  folded(isBool, (*tensor).Any, nil),
	compute.OpTypeReduceLogicalXor: {takes: isBool, do: parity},

	compute.OpTypeReduceBitwiseAnd: {takes: dtypes.DType.IsInt, do: halving((*tensor).BitAnd, true)},
	compute.OpTypeReduceBitwiseOr:  {takes: dtypes.DType.IsInt, do: halving((*tensor).BitOr, false)},
	compute.OpTypeReduceBitwiseXor: {takes: dtypes.DType.IsInt, do: halving((*tensor).BitXor, false)},
}

// parity is whether an odd number of elements is true.
func parity(r *run, _ dtypes.DType, x *tensor, axes []int) *tensor {
	count := r.temp(r.temp(x.Cast(millrace.Int32)).Sum(axes...))
	return r.temp(count.BitAndScalar(1)).Cast(millrace.Bool)
}

// halving folds with an op that Millrace has no reduction of: the first half of
// the elements with the second, until one is left. No elements give one with
// all bits set, or none.
func halving(m func(x, y *tensor) *tensor, ones bool) func(*run, dtypes.DType, *tensor, []int) *tensor {
	return func(r *run, dt dtypes.DType, x *tensor, axes []int) *tensor {
		dims := x.Shape()
		order, kept, n := []int{}, []int{}, 1
		for i, d := range dims {
			if !slices.Contains(axes, i) {
				order, kept = append(order, i), append(kept, d)
			}
		}
		for _, a := range axes {
			order, n = append(order, a), n*dims[a]
		}
		if n == 0 {
			none := millrace.FullOn(r.sc, dtypeRows[dt].dt, 0, kept...)
			if ones {
				return r.temp(none).BitNot()
			}
			return none
		}
		part := func(x *tensor, from, to int) *tensor {
			ranges := slices.Repeat([]millrace.Range{millrace.All}, len(kept)+1)
			ranges[len(kept)] = millrace.R(from, to)
			return r.temp(x.Slice(ranges...))
		}
		x = r.temp(r.temp(x.Permute(order...)).Reshape(append(slices.Clone(kept), n)...))
		for n > 1 {
			half := n / 2
			next := m(part(x, 0, half), part(x, half, 2*half))
			if n%2 == 1 {
				// The odd one out is folded into the first.
				last := len(kept)
				first := m(part(r.temp(next), 0, 1), part(x, n-1, n))
				next = millrace.Concat(last, r.temp(first), part(next, 1, half))
			}
			x, n = r.temp(next), half
			// Fused, each half would compute the halves before it again.
			if err := x.Eval(); err != nil {
				r.fail(err, 0)
				return nil
			}
		}
		return x.Reshape(kept...)
	}
}

func (f *Function) reduce(op compute.OpType, x compute.Value, axes []int) (compute.Value, error) {
	own(&axes)
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		from := in[0].shape
		if in[0].isComplex() { // sums are done by parts
			return f.complexProducts(in[0], axes)
		}
		row := reductions[op]
		if !row.takes(from.DType) {
			return nil, errors.Errorf("not defined for %s", from.DType)
		}
		along, err := reducedAxes(from, axes)
		if err != nil {
			return nil, err
		}
		if len(along) == 0 {
			return in[0], nil
		}
		shape, err := shapeinference.Reduce(from, along)
		if err != nil {
			return nil, err
		}
		if in[0].isWide() {
			return f.wideReduce(op, in[0], along, shape.Dimensions)
		}
		if row.none != nil && from.IsZeroSize() {
			return f.filled(op, shape, row.none(from.DType), in[0])
		}
		return f.add(op, shape, along, func(r *run, in []*tensor) *tensor {
			return row.do(r, from.DType, in[0], along)
		}, in...)
	})
}

// reducedAxes are the axes in order; none given are all.
func reducedAxes(shape shapes.Shape, axes []int) ([]int, error) {
	if err := checkAxes(shape, axes); err != nil {
		return nil, err
	}
	along := slices.Clone(axes)
	if len(along) == 0 {
		for i := range shape.Rank() {
			along = append(along, i)
		}
	}
	slices.Sort(along)
	if len(slices.Compact(slices.Clone(along))) != len(along) {
		return nil, errors.Errorf("axes %v name one twice", axes)
	}
	return along, nil
}

// filled is a node of one value everywhere, which is an element of its dtype.
func (f *Function) filled(op compute.OpType, shape shapes.Shape, value any, of *Node) (*Node, error) {
	row, flat := dtypeRows[shape.DType], dtypes.MakeAnySlice(shape.DType, 1)
	setFirst(flat, value)
	ones := slices.Repeat([]int{1}, shape.Rank())
	dims := append([]int{}, shape.Dimensions...)
	return f.add(op, shape, fmt.Sprint("all ", value), func(r *run, _ []*tensor) *tensor {
		return r.temp(row.upload(r.sc, flat, ones)).Expand(dims...)
	}, of)
}

// ArgMinMax is the position of the least or greatest element along an axis, the
// first of several. The first NaN is both, -0 is no less than +0, and false is less
// than true.
func (f *Function) ArgMinMax(x compute.Value, axis int, dt dtypes.DType, isMin bool) (compute.Value, error) {
	const op = compute.OpTypeArgMinMax
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		from := in[0].shape
		if err := f.builder.backend.holds("result", withDType(from, dt)); err != nil {
			return nil, err
		}
		if from.DType == dtypes.Bool {
			e := &expansion{f: f}
			at := e.get(f.ArgMinMax(e.get(f.ConvertDType(in[0], dtypes.Uint8)), axis, dt, isMin))
			return at, e.err
		}
		shape, err := shapeinference.ArgMinMax(from, axis, dt)
		if err != nil {
			return nil, err
		}
		if from.Dimensions[axis] == 0 {
			return nil, errors.Errorf("axis %d has no elements", axis)
		}
		find, position := (*tensor).ArgMaxAs, dtypes.Int32
		if isMin {
			find = (*tensor).ArgMinAs
		}
		if from.Dimensions[axis] > math.MaxInt32 {
			position = dtypes.Int64
		}
		return f.add(op, shape, []any{axis, isMin}, func(r *run, in []*tensor) *tensor {
			x := in[0]
			if from.DType.IsFloat() {
				x = r.temp(x.AddScalar(0)) // of the zeros only +0 is left
			}
			at := find(x, dtypeRows[position].dt, axis)
			if dt == position {
				return at
			}
			return convert(r, r.temp(at), position, dt)
		}, in...)
	})
}
