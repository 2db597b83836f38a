package autodiff

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/follow"
)

type windowsOf = follow.Windows[millrace.Window]

func withDefaults(w millrace.Window) millrace.Window {
	w.Stride, w.Dilation = max(w.Stride, 1), max(w.Dilation, 1)
	return w
}

// fold is the adjoint of Windows along axis: (…, windows, elements, …) to the n elements
// that the windows were of.
func (s *step) fold(d *tensor, axis, n int, w millrace.Window) *tensor {
	w = withDefaults(w)
	count := d.Dim(axis)
	var sum *tensor
	for j := range w.Size {
		at := slices.Repeat([]millrace.Range{millrace.All}, axis+2)
		at[axis+1] = millrace.At(j)
		part := s.do(d.Slice(at...))
		pads := make([]millrace.Padding, part.Rank())
		first := j*w.Dilation - w.Before
		reach := (count-1)*w.Stride + 1
		pads[axis] = millrace.Padding{Before: first, After: n - first - reach, Between: w.Stride - 1}
		part = s.do(part.Pad(0, pads...))
		if sum == nil {
			sum = part
		} else {
			sum = s.do(sum.Add(part))
		}
	}
	return sum
}

func windowsBack(s *step) {
	with := s.call.With.(windowsOf)
	in := s.kinds[0].shape
	axis := (with.Axis + len(in)) % len(in)
	if s.d.Dim(axis) == 0 {
		s.give(0, s.do(zerosLike(s.d, in)))
		return
	}
	s.give(0, s.fold(s.d, axis, in[axis], with.List[0]))
}

// reduceWindowBack: a sum's derivative goes to all elements of a window, that of a maximum
// or minimum to the first element that is it, that of a product is the product of others.
func reduceWindowBack(s *step) {
	with := s.call.With.(windowsOf)
	var x *tensor
	if with.How != uint8(millrace.ReduceSum) {
		x = s.x()
	}
	s.give(0, s.windowed(x, s.d, s.kinds[0].shape, millrace.Reduction(with.How), with.List))
}

// windowed is the derivative of ReduceWindow of x, which a sum does not ask for, of the
// shape in.
func (s *step) windowed(x, d *tensor, in []int, how millrace.Reduction, ws []millrace.Window) *tensor {
	for len(ws) > 0 && withDefaults(ws[0]) == (millrace.Window{Size: 1, Stride: 1, Dilation: 1}) {
		ws = ws[1:]
	}
	if len(ws) == 0 {
		return d
	}
	first := len(in) - len(ws)
	if first > 1 && len(in)+len(ws) > maxRank { // leading dims are alike
		flat := append([]int{elements(in[:first])}, in[first:]...)
		if x != nil {
			x = s.do(x.Reshape(flat...))
		}
		d = s.do(d.Reshape(append([]int{flat[0]}, d.Shape()[first:]...)...))
		return s.do(s.windowed(x, d, flat, how, ws).Reshape(in...))
	}
	outer := d.Shape()
	one, all := slices.Clone(outer[:first]), slices.Clone(outer[:first]) // (…, windows, elements, …)
	var inside []int
	for i, w := range ws {
		inside = append(inside, len(one)+1)
		one, all = append(one, outer[first+i], 1), append(all, outer[first+i], w.Size)
	}
	d = s.do(s.do(d.Reshape(one...)).Expand(all...))
	if how != millrace.ReduceSum {
		for i := len(ws) - 1; i >= 0; i-- {
			x = s.do(x.Windows(first+i, ws[i], padValue(how)))
		}
	}
	switch how {
	case millrace.ReduceSum:
	case millrace.ReduceProd:
		d = s.do(d.Mul(s.alongLast(x, inside, s.products)))
	default:
		find := (*tensor).ArgMaxAs
		if how == millrace.ReduceMin {
			find = (*tensor).ArgMinAs
		}
		at := s.do(s.do(find(x, position(all), inside...)).Reshape(one...))
		d = s.do(millrace.WhereScalar(s.do(s.places(all, inside).Eq(at)), d, 0))
	}
	for i, w := range ws { // what is behind axis first+i is still in windows
		d = s.fold(d, first+i, in[first+i], w)
	}
	return d
}

const maxRank = 8

// padValue is what a window is padded with, which changes no result.
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

// avgPoolBack: each element of a window gets its share; padding does not count.
func avgPoolBack(s *step) {
	ws, in := s.call.With.([]millrace.Window), s.kinds[0].shape
	shape := slices.Repeat([]int{1}, len(in))
	for i := range ws {
		d := len(in) - len(ws) + i
		shape[d] = in[d]
	}
	count := s.do(s.do(fullLike(s.d, 1, shape...)).ReduceWindow(millrace.ReduceSum, ws...))
	s.give(0, s.windowed(nil, s.do(s.d.Div(count)), in, millrace.ReduceSum, ws))
}
