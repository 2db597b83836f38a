package millrace

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// ResizeMode says where elements of a resized image come from.
type ResizeMode uint8

// The modes of [Resize].
const (
	// ResizeNearest takes one element: of position i of m that are made of n, element
	// ⌊i·n/m⌋, as PyTorch's nearest and OpenCV's.
	ResizeNearest ResizeMode = iota
	// ResizeLinear weighs the two that are nearest along each dimension: bilinear, of images.
	ResizeLinear
	// ResizeCubic weighs four along each dimension by Keys' cubic with a = -0.75: bicubic, of
	// images, as PyTorch and OpenCV do. The result may go beyond the range of the elements.
	ResizeCubic
)

// ResizeOptions say how [Resize] works. The zero value takes the nearest element.
type ResizeOptions struct {
	Mode ResizeMode
	// AlignCorners puts the first and the last elements of both onto each other: position i is
	// at i·(n-1)/(m-1). Else elements are squares side by side, and the position of the middle of
	// one is (i+½)·n/m - ½. PyTorch's align_corners; ErrShape where the nearest is taken.
	AlignCorners bool
	// Antialias has every element of what is made smaller count: each position of the result is
	// the mean of the elements within the reach of ResizeLinear's triangle, or of
	// ResizeCubic's curve with a = -0.5, which is as many times wider as the image becomes
	// smaller. Elements beyond the edges are left out. PyTorch's and jax.image.resize's antialias, and
	// Pillow's resize. ErrShape where the nearest is taken, or corners are aligned.
	Antialias bool
}

// Resize makes the last dimensions of t, as many as sizes are given, of other sizes: of images
// of shape (batch, channels, height, width), Resize(t, opt, h, w). It is PyTorch's interpolate.
// What is beyond the first and the last element is like these. Smaller images are made of
// the elements near each position alone: with Antialias others count, too.
//
// Floats only, but any dtype where the nearest is taken (else ErrDType), which is that of the
// result; 16-bit ones are computed in Float32. More sizes than dimensions or none, sizes below 1 or
// above 2^28 (with Antialias times the elements that a position takes), a dimension without elements
// and options that do not go together are ErrShape.
func Resize(t *Tensor, opt ResizeOptions, sizes ...int) *Tensor {
	const name = "resize"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	in := t.shape()
	first := len(in) - len(sizes)
	switch {
	case len(sizes) == 0 || first < 0 || slices.Min(sizes) < 1 || slices.Max(sizes) > maxTable:
		return failed(name, shapeErr("%v to sizes %v", in, sizes), t)
	case slices.Contains(in[first:], 0):
		return failed(name, shapeErr("%v has no elements to resize", in), t)
	case opt.Mode > ResizeCubic || (opt.AlignCorners || opt.Antialias) && opt.Mode == ResizeNearest || opt.AlignCorners && opt.Antialias:
		return failed(name, shapeErr("options %+v", opt), t)
	case opt.Antialias && slices.ContainsFunc(filtersOf(opt.Mode, in[first:], sizes), filter.large):
		return failed(name, shapeErr("%v to sizes %v with a filter", in, sizes), t)
	case opt.Mode != ResizeNearest && !t.DType().IsFloat():
		return failed(name, dtypeErr("%v tensor: floats only, use Cast", t.DType()), t)
	}
	out := ir.Shape(slices.Concat(in[:first], sizes))
	if err := out.Check(); err != nil { // before there are positions of its elements
		return failed(name, shapeErr("%v", err), t)
	}
	r := t.same()
	if opt.Mode != ResizeNearest && t.DType() != t.DType().Compute() {
		done(r)
		r = t.Cast(t.DType().Compute())
	}
	for i, m := range sizes {
		n := in[first+i]
		if m == n { // every position is one of an element
			continue
		}
		var next *Tensor
		if opt.Antialias {
			next = r.filtered(first+i, newFilter(opt.Mode, n, m))
		} else {
			next = r.resized(first+i, resizeTaps(opt, n, m))
		}
		done(r)
		r = next
	}
	return narrowed(r, t.DType())
}

// tap is an element that each position takes, and by what it is weighed; without weights it
// is moved.
type tap struct {
	at     []int32
	weight []float64
}

func resizeTaps(opt ResizeOptions, n, m int) []tap {
	if opt.Mode == ResizeNearest {
		at := make([]int32, m)
		for i := range at {
			at[i] = int32(uint64(i) * uint64(n) / uint64(m))
		}
		return []tap{{at: at}}
	}
	first, count := 0, 2
	if opt.Mode == ResizeCubic {
		first, count = -1, 4
	}
	taps := make([]tap, count)
	for k := range taps {
		taps[k] = tap{make([]int32, m), make([]float64, m)}
	}
	for i := range m {
		place := (float64(i)+0.5)*float64(n)/float64(m) - 0.5
		if opt.AlignCorners {
			place = float64(float64(i) * float64(n-1) / float64(max(m-1, 1)))
		}
		if opt.Mode == ResizeLinear {
			place = max(place, 0)
		}
		low := math.Floor(place)
		share := place - low
		for k := range taps {
			taps[k].at[i] = int32(min(max(int(low)+first+k, 0), n-1))
			taps[k].weight[i] = 1 - math.Abs(share-float64(k))
			if opt.Mode == ResizeCubic {
				taps[k].weight[i] = keys(-0.75, math.Abs(share-float64(k-1)))
			}
		}
	}
	return taps
}

// keys is the weight of an element at a distance below 2 (Keys, 1981); a is the slope at 1.
func keys(a, x float64) float64 {
	if x <= 1 {
		return float64(float64(float64((a+2)*x)-(a+3))*x*x) + 1
	}
	return float64(float64(float64(float64(float64(a*x)-5*a)*x)+8*a)*x) - 4*a
}

// resized adds up the taps along an axis.
func (t *Tensor) resized(axis int, taps []tap) *Tensor {
	column := slices.Repeat([]int{1}, t.Rank())
	column[axis] = len(taps[0].at)
	var sum *Tensor
	for _, p := range taps {
		at := FromSliceOn(t.Stream(), p.at)
		x := t.Take(at, axis, IndexClamp)
		done(at)
		if p.weight != nil {
			w := floatTable(t, p.weight, column...)
			part := x.Mul(w)
			done(x, w)
			x = part
		}
		if sum == nil {
			sum = x
			continue
		}
		next := sum.Add(x)
		done(sum, x)
		sum = next
	}
	return sum
}

// floatTable holds numbers in t's dtype, Float32 or Float64, where t is.
func floatTable(t *Tensor, v []float64, shape ...int) *Tensor {
	if t.DType() == Float64 {
		return FromSliceOn(t.Stream(), v, shape...)
	}
	return FromSliceOn(t.Stream(), narrow(v), shape...)
}

func narrow(v []float64) []float32 {
	n := make([]float32, len(v))
	for i, x := range v {
		n[i] = float32(x)
	}
	return n
}
