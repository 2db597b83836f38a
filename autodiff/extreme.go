package autodiff

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// scattered is the derivative of the maximum (or minimum) of every window, along the dims from
// first on. A window's derivative goes to the first of its elements, in row-major order, that has
// the bits of the extreme. If windows overlap, an element's derivatives are added in the order of
// the windows.
func (s *step) scattered(x, d *tensor, in []int, first int, least bool, ws []millrace.Window) *tensor {
	if d.Len() == 0 {
		return zerosLike(d, in)
	}
	// Elements are numbered as in a tensor with the padding of all windows.
	padded := slices.Clone(in)
	cut := make([]millrace.Padding, len(ws))
	for i, w := range ws {
		padded[first+i] += w.Before + w.After
		cut[i] = millrace.Padding{Before: -w.Before, After: -w.After}
	}
	outer, inner := ir.Shape(padded[:first]).Elems(), ir.Shape(padded[first:]).Elems()
	windows := ir.Shape(d.Shape()[first:]).Elems()
	at := s.extremes(x, padded, first, least, ws).Reshape(outer, windows)
	d = d.Reshape(outer, windows)
	d = zerosLike(d, []int{outer, inner}).ScatterAdd(at, d, 1, millrace.IndexClamp)
	d = d.Reshape(padded...)
	if !slices.Equal(padded, in) {
		d = d.Pad(0, cut...)
	}
	return d
}

// extremes is the number of each window's extreme element. Numbers count the elements of a tensor
// of the padded shape, along the dims from first on. Windows are reduced along one dim after
// another, the first dim first, and each candidate carries the number that was found before.
func (s *step) extremes(x *tensor, padded []int, first int, least bool, ws []millrace.Window) *tensor {
	dt := position(padded[first:])
	fill := padValue(millrace.ReduceMax)
	if least {
		fill = padValue(millrace.ReduceMin)
	}
	x = s.plain(x) // positions have no derivative
	var place *tensor
	for i, w := range ws {
		axis, w := first+i, withDefaults(w)
		if w.Before+w.After > 0 {
			pads := make([]millrace.Padding, x.Rank()-axis)
			pads[0] = millrace.Padding{Before: w.Before, After: w.After}
			x = x.Pad(fill, pads...)
			if place != nil {
				place = place.Pad(0, pads...)
			}
		}
		each := ir.Shape(padded[axis+1:]).Elems() // distance in numbers of two neighbours along the dim
		reduce := (*step).compared
		if w.Size > comparedPlaces {
			reduce = (*step).folded
		}
		x, place = reduce(s, x, place, extremesAlong{axis, w, each, least, dt})
		place = place.Add(s.column(x, dt, axis, w.Stride*each))
	}
	return place
}

// comparedPlaces is the largest size of windows whose elements are compared one after another.
const comparedPlaces = 16

// extremesAlong describes a reduction: windows along an axis. The numbers of neighbours differ by
// each, and have the dtype place.
type extremesAlong struct {
	axis   int
	window millrace.Window
	each   int
	least  bool
	place  millrace.DType
}

// compared finds the extremes by comparing the first elements of all windows with all second
// elements, and so on. Of equal candidates it takes the one with the lower number along the earlier
// dims, and then the first one.
func (s *step) compared(x, place *tensor, e extremesAlong) (extreme, at *tensor) {
	w, bits := e.window, bitsOf(x.DType())
	last := x.Dim(e.axis) - 1 - (w.Size-1)*w.Dilation
	of := (*tensor).Maximum
	if e.least {
		of = (*tensor).Minimum
	}
	ranges := slices.Repeat([]millrace.Range{millrace.All}, e.axis+1)
	for j := range w.Size {
		begin := j * w.Dilation
		ranges[e.axis] = millrace.R(begin, begin+last+1, w.Stride)
		v := x.Slice(ranges...)
		var p *tensor
		if number := float64(begin * e.each); place != nil {
			p = place.Slice(ranges...).AddScalar(number)
		} else {
			p = millrace.FullOn(root.Beside(x), e.place, number).Expand(v.Shape()...)
		}
		if extreme == nil {
			extreme, at = v, p
			continue
		}
		next := of(extreme, v)
		same := next.Bitcast(bits)
		take := extreme.Bitcast(bits).Ne(same)
		if place != nil {
			equal := v.Bitcast(bits).Eq(same)
			take = take.Or(equal.And(p.Lt(at)))
		}
		extreme, at = next, millrace.Where(take, p, at)
	}
	return extreme, at
}

// folded is compared for windows of many elements: of the elements with the bits of the extreme it
// takes the lowest number.
func (s *step) folded(x, place *tensor, e extremesAlong) (extreme, at *tensor) {
	w, inside := e.window, e.axis+1
	w.Before, w.After = 0, 0
	all := x.Windows(e.axis, w, 0)
	fold, find := (*tensor).Max, (*tensor).ArgMaxAs
	if e.least {
		fold, find = (*tensor).Min, (*tensor).ArgMinAs
	}
	extreme = fold(all, inside)
	if place == nil {
		return extreme, find(all, e.place, inside).MulScalar(float64(w.Dilation * e.each))
	}
	places := place.Windows(e.axis, w, 0).Add(s.column(all, e.place, inside, w.Dilation*e.each))
	bits, none := bitsOf(x.DType()), float64(math.MaxInt32) // none is above every number
	if e.place == millrace.Int64 {
		none = 0x1p62
	}
	equal := all.Bitcast(bits).Eq(extreme.Bitcast(bits).Unsqueeze(inside))
	return extreme, millrace.WhereScalar(equal, places, none).Min(inside)
}

// column counts along an axis of a shape like x's, in steps. All other dims are 1.
func (s *step) column(x *tensor, dt millrace.DType, axis, step int) *tensor {
	shape := slices.Repeat([]int{1}, x.Rank())
	shape[axis] = x.Dim(axis)
	return millrace.ArangeOn(root.Beside(x), dt, 0, float64(shape[axis]*step), float64(step)).Reshape(shape...)
}

// bitsOf is the integer dtype as which floats are compared. So zeros of different signs differ, and
// a NaN equals itself.
func bitsOf(dt millrace.DType) millrace.DType {
	if dt == millrace.Float64 {
		return millrace.Int64
	}
	return millrace.Int32
}
