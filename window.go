package millrace

import (
	"slices"

	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Window describes windows that move along one dimension. A Stride or Dilation of 0 means 1.
type Window struct {
	Size     int // elements of a window, at least 1
	Stride   int // from one window to the next
	Dilation int // from one element of a window to the next
	Before   int // elements added before the first, at least 0
	After    int // elements added after the last
}

func (w Window) withDefaults() Window {
	if w.Stride == 0 {
		w.Stride = 1
	}
	if w.Dilation == 0 {
		w.Dilation = 1
	}
	return w
}

// over returns how many windows there are in n elements.
func (w Window) over(n int) (int, error) {
	if w.Size < 1 || w.Stride < 1 || w.Dilation < 1 || w.Before < 0 || w.After < 0 {
		return 0, shapeErr("window %+v is invalid", w)
	}
	all, _, ok := Padding{Before: w.Before, After: w.After}.size(n)
	if !ok {
		return 0, shapeErr("window %+v does not fit %d elements", w, n)
	}
	if all == 0 || w.Size-1 > (all-1)/w.Dilation { // a division, so nothing overflows
		return 0, nil
	}
	return (all-1-(w.Size-1)*w.Dilation)/w.Stride + 1, nil
}

// whole reports the window of one element, which changes nothing.
func (w Window) whole() bool { return w == Window{Size: 1, Stride: 1, Dilation: 1} }

// Windows returns a view of a dimension as two: the window, and the place in it. It is PyTorch's
// unfold and NumPy's sliding_window_view. Nothing is copied; an element that is in several
// windows occurs several times. The elements that Before and After add have the given value,
// which takes t's dtype as in [Tensor.AddScalar]. A negative axis counts from the last. An axis
// that does not exist is ErrShape, and so are a window of a size or stride below 1 and a result
// of more than 8 dimensions. A window larger than the dimension gives no windows.
func (t *Tensor) Windows(axis int, w Window, value float64) (r *Tensor) {
	const name = "windows"
	c := compose(name, adhook.Windows[Window]{Axis: axis, Window: w}, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	list, err := axesOf([]int{axis}, t.Rank())
	if err != nil {
		return failed(name, err, t)
	}
	bits, ok := scalarBits(t.DType(), value)
	if !ok {
		return unheld(ir.Window, t, value)
	}
	return t.windows(name, list, []Window{w}, bits)
}

// windows makes windows along several axes, in ascending order. fill is the value of padding, as
// bits.
func (t *Tensor) windows(name string, axes []int, ws []Window, fill uint64) *Tensor {
	in := t.shape()
	pads, padding := make([]Padding, len(in)), false
	counts := make([]int, len(ws))
	rank := len(in)
	for i, a := range axes {
		ws[i] = ws[i].withDefaults()
		var err error
		if counts[i], err = ws[i].over(in[a]); err != nil {
			return failed(name, err, t)
		}
		if ws[i].Before+ws[i].After > 0 {
			pads[a], padding = Padding{Before: ws[i].Before, After: ws[i].After}, true
		}
		rank++
	}
	if rank > ir.MaxRank {
		return failed(name, shapeErr("%v with windows along %d axes has more than %d dimensions", in, len(axes), ir.MaxRank), t)
	}
	p := within(t)
	if padding {
		t = t.padded(name, fill, pads)
	}
	for i := len(axes) - 1; i >= 0 && t.shape() != nil; i-- { // without a shape, t carries an error
		a, w := axes[i], ws[i]
		shape := slices.Clone(t.shape())
		shape[a] = counts[i]
		shape = slices.Insert(shape, a+1, w.Size)
		args := [...]stream.Arg{arg(t)}
		t = record(ir.Window, ir.Invalid, shape, &ir.Attr{Axes: []int{a}, Step: []int{w.Stride, w.Dilation}}, args[:])
		p.end(&t)
	}
	return t
}

// Reduction says how ReduceWindow combines the elements of a window.
type Reduction uint8

// The reductions of windows.
const (
	ReduceSum Reduction = iota // of t's elements; padding adds nothing
	ReduceMax                  // padding is less than every element
	ReduceMin
	ReduceProd
)

// reductions maps a Reduction to its op. Padding has the value that the op's fold starts from.
var reductions = [...]ir.Op{ReduceSum: ir.Sum, ReduceMax: ir.Max, ReduceMin: ir.Min, ReduceProd: ir.Prod}

// ReduceWindow combines the elements of every window: XLA's ReduceWindow. Each dimension has a
// window; if fewer are given than t has dimensions, they are for the last ones. A Window{Size: 1}
// leaves its dimension unchanged. Numbers only, else ErrDType; the dtype is t's. An invalid
// window is ErrShape, and so is one larger than its dimension with padding, which along an empty
// dimension is every window.
func (t *Tensor) ReduceWindow(how Reduction, windows ...Window) *Tensor {
	return t.reduceWindow("reducewindow", how, windows)
}

func (t *Tensor) reduceWindow(name string, how Reduction, windows []Window) (r *Tensor) {
	c := compose(name, adhook.ReduceWindow[Window]{How: uint8(how), List: windows}, &t)
	defer c.end(&r)
	switch {
	case c.bad != nil:
		return c.bad
	case int(how) >= len(reductions):
		return failed(name, shapeErr("reduction %d does not exist", how), t)
	case t.DType() == Bool:
		return failed(name, dtypeErr("%v is not a number dtype", t.DType()), t)
	case len(windows) > t.Rank():
		return failed(name, shapeErr("%d windows were given for %v", len(windows), t.shape()), t)
	}
	first := t.Rank() - len(windows)
	var axes []int
	var ws []Window
	for i, w := range windows {
		w = w.withDefaults()
		n, err := w.over(t.shape()[first+i])
		if err == nil && n == 0 && !w.whole() {
			err = shapeErr("window %+v does not fit %d elements", w, t.shape()[first+i])
		}
		if err != nil {
			return failed(name, err, t)
		}
		if !w.whole() {
			axes, ws = append(axes, first+i), append(ws, w)
		}
	}
	if len(axes) == 0 {
		return t.Reshape(t.shape()...)
	}
	if lead := axes[0]; lead > 1 && t.Rank()+len(axes) > ir.MaxRank {
		return t.reduceWindowFlat(name, how, lead, windows[len(windows)-(t.Rank()-lead):])
	}
	op := reductions[how]
	if how == ReduceMax || how == ReduceMin {
		return t.extremeWindows(op, axes, ws)
	}
	inside := make([]int, len(axes))
	for i, a := range axes {
		inside[i] = a + i + 1
	}
	return reduce(op, t.windows(name, axes, ws, ir.FoldStart(op, t.DType())), inside, false)
}

// extremeWindows is reduceWindow for a maximum or a minimum, along one axis after another. The
// order of the comparisons does not change the result. It does the last axis last, because
// elements that are a stride apart take longer to read, and by then there are fewer of them.
func (t *Tensor) extremeWindows(op ir.Op, axes []int, ws []Window) *Tensor {
	fill := ir.FoldStart(op, t.DType())
	return inTurn(len(axes), t, func(x *Tensor, i int) *Tensor {
		if ws[i].Size <= comparedPlaces {
			return x.compared(op, axes[i], ws[i], fill)
		}
		return reduce(op, x.windows("reducewindow", axes[i:i+1], ws[i:i+1], fill), []int{axes[i] + 1}, false)
	})
}

// comparedPlaces is the largest window whose elements are compared one by one. These comparisons
// work on whole vectors, which a fold of a short row does not.
const comparedPlaces = 16

// compared returns the extreme of every window along an axis. It compares the first elements of
// all windows with their second ones, and so on.
func (t *Tensor) compared(op ir.Op, axis int, w Window, fill uint64) (r *Tensor) {
	defer within(t).end(&r)
	of := ir.Maximum
	if op == ir.Min {
		of = ir.Minimum
	}
	if w.Before+w.After > 0 {
		pads := make([]Padding, t.Rank()-axis)
		pads[0] = Padding{Before: w.Before, After: w.After}
		t = t.padded("reducewindow", fill, pads)
	}
	n := t.shape()[axis] // the caller refuses a dimension that is too short for a window
	last := n - 1 - (w.Size-1)*w.Dilation
	ranges := slices.Repeat([]Range{All}, axis+1)
	return inTurn(w.Size, t, func(r *Tensor, j int) *Tensor {
		first := j * w.Dilation
		ranges[axis] = R(first, first+last+1, w.Stride)
		v := t.Slice(ranges...)
		if j == 0 {
			return v
		}
		return binary(of, r, v)
	})
}

// reduceWindowFlat is reduceWindow with the first dimensions, which have no windows, merged into
// one. Otherwise there would be too many dimensions.
func (t *Tensor) reduceWindowFlat(name string, how Reduction, lead int, windows []Window) *Tensor {
	in := t.shape()
	joined := t.Reshape(slices.Concat([]int{in[:lead].Elems()}, in[lead:])...).reduceWindow(name, how, windows)
	if joined.Rank() == 0 {
		return joined // carries an error
	}
	return joined.Reshape(slices.Concat(in[:lead], joined.shape()[1:])...)
}

// MaxPool is the largest element of every window over the last dimensions: PyTorch's max_pool1d, 2d
// and 3d. It is [Tensor.ReduceWindow] with [ReduceMax], with the same dtypes and errors.
func (t *Tensor) MaxPool(windows ...Window) *Tensor {
	return t.reduceWindow("maxpool", ReduceMax, windows)
}

// AvgPool is the mean of every window over the last dimensions: PyTorch's avg_pool1d, 2d and 3d
// with count_include_pad=False. Padding does not count: each sum is divided by the number of
// elements of t in its window. A window without elements of t gives NaN. Floats only, else
// ErrDType. Otherwise it is like [Tensor.ReduceWindow].
func (t *Tensor) AvgPool(windows ...Window) (r *Tensor) {
	const name = "avgpool"
	c := compose(name, adhook.AvgPool[Window]{List: windows}, &t)
	defer c.end(&r)
	switch {
	case c.bad != nil:
		return c.bad
	case len(windows) > t.Rank():
		return failed(name, shapeErr("%d windows were given for %v", len(windows), t.shape()), t)
	}
	return overRows(name, nil, t, nil, func(x *Tensor, _ []int) *Tensor {
		sum := x.reduceWindow(name, ReduceSum, windows)
		if sum.Rank() != x.Rank() {
			return sum // carries an error
		}
		shape := slices.Repeat([]int{1}, x.Rank())
		for i := range windows {
			d := x.Rank() - len(windows) + i
			shape[d] = x.shape()[d]
		}
		return sum.Div(FullOn(beside(x), x.DType(), 1, shape...).reduceWindow(name, ReduceSum, windows))
	})
}
