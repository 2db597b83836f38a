package autodiff

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/ir"
)

func withDefaults(w millrace.Window) millrace.Window {
	w.Stride, w.Dilation = max(w.Stride, 1), max(w.Dilation, 1)
	return w
}

// fold is the adjoint of Windows along axis: it goes from (…, windows, elements, …) to the n
// elements that the windows were made of, and adds where windows overlap.
func (s *step) fold(d *tensor, axis, n int, w millrace.Window) *tensor {
	w = withDefaults(w)
	count := d.Dim(axis)
	if !overlap(w) {
		shape := slices.Clone(d.Shape())
		pads := make([]millrace.Padding, len(shape)-axis-1)
		if pads[0].After = w.Stride - w.Size; pads[0].After > 0 {
			d = d.Pad(0, pads...)
		}
		shape[axis] = count * w.Stride
		d = d.Reshape(slices.Delete(shape, axis+1, axis+2)...)
		pads[0] = millrace.Padding{Before: -w.Before, After: n + w.Before - count*w.Stride}
		if pads[0] == (millrace.Padding{}) {
			return d
		}
		return d.Pad(0, pads...)
	}
	return s.foldPlaces(axis, n, w, func(j int) *tensor {
		at := slices.Repeat([]millrace.Range{millrace.All}, axis+2)
		at[axis+1] = millrace.At(j)
		return d.Slice(at...)
	})
}

// overlap reports that windows share elements or have gaps within them; false if they are side by
// side.
func overlap(w millrace.Window) bool { return w.Size > w.Stride || w.Dilation > 1 }

// foldPlaces is fold with the windows' elements given place by place, each as (…, windows, …).
func (s *step) foldPlaces(axis, n int, w millrace.Window, place func(j int) *tensor) *tensor {
	w = withDefaults(w)
	if w.Stride > 1 && w.Stride <= foldedStride {
		// Elements with a distance of the stride have the same places in their windows.
		each := (n + w.Stride - 1) / w.Stride
		parts := make([]*tensor, w.Stride)
		var some *tensor
		for j := range w.Size {
			at := j*w.Dilation - w.Before + w.Before*w.Stride // not negative
			shift := at/w.Stride - w.Before
			d := place(j)
			some = d
			parts[at%w.Stride] = s.addPlace(parts[at%w.Stride], d, axis, millrace.Padding{Before: shift, After: each - d.Dim(axis) - shift})
		}
		for r := range parts {
			if parts[r] == nil {
				shape := slices.Clone(some.Shape())
				shape[axis] = each
				parts[r] = zerosLike(some, shape)
			}
		}
		sum := millrace.Stack(axis+1, parts...)
		shape := slices.Delete(slices.Clone(sum.Shape()), axis+1, axis+2)
		shape[axis] = each * w.Stride
		return s.first(sum.Reshape(shape...), axis, n)
	}
	var sum *tensor
	for j := range w.Size {
		d := place(j)
		first := j*w.Dilation - w.Before
		reach := (d.Dim(axis)-1)*w.Stride + 1
		sum = s.addPlace(sum, d, axis, millrace.Padding{Before: first, After: n - first - reach, Between: w.Stride - 1})
	}
	return sum
}

// foldedStride is the largest stride for which each residue of the position is summed on its own.
const foldedStride = 8

// addPlace pads the elements at one place of all windows and adds them to a sum, which may be nil.
func (s *step) addPlace(sum, part *tensor, axis int, p millrace.Padding) *tensor {
	pads := make([]millrace.Padding, part.Rank()-axis)
	if pads[0] = p; p != (millrace.Padding{}) {
		part = part.Pad(0, pads...)
	}
	if sum == nil {
		return part
	}
	return sum.Add(part)
}

func windowsBack(s *step, c adhook.Windows[millrace.Window]) {
	in := s.kinds[0].shape
	axis := (c.Axis + len(in)) % len(in)
	if s.d.Dim(axis) == 0 {
		s.give(0, zerosLike(s.d, in))
		return
	}
	s.give(0, s.fold(s.d, axis, in[axis], c.Window))
}

// reduceWindowBack: the derivative of a sum goes to all elements of its window. That of a maximum
// or minimum goes to the first element with that value. That of a product goes to each element,
// times the product of the others.
func reduceWindowBack(s *step, c adhook.ReduceWindow[millrace.Window]) {
	var x *tensor
	if c.How != uint8(millrace.ReduceSum) {
		x = s.x()
	}
	s.give(0, s.windowed(x, s.d, s.kinds[0].shape, millrace.Reduction(c.How), c.List))
}

// windowed is the derivative of ReduceWindow of x, which has the shape in. A sum does not need x.
func (s *step) windowed(x, d *tensor, in []int, how millrace.Reduction, ws []millrace.Window) *tensor {
	for len(ws) > 0 && withDefaults(ws[0]) == (millrace.Window{Size: 1, Stride: 1, Dilation: 1}) {
		ws = ws[1:]
	}
	if len(ws) == 0 {
		return d
	}
	first := len(in) - len(ws)
	if first > 1 && len(in)+len(ws) > maxRank { // merge the leading dims, which are treated alike
		flat := append([]int{ir.Shape(in[:first]).Elems()}, in[first:]...)
		if x != nil {
			x = x.Reshape(flat...)
		}
		d = d.Reshape(append([]int{flat[0]}, d.Shape()[first:]...)...)
		return s.windowed(x, d, flat, how, ws).Reshape(in...)
	}
	outer := d.Shape()
	one, all := slices.Clone(outer[:first]), slices.Clone(outer[:first]) // (…, windows, elements, …)
	var inside []int
	for i, w := range ws {
		inside = append(inside, len(one)+1)
		one, all = append(one, outer[first+i], 1), append(all, outer[first+i], w.Size)
	}
	if how == millrace.ReduceSum { // all places get the same derivative: fold along one dim after another
		for i, w := range ws {
			part := d
			d = s.foldPlaces(first+i, in[first+i], w, func(int) *tensor { return part })
		}
		return d
	}
	if how != millrace.ReduceProd {
		return s.scattered(x, d, in, first, how == millrace.ReduceMin, ws)
	}
	pads := make([]millrace.Padding, len(ws))
	for i, w := range ws {
		pads[i] = millrace.Padding{Before: w.Before, After: w.After}
	}
	if slices.ContainsFunc(pads, func(p millrace.Padding) bool { return p != millrace.Padding{} }) {
		x = x.Pad(padValue(how), pads...) // along all dims before making windows
	}
	for i := len(ws) - 1; i >= 0; i-- {
		w := ws[i]
		w.Before, w.After = 0, 0
		x = x.Windows(first+i, w, 0)
	}
	wide := d.Reshape(one...).Expand(all...)
	d = wide.Mul(s.alongLast(x, inside, s.products))
	for i, w := range ws { // the axes after first+i are still windows
		d = s.fold(d, first+i, in[first+i], w)
	}
	return d
}

const maxRank = 8

// padValue is the padding of windows that changes no result.
func padValue(how millrace.Reduction) float64 {
	switch how {
	case millrace.ReduceMax:
		return math.Inf(-1)
	case millrace.ReduceMin:
		return math.Inf(1)
	case millrace.ReduceProd:
		return 1
	}
	return 0
}

// avgPoolBack: each element of a window gets d divided by the number of the window's elements.
// Padding does not count.
func avgPoolBack(s *step, c adhook.AvgPool[millrace.Window]) {
	ws, in := c.List, s.kinds[0].shape
	shape := slices.Repeat([]int{1}, len(in))
	for i := range ws {
		d := len(in) - len(ws) + i
		shape[d] = in[d]
	}
	count := fullLike(s.d, 1, shape...).ReduceWindow(millrace.ReduceSum, ws...)
	s.give(0, s.windowed(nil, s.d.Div(count), in, millrace.ReduceSum, ws))
}
