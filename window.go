package millrace

import (
	"slices"

	"github.com/millrace-go/millrace/internal/follow"
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
		return 0, shapeErr("window %+v", w)
	}
	all, _, ok := Padding{Before: w.Before, After: w.After}.size(n)
	if !ok {
		return 0, shapeErr("window %+v over %d elements", w, n)
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
func (t *Tensor) Windows(axis int, w Window, value float64) *Tensor {
	const name = "windows"
	if followed(t) {
		return whole(name, name, follow.Windows[Window]{Axis: axis, List: []Window{w}}, func(in []*Tensor) *Tensor { return in[0].Windows(axis, w, value) }, t)
	}
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
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
		return failed(name, shapeErr("%v with windows along %d axes: more than %d dimensions", in, len(axes), ir.MaxRank), t)
	}
	r := t
	if padding {
		r = t.padded(name, fill, pads)
	}
	for i := len(axes) - 1; i >= 0; i-- {
		a, w := axes[i], ws[i]
		shape := slices.Clone(r.shape())
		if shape == nil {
			return r // carries an error
		}
		shape[a] = counts[i]
		shape = slices.Insert(shape, a+1, w.Size)
		args := [...]stream.Arg{arg(r)}
		next := record(ir.Window, ir.Invalid, shape, &ir.Attr{Axes: []int{a}, Step: []int{w.Stride, w.Dilation}}, args[:])
		if r != t {
			done(r)
		}
		r = next
	}
	return r
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

func (t *Tensor) reduceWindow(name string, how Reduction, windows []Window) *Tensor {
	if followed(t) {
		return whole("reducewindow", name, follow.Windows[Window]{How: uint8(how), List: windows}, func(in []*Tensor) *Tensor {
			return in[0].reduceWindow(name, how, windows)
		}, t)
	}
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	switch {
	case int(how) >= len(reductions):
		return failed(name, shapeErr("reduction %d", how), t)
	case t.DType() == Bool:
		return failed(name, dtypeErr("%v tensor: numbers only", t.DType()), t)
	case len(windows) > t.Rank():
		return failed(name, shapeErr("%d windows for %v", len(windows), t.shape()), t)
	}
	first := t.Rank() - len(windows)
	var axes []int
	var ws []Window
	for i, w := range windows {
		w = w.withDefaults()
		n, err := w.over(t.shape()[first+i])
		if err == nil && n == 0 && !w.whole() {
			err = shapeErr("window %+v over %d elements", w, t.shape()[first+i])
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
	v := t.windows(name, axes, ws, ir.FoldStart(op, t.DType()))
	inside := make([]int, len(axes))
	for i, a := range axes {
		inside[i] = a + i + 1
	}
	r := reduce(op, v, inside, false)
	done(v)
	return r
}

// extremeWindows is reduceWindow for a maximum or a minimum, along one axis after another. The
// order of the comparisons does not change the result. It does the last axis last, because
// elements that are a stride apart take longer to read, and by then there are fewer of them.
func (t *Tensor) extremeWindows(op ir.Op, axes []int, ws []Window) *Tensor {
	const name = "reducewindow"
	fill := ir.FoldStart(op, t.DType())
	r := t
	for i, a := range axes {
		var next *Tensor
		if w := ws[i]; w.Size <= comparedPlaces {
			next = r.compared(op, a, w, fill)
		} else {
			v := r.windows(name, axes[i:i+1], ws[i:i+1], fill)
			next = reduce(op, v, []int{a + 1}, false)
			done(v)
		}
		if r != t {
			done(r)
		}
		r = next
	}
	return r
}

// comparedPlaces is the largest window whose elements are compared one by one. These comparisons
// work on whole vectors, which a fold of a short row does not.
const comparedPlaces = 16

// compared returns the extreme of every window along an axis. It compares the first elements of
// all windows with their second ones, and so on.
func (t *Tensor) compared(op ir.Op, axis int, w Window, fill uint64) *Tensor {
	of := ir.Maximum
	if op == ir.Min {
		of = ir.Minimum
	}
	x := still(t)
	if w.Before+w.After > 0 {
		pads := make([]Padding, t.Rank()-axis)
		pads[0] = Padding{Before: w.Before, After: w.After}
		done(x)
		x = t.padded("reducewindow", fill, pads)
	}
	n := x.shape()[axis] // the caller refuses a dimension that is too short for a window
	last := n - 1 - (w.Size-1)*w.Dilation
	at := slices.Repeat([]Range{All}, axis+1)
	var r *Tensor
	for j := range w.Size {
		first := j * w.Dilation
		at[axis] = R(first, first+last+1, w.Stride)
		v := x.Slice(at...)
		if r == nil {
			r = v
			continue
		}
		next := binary(of, r, v)
		done(r, v)
		r = next
	}
	done(x)
	return r
}

// reduceWindowFlat is reduceWindow with the first dimensions, which have no windows, merged into
// one. Otherwise there would be too many dimensions.
func (t *Tensor) reduceWindowFlat(name string, how Reduction, lead int, windows []Window) *Tensor {
	in := t.shape()
	flat := t.Reshape(slices.Concat([]int{in[:lead].Elems()}, in[lead:])...)
	joined := flat.reduceWindow(name, how, windows)
	done(flat)
	if joined.Rank() == 0 {
		return joined // carries an error
	}
	r := joined.Reshape(slices.Concat(in[:lead], joined.shape()[1:])...)
	done(joined)
	return r
}

// MaxPool is the largest element of every window over the last dimensions: PyTorch's max_pool1d,
// 2d and 3d. It is [Tensor.ReduceWindow] with [ReduceMax].
func (t *Tensor) MaxPool(windows ...Window) *Tensor {
	return t.reduceWindow("maxpool", ReduceMax, windows)
}

// AvgPool is the mean of every window over the last dimensions: PyTorch's avg_pool1d, 2d and 3d
// with count_include_pad=False. Padding does not count: each sum is divided by the number of
// elements of t in its window. A window without elements of t gives NaN. Floats only, else
// ErrDType. Otherwise it is like [Tensor.ReduceWindow].
func (t *Tensor) AvgPool(windows ...Window) *Tensor {
	const name = "avgpool"
	if followed(t) {
		return whole(name, name, windows, func(in []*Tensor) *Tensor { return in[0].AvgPool(windows...) }, t)
	}
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	if len(windows) > t.Rank() {
		return failed(name, shapeErr("%d windows for %v", len(windows), t.shape()), t)
	}
	return overRows(name, t, nil, func(x *Tensor, _ []int) *Tensor {
		sum := x.reduceWindow(name, ReduceSum, windows)
		if sum.Rank() != x.Rank() {
			return sum // carries an error
		}
		shape := slices.Repeat([]int{1}, x.Rank())
		for i := range windows {
			d := x.Rank() - len(windows) + i
			shape[d] = x.shape()[d]
		}
		ones := FullOn(x.Stream(), x.DType(), 1, shape...)
		count := ones.reduceWindow(name, ReduceSum, windows)
		r := sum.Div(count)
		done(sum, ones, count)
		return r
	})
}
