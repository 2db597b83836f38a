package gomlxbackend

import (
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// places says where gathers read and scatters write: the axes of an operand
// that a start index points into are taken together as one, and each window
// becomes positions along that.
type places struct {
	vector int   // axis of the start indices whose elements are one index, each for another axis
	batch  []int // the other dimensions of the start indices
	axes   []placeAxis
	rest   []int // axes of the operand that are taken whole
	count  int   // positions there are: the product of the axes' dimensions
}

// placeAxis is an axis of the operand that a window does not fill.
type placeAxis struct {
	axis, dim, size int
	component       int  // which element of an index is the start, or -1: 0 is
	kept            bool // the window is an axis of the result
}

// newPlaces sorts the axes of an operand into those that are pointed into or
// not filled, and those taken whole. from names the axis of each element of an
// index; sizes are the windows'; dropped axes are no axes of the result.
func newPlaces(operand, indices shapes.Shape, vector int, from, sizes, dropped []int) (*places, error) {
	if !indices.DType.IsInt() {
		return nil, errors.Errorf("indices of %s; they must be integers", indices.DType)
	}
	p := &places{vector: vector, count: 1}
	for i, d := range indices.Dimensions {
		if i != vector {
			p.batch = append(p.batch, d)
		}
	}
	for _, list := range [][]int{from, dropped} {
		if err := distinct(operand.Rank(), list); err != nil {
			return nil, err
		}
	}
	for i, d := range operand.Dimensions {
		a := placeAxis{axis: i, dim: d, size: sizes[i], component: slices.Index(from, i), kept: !slices.Contains(dropped, i)}
		if a.component < 0 && a.size == d && a.kept {
			p.rest = append(p.rest, i)
			continue
		}
		p.axes = append(p.axes, a)
		p.count *= d
	}
	return p, nil
}

// distinct reports axes out of range or named twice.
func distinct(rank int, axes []int) error {
	for i, a := range axes {
		if a < 0 || a >= rank || slices.Contains(axes[:i], a) {
			return errors.Errorf("axes %v of %d", axes, rank)
		}
	}
	return nil
}

// dtype of positions.
func (p *places) dtype() millrace.DType {
	if p.count > math.MaxInt32 {
		return millrace.Int64
	}
	return millrace.Int32
}

// kept counts the windows that are axes of the result.
func (p *places) kept() int {
	n := 0
	for _, a := range p.axes {
		if a.kept {
			n++
		}
	}
	return n
}

// operandOrder is the operand's axes with those pointed into in front.
func (p *places) operandOrder() []int {
	var order []int
	for _, a := range p.axes {
		order = append(order, a.axis)
	}
	return append(order, p.rest...)
}

// flat is the operand with the axes pointed into as its first one.
func (p *places) flat(r *run, t *tensor) *tensor {
	order := p.operandOrder()
	dims := []int{p.count}
	for _, a := range p.rest {
		dims = append(dims, t.Dim(a))
	}
	return r.temp(r.temp(t.Permute(order...)).Reshape(dims...))
}

// positions are where the windows' elements are, of the shape of the batch and
// then of the windows that are kept. Windows that do not lie within the operand
// are moved until they do, or are at -1 throughout.
func (p *places) positions(r *run, starts *tensor, drop bool) *tensor {
	dt := p.dtype()
	kept := p.kept()
	wide := func(t *tensor) *tensor { // with the windows' axes behind
		return r.temp(t.Reshape(append(slices.Clone(p.batch), slices.Repeat([]int{1}, kept)...)...))
	}
	at := r.temp(millrace.FullOn(r.sc, dt, 0, append(slices.Clone(p.batch), slices.Repeat([]int{1}, kept)...)...))
	var inside *tensor
	stride, window := p.count, 0
	for _, a := range p.axes {
		stride /= max(a.dim, 1)
		if a.component >= 0 {
			start := r.temp(p.component(r, starts, a.component).Cast(dt))
			if drop {
				ok := r.temp(r.temp(start.GeScalar(0)).And(r.temp(start.LeScalar(float64(a.dim - a.size)))))
				if inside != nil {
					ok = r.temp(inside.And(ok))
				}
				inside = ok
			}
			start = r.temp(start.ClampScalar(0, float64(a.dim-a.size)))
			at = r.temp(at.Add(wide(r.temp(start.MulScalar(float64(stride))))))
		}
		if !a.kept {
			continue
		}
		dims := slices.Repeat([]int{1}, len(p.batch)+kept)
		dims[len(p.batch)+window] = a.size
		window++
		steps := r.temp(millrace.ArangeOn(r.sc, dt, 0, float64(a.size), 1))
		at = r.temp(at.Add(r.temp(r.temp(steps.MulScalar(float64(stride))).Reshape(dims...))))
	}
	if inside != nil {
		at = r.temp(at.MaskedFill(r.temp(wide(inside).Not()), -1))
	}
	return at
}

// component is one element of each index.
func (p *places) component(r *run, starts *tensor, i int) *tensor {
	if starts.Rank() == p.vector {
		return starts // each is an index of one element
	}
	ranges := slices.Repeat([]millrace.Range{millrace.All}, p.vector+1)
	ranges[p.vector] = millrace.At(i)
	return r.temp(starts.Slice(ranges...))
}

// axisOf is the axis that a window has behind the batch, for an axis of the
// operand: those pointed into first, then those taken whole.
func (p *places) axisOf(operandAxis int) int {
	at := len(p.batch)
	for _, a := range p.axes {
		if a.axis == operandAxis {
			return at
		}
		if a.kept {
			at++
		}
	}
	return at + slices.Index(p.rest, operandAxis)
}

// Gather takes a window of the operand at each start index. Windows are moved
// until they lie within the operand.
func (f *Function) Gather(operand, startIndices compute.Value, indexVectorAxis int,
	offsetOutputAxes, collapsedSliceAxes, startIndexMap, sliceSizes []int, _ bool) (compute.Value, error) {
	const op = compute.OpTypeGather
	own(&offsetOutputAxes, &collapsedSliceAxes, &startIndexMap, &sliceSizes)
	whole := f.wholeAxes(operand, sliceSizes)
	return f.build(op, []compute.Value{operand, startIndices}, func(in []*Node) (*Node, error) {
		from, starts := in[0].shape, in[1].shape
		sliceSizes := filledIn(sliceSizes, whole, from)
		if err := concrete(sliceSizes); err != nil {
			return nil, err
		}
		if indexVectorAxis == starts.Rank() {
			// shapeinference wants the axis of one element to be there.
			starts = shapes.Make(starts.DType, append(slices.Clone(starts.Dimensions), 1)...)
		}
		shape, err := shapeinference.Gather(from, starts, indexVectorAxis, offsetOutputAxes, collapsedSliceAxes, startIndexMap, sliceSizes, false)
		if err != nil {
			return nil, err
		}
		shape = shapes.Make(shape.DType, shape.Dimensions...)
		p, err := newPlaces(from, in[1].shape, indexVectorAxis, startIndexMap, sliceSizes, collapsedSliceAxes)
		if err != nil {
			return nil, err
		}
		var order []int // of the axes of what is taken
		batch := 0
		windows := kept(from.Rank(), collapsedSliceAxes)
		for axis := range shape.Rank() {
			if slices.Contains(offsetOutputAxes, axis) {
				order, windows = append(order, p.axisOf(windows[0])), windows[1:]
				continue
			}
			order, batch = append(order, batch), batch+1
		}
		dt, dims := in[0].millraceDType(), append([]int{}, shape.Dimensions...)
		attr := []any{indexVectorAxis, offsetOutputAxes, collapsedSliceAxes, startIndexMap, sliceSizes}
		return f.add(op, shape, attr, func(r *run, in []*tensor) *tensor {
			if shape.IsZeroSize() {
				return millrace.FullOn(r.sc, dt, 0, dims...)
			}
			taken := r.temp(p.flat(r, in[0]).Take(p.positions(r, in[1], false), 0, millrace.IndexClamp))
			return taken.Permute(order...)
		}, in...)
	})
}

// concrete reports sizes of windows that are none: shapeinference takes -1 for
// one that is known later.
func concrete(sizes []int) error {
	if slices.ContainsFunc(sizes, func(n int) bool { return n < 0 }) {
		return errors.Errorf("sizes %v must not be negative", sizes)
	}
	return nil
}

// kept are the axes below rank that are not dropped.
func kept(rank int, dropped []int) []int {
	var list []int
	for i := range rank {
		if !slices.Contains(dropped, i) {
			list = append(list, i)
		}
	}
	return list
}

// scatters has a row for each op that combines windows of updates with an
// operand.
var scatters = map[compute.OpType]millrace.Combine{
	compute.OpTypeScatterSum: millrace.CombineAdd,
	compute.OpTypeScatterMax: millrace.CombineMax,
	compute.OpTypeScatterMin: millrace.CombineMin,
}

// ScatterSum is a row of scatters.
func (f *Function) ScatterSum(operand, indices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, _, _ bool) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterSum, operand, indices, updates, indexVectorAxis, updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes)
}

// ScatterMax is a row of scatters.
func (f *Function) ScatterMax(operand, indices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, _, _ bool) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterMax, operand, indices, updates, indexVectorAxis, updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes)
}

// ScatterMin is a row of scatters.
func (f *Function) ScatterMin(operand, indices, updates compute.Value, indexVectorAxis int,
	updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes []int, _, _ bool) (compute.Value, error) {
	return f.scatter(compute.OpTypeScatterMin, operand, indices, updates, indexVectorAxis, updateWindowAxes, insertedWindowAxes, scatterAxesToOperandAxes)
}

// scatter combines windows of updates with the operand at each index. A window
// that does not lie within the operand is dropped.
func (f *Function) scatter(op compute.OpType, operand, indices, updates compute.Value, indexVectorAxis int,
	windowAxes, inserted, toOperand []int) (compute.Value, error) {
	own(&windowAxes, &inserted, &toOperand)
	return f.build(op, []compute.Value{operand, indices, updates}, func(in []*Node) (*Node, error) {
		to, with := in[0].shape, in[2].shape
		if indexVectorAxis == in[1].shape.Rank() && len(toOperand) != 1 { // what shapeinference says of it is a panic
			return nil, errors.Errorf("indices of one element for axes %v", toOperand)
		}
		shape, err := shapeinference.Scatter(to, in[1].shape, with, indexVectorAxis, windowAxes, inserted, toOperand)
		if err != nil {
			return nil, err
		}
		if !isNumber(to.DType) {
			return nil, errors.Errorf("not defined for %s", to.DType)
		}
		if err := distinct(with.Rank(), windowAxes); err != nil {
			return nil, err
		}
		if err := distinct(to.Rank(), inserted); err != nil {
			return nil, err
		}
		sizes := slices.Repeat([]int{1}, to.Rank())
		windows := kept(to.Rank(), inserted) // windows[i] is what updates' axis windowAxes[i] is in the operand
		for i, axis := range windows {
			sizes[axis] = with.Dimensions[windowAxes[i]]
		}
		p, err := newPlaces(to, in[1].shape, indexVectorAxis, toOperand, sizes, inserted)
		if err != nil {
			return nil, err
		}
		order := make([]int, with.Rank())
		for i, axis := range kept(with.Rank(), windowAxes) {
			if order[i] = axis; with.Dimensions[axis] != p.batch[i] {
				return nil, errors.Errorf("axis %d of the updates is not an axis of the indices", axis)
			}
		}
		for i, axis := range windows {
			order[p.axisOf(axis)] = windowAxes[i]
		}
		var dims []int // of the operand in the order of positions
		back := make([]int, to.Rank())
		for i, axis := range p.operandOrder() {
			dims, back[axis] = append(dims, to.Dimensions[axis]), i
		}
		how := scatters[op]
		return f.add(op, shape, []any{indexVectorAxis, windowAxes, inserted, toOperand}, func(r *run, in []*tensor) *tensor {
			if to.IsZeroSize() || with.IsZeroSize() {
				return in[0].To(r.sc)
			}
			put := r.temp(p.flat(r, in[0]).Put(p.positions(r, in[1], true), r.temp(in[2].Permute(order...)), 0, how, millrace.IndexDrop))
			return r.temp(put.Reshape(dims...)).Permute(back...)
		}, in...)
	})
}

// DynamicSlice takes a window that begins at the starts, which are moved until
// it lies within the operand. The starts are a scalar for each axis, or one vector.
func (f *Function) DynamicSlice(operand compute.Value, starts []compute.Value, sizes []int) (compute.Value, error) {
	const op = compute.OpTypeDynamicSlice
	own(&sizes)
	whole := f.wholeAxes(operand, sizes)
	return f.build(op, append([]compute.Value{operand}, starts...), func(in []*Node) (*Node, error) {
		sizes := filledIn(sizes, whole, in[0].shape)
		if err := concrete(sizes); err != nil {
			return nil, err
		}
		inferred, err := shapeinference.DynamicSlice(in[0].shape, sizes)
		if err != nil {
			return nil, err
		}
		shape := shapes.Make(inferred.DType, inferred.Dimensions...)
		dt, err := startDType(in[0], in[1:])
		if err != nil || len(sizes) == 0 {
			return in[0], err
		}
		return f.add(op, shape, nil, func(r *run, in []*tensor) *tensor {
			return in[0].DynamicSlice(startsOf(r, dt, in[1:]), shape.Dimensions...)
		}, in...)
	})
}

// DynamicUpdateSlice gives the operand with a window replaced, which begins at
// the starts, as of DynamicSlice, moved until it lies within the operand.
func (f *Function) DynamicUpdateSlice(operand, update compute.Value, starts []compute.Value) (compute.Value, error) {
	const op = compute.OpTypeDynamicUpdateSlice
	return f.build(op, append([]compute.Value{operand, update}, starts...), func(in []*Node) (*Node, error) {
		shape, err := shapeinference.DynamicUpdateSlice(in[0].shape, in[1].shape)
		if err != nil {
			return nil, err
		}
		for i, d := range in[1].shape.Dimensions {
			if d > shape.Dimensions[i] {
				return nil, errors.Errorf("axis %d of the update is larger than the operand's", i)
			}
		}
		dt, err := startDType(in[0], in[2:])
		if err != nil || shape.Rank() == 0 {
			return in[1], err
		}
		return f.add(op, shape, nil, func(r *run, in []*tensor) *tensor {
			return in[0].DynamicUpdate(in[1], startsOf(r, dt, in[2:]))
		}, in...)
	})
}

// startDType checks starts, one scalar for each axis or a vector of them, and is a
// dtype that holds them once they are limited to the operand.
func startDType(operand *Node, starts []*Node) (millrace.DType, error) {
	rank := operand.shape.Rank()
	vector := len(starts) == 1 && slices.Equal(starts[0].shape.Dimensions, []int{rank})
	if len(starts) != rank && !vector {
		return 0, errors.Errorf("%d starts were given for %d axes", len(starts), rank)
	}
	for i, s := range starts {
		if !s.shape.IsScalar() && !vector || !s.shape.DType.IsInt() {
			return 0, errors.Errorf("start %d is a %s and no scalar integer", i, s.shape)
		}
	}
	for _, d := range operand.shape.Dimensions {
		if d > math.MaxInt32 {
			return millrace.Int64, nil
		}
	}
	return millrace.Int32, nil
}

// startsOf is a vector of the starts; a number that is too large for the dtype
// is too large for the operand, and limited to what it can be either way.
func startsOf(r *run, dt millrace.DType, starts []*tensor) *tensor {
	list := make([]*tensor, len(starts))
	for i, s := range starts {
		list[i] = r.temp(r.temp(s.Cast(dt)).Reshape(s.Len()))
	}
	if len(list) == 1 {
		return list[0]
	}
	return r.temp(millrace.Concat(0, list...))
}
