package gomlxbackend

import (
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// windowFold is how ReduceWindow joins the elements of a window. Where elements
// are spread, what is between them is the start of the fold, as a number.
type windowFold struct {
	how   millrace.Reduction
	start func(dtypes.DType) any
	// turned: what the greatest element is found as the least of, where a
	// float64 cannot name the start.
	turned bool
}

func numeral(x int) func(dtypes.DType) any {
	return func(dt dtypes.DType) any { return shapes.CastAsDType(x, dt) }
}

// windowFolds has a row for each reduction that ReduceWindow takes.
var windowFolds = map[compute.ReduceOpType]windowFold{
	compute.ReduceOpSum:     {how: millrace.ReduceSum, start: numeral(0)},
	compute.ReduceOpProduct: {how: millrace.ReduceProd, start: numeral(1)},
	compute.ReduceOpMax:     {how: millrace.ReduceMax, start: dtypes.DType.LowestValue},
	compute.ReduceOpMin:     {how: millrace.ReduceMin, start: dtypes.DType.HighestValue, turned: true},
}

// oneEach is a list as compute gives it, or the default of every axis.
func oneEach[T any](list []T, n int, none T) []T {
	if len(list) == 0 {
		return slices.Repeat([]T{none}, n)
	}
	return slices.Clone(list)
}

// windowsOf are the windows of an op, one for each axis. Without strides they
// lie side by side.
func windowsOf(rank int, sizes, strides, dilations []int, paddings [][2]int) []millrace.Window {
	sizes, dilations = oneEach(sizes, rank, 1), oneEach(dilations, rank, 1)
	if len(strides) == 0 {
		strides = sizes
	}
	paddings = oneEach(paddings, rank, [2]int{})
	ws := make([]millrace.Window, rank)
	for i := range ws {
		ws[i] = millrace.Window{Size: sizes[i], Stride: strides[i], Dilation: dilations[i], Before: paddings[i][0], After: paddings[i][1]}
		if sizes[i] == 1 {
			ws[i].Dilation = 1
		}
	}
	return ws
}

// ReduceWindow joins the elements of every window. Padding, and what
// inputDilations put between elements, changes nothing. Of bools there are the
// greatest and the least.
func (f *Function) ReduceWindow(x compute.Value, reduction compute.ReduceOpType, sizes, strides, inputDilations, windowDilations []int,
	paddings [][2]int) (compute.Value, error) {
	const op = compute.OpTypeReduceWindow
	own(&sizes, &strides, &inputDilations, &windowDilations)
	own(&paddings)
	if n, err := f.builder.node(x); err == nil && n.isComplex() && reduction != compute.ReduceOpSum {
		return nil, errors.Errorf("%s: %s is not defined for %s", signature(op, []*Node{n}), reduction, n.shape.DType)
	}
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		from := in[0].shape
		shape, err := shapeinference.ReduceWindow(from, sizes, strides, inputDilations, windowDilations, paddings)
		if err != nil {
			return nil, err
		}
		fold, ok := windowFolds[reduction]
		if !ok {
			return nil, errors.Errorf("no reduction %s", reduction)
		}
		if from.DType == dtypes.Bool && (reduction == compute.ReduceOpMax || reduction == compute.ReduceOpMin) {
			e := &expansion{f: f} // false is less than true
			numbers := e.get(f.ConvertDType(in[0], dtypes.Uint8))
			folded := e.get(f.ReduceWindow(numbers, reduction, sizes, strides, inputDilations, windowDilations, paddings))
			bools := e.get(f.ConvertDType(folded, dtypes.Bool))
			return bools, e.err
		}
		if !isNumber(from.DType) {
			return nil, errors.Errorf("not defined for %s", from.DType)
		}
		if from.Rank() == 0 {
			return in[0], nil
		}
		if from.IsZeroSize() {
			return f.filled(op, shape, fold.start(from.DType), in[0])
		}
		ws := windowsOf(from.Rank(), sizes, strides, windowDilations, paddings)
		spread := oneEach(inputDilations, from.Rank(), 1)
		if slices.Max(spread) == 1 && moving(ws) == 0 {
			return in[0], nil
		}
		return f.add(op, shape, []any{reduction, ws, spread}, func(r *run, in []*tensor) *tensor {
			return fold.over(r, in[0], from.DType, from.Dimensions, ws, spread)
		}, in...)
	})
}

// over is the fold over windows of x, whose dimensions are from, its elements
// spread.
func (w windowFold) over(r *run, x *tensor, dt dtypes.DType, from []int, ws []millrace.Window, spread []int) *tensor {
	how, turn := w.how, func(x *tensor) *tensor { return x.To(r.sc) }
	if slices.Max(spread) > 1 {
		fill := 0.0
		if w.turned && dt.IsInt() {
			// The least is the complement of the greatest complement.
			how, turn = millrace.ReduceMax, (*tensor).BitNot
			fill = lowest(dt)
		} else {
			fill, _ = dtypeRows[dt].number(oneElement(dt, w.start(dt)))
		}
		pads := make([]millrace.Padding, len(spread))
		for i, d := range spread {
			pads[i].Between = d - 1
		}
		x = r.temp(r.temp(turn(x)).Pad(fill, pads...))
	}
	if len(ws)+moving(ws) > maxRank {
		dims := slices.Clone(from)
		for i, d := range spread {
			dims[i] = (from[i]-1)*d + 1
		}
		for i, w := range ws {
			if !still(w) {
				x = r.temp(alongAxis(r, x, dims, i, how, w))
			}
		}
		return turn(x)
	}
	return turn(r.temp(x.ReduceWindow(how, ws...)))
}

// still is a window of one element that changes nothing.
func still(w millrace.Window) bool {
	return w.Size == 1 && w.Stride == 1 && w.Before == 0 && w.After == 0
}

// moving counts the axes that windows move along.
func moving(ws []millrace.Window) int {
	n := 0
	for _, w := range ws {
		if !still(w) {
			n++
		}
	}
	return n
}

// alongAxis folds windows along one axis, with the others as one. The axis of
// dims becomes as long as there are windows.
func alongAxis(r *run, x *tensor, dims []int, axis int, how millrace.Reduction, w millrace.Window) *tensor {
	order := kept(len(dims), []int{axis})
	back := make([]int, len(dims))
	apart, size := []int{}, 1
	for i, a := range order {
		back[a] = i
		apart, size = append(apart, dims[a]), size*dims[a]
	}
	back[axis] = len(order)
	last := r.temp(x.Permute(append(order, axis)...))
	joined := r.temp(r.temp(last.Reshape(size, dims[axis])).ReduceWindow(how, millrace.Window{Size: 1}, w))
	dims[axis] = windowsIn(dims[axis], w)
	return r.temp(joined.Reshape(append(apart, dims[axis])...)).Permute(back...)
}

// windowsIn is how many windows there are in n elements.
func windowsIn(n int, w millrace.Window) int {
	return (w.Before+n+w.After-(w.Size-1)*w.Dilation-1)/w.Stride + 1
}

// lowest is the least number of a dtype: a power of two or 0, which float64
// can name, or an infinity.
func lowest(dt dtypes.DType) float64 {
	switch {
	case dt.IsFloat():
		return math.Inf(-1)
	case dt.IsUnsigned():
		return 0
	}
	return -math.Ldexp(1, dt.Bits()-1)
}

// oneElement is a slice of one element.
func oneElement(dt dtypes.DType, value any) any {
	flat := dtypes.MakeAnySlice(dt, 1)
	setFirst(flat, value)
	return flat
}

// SelectAndScatterMax adds each element of source to the place of the greatest
// element of its window: the first of equals, the last NaN if there is one. What
// no window names is 0.
func (f *Function) SelectAndScatterMax(operand, source compute.Value, sizes, strides []int, paddings [][2]int) (compute.Value, error) {
	return f.selectAndScatter(compute.OpTypeSelectAndScatterMax, operand, source, sizes, strides, paddings)
}

// SelectAndScatterMin is SelectAndScatterMax with the least element.
func (f *Function) SelectAndScatterMin(operand, source compute.Value, sizes, strides []int, paddings [][2]int) (compute.Value, error) {
	return f.selectAndScatter(compute.OpTypeSelectAndScatterMin, operand, source, sizes, strides, paddings)
}

func (f *Function) selectAndScatter(op compute.OpType, operand, source compute.Value, sizes, strides []int, paddings [][2]int) (compute.Value, error) {
	own(&sizes, &strides)
	own(&paddings)
	return f.build(op, []compute.Value{operand, source}, func(in []*Node) (*Node, error) {
		from := in[0].shape
		shape, err := shapeinference.SelectAndScatter(from, in[1].shape, sizes, strides, paddings)
		if err != nil {
			return nil, err
		}
		if !isNumber(from.DType) {
			return nil, errors.Errorf("not defined for %s", from.DType)
		}
		if from.IsZeroSize() {
			return f.filled(op, shape, shapes.CastAsDType(0, from.DType), in[0])
		}
		ws, position := windowsOf(from.Rank(), sizes, strides, nil, paddings), millrace.Int32
		if from.Size() > math.MaxInt32 {
			position = millrace.Int64
		}
		windows := in[1].shape.Size()
		least := op == compute.OpTypeSelectAndScatterMin
		return f.add(op, shape, ws, func(r *run, in []*tensor) *tensor {
			x := in[0]
			switch {
			case least && from.DType.IsInt():
				x = r.temp(x.BitNot())
			case least:
				x = r.temp(x.Neg())
			}
			numbers := r.temp(millrace.ArangeOn(r.sc, position, 0, float64(from.Size()), 1))
			c := chosen{x, r.temp(numbers.Reshape(from.Dimensions...)), slices.Clone(from.Dimensions)}
			for first, last := 0, 0; last < len(ws); first = last {
				for last++; last < len(ws) && moving(ws[first:last+1]) <= atOnce; {
					last++
				}
				c = c.greatest(r, from.DType, ws, first, last)
			}
			at, values := r.temp(c.at.Reshape(windows)), r.temp(in[1].Reshape(windows))
			none := r.temp(millrace.FullOn(r.sc, in[1].DType(), 0, from.Size()))
			put := r.temp(none.Scatter(at, values, 0, millrace.CombineAdd, millrace.IndexDrop))
			return put.Reshape(from.Dimensions...)
		}, in...)
	})
}

// chosen are elements, and where in memory they are: -1 is nowhere.
type chosen struct {
	x, at *tensor
	dims  []int
}

// atOnce is how many axes windows are made along at once: each is one more, and
// all others are one.
const atOnce = (maxRank - 1) / 2

// greatest is the greatest element of each window along the axes from first up
// to last that windows move along. The order of elements in a window is that of
// their places, so that what is found along some axes can be searched further
// along others.
func (c chosen) greatest(r *run, dt dtypes.DType, ws []millrace.Window, first, last int) chosen {
	var axes, others []int
	for i := range ws {
		if i >= first && i < last && !still(ws[i]) {
			axes = append(axes, i)
		} else {
			others = append(others, i)
		}
	}
	if len(axes) == 0 {
		return c
	}
	order := slices.Concat(others, axes)
	apart, size := []int{}, 1
	for _, a := range others {
		apart, size = append(apart, c.dims[a]), size*c.dims[a]
	}
	flat, inside, after := []int{size}, []int{}, slices.Clone(c.dims)
	for i, a := range axes {
		flat, inside = append(flat, c.dims[a]), append(inside, 2*i+2)
		after[a] = windowsIn(c.dims[a], ws[a])
		apart = append(apart, after[a])
	}
	view := func(x *tensor, fill float64) *tensor {
		x = r.temp(r.temp(x.Permute(order...)).Reshape(flat...))
		for i, a := range slices.Backward(axes) {
			x = r.temp(x.Windows(i+1, ws[a], fill))
		}
		return x
	}
	back := make([]int, len(order))
	for i, a := range order {
		back[a] = i
	}
	as := func(x *tensor) *tensor { // with the axes as they were
		return r.temp(r.temp(x.Reshape(apart...)).Permute(back...))
	}
	win, at := view(c.x, lowest(dt)), view(c.at, -1)
	most := r.temp(win.MaxKeep(inside...))
	equal := r.temp(r.temp(win.Eq(most)).And(r.temp(at.GeScalar(0))))
	none := 0x1p31 - 1 // no place in memory
	if c.at.DType() == millrace.Int64 {
		none = 0x1p62
	}
	found := r.temp(r.temp(millrace.WhereScalar(equal, at, none)).Min(inside...))
	found = r.temp(found.MaskedFill(r.temp(found.EqScalar(none)), -1))
	if dt.IsFloat() {
		nan := r.temp(r.temp(millrace.WhereScalar(r.temp(win.IsNaN()), at, -1)).Max(inside...))
		found = r.temp(millrace.Where(r.temp(nan.GeScalar(0)), nan, found))
	}
	return chosen{as(most), as(found), after}
}
