package millrace

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// ResizeMode says how an element of the result depends on the image's elements.
type ResizeMode uint8

// The modes of [Resize].
const (
	// ResizeNearest takes one element: position i of m takes element ⌊i·n/m⌋ of n, as PyTorch's
	// nearest and OpenCV's do.
	ResizeNearest ResizeMode = iota
	// ResizeLinear is the weighted mean of the two nearest elements along each dimension:
	// bilinear for images.
	ResizeLinear
	// ResizeCubic is the weighted mean of four elements along each dimension, by Keys' cubic with
	// a = -0.75: bicubic for images, as in PyTorch and OpenCV. The result may be outside of the
	// range of the elements.
	ResizeCubic
)

// ResizeOptions say how [Resize] works. The zero value takes the nearest element.
type ResizeOptions struct {
	Mode ResizeMode
	// AlignCorners maps the first and the last element of the result onto those of t: position i
	// is at i·(n-1)/(m-1). Without it, elements are squares side by side, and the middle of
	// element i is at (i+½)·n/m - ½. It is PyTorch's align_corners, and ErrShape with
	// ResizeNearest.
	AlignCorners bool
	// Antialias makes every element of a reduced image count. Each position is then the weighted
	// mean of the elements in reach of ResizeLinear's triangle, or of ResizeCubic's curve with a
	// = -0.5, widened by the factor of the reduction. Elements beyond the edges are left out. It
	// is the antialias of PyTorch and jax.image.resize, and Pillow's resize. It is ErrShape with
	// ResizeNearest or AlignCorners.
	Antialias bool
}

// Resize changes the sizes of t's last dimensions, as many as sizes are given: PyTorch's
// interpolate. For images of shape (batch, channels, height, width) it is Resize(t, opt, h, w).
// Positions beyond the first and the last element take these elements. When it makes an image
// smaller, it uses only the elements near each position, and with Antialias all elements.
//
// Floats only, or any dtype with ResizeNearest (else ErrDType). The result has t's dtype; 16-bit
// floats are computed in Float32. The following are ErrShape: more sizes than dimensions or none,
// a size below 1 or above 2^28 (with Antialias, the size times the elements that a position
// uses), a dimension without elements, and options that exclude each other.
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
	if err := out.Check(); err != nil { // checked before tables of its positions are made
		return failed(name, shapeErr("%v", err), t)
	}
	r := t.same()
	if opt.Mode != ResizeNearest && t.DType() != t.DType().Compute() {
		done(r)
		r = t.Cast(t.DType().Compute())
	}
	for i, m := range sizes {
		n := in[first+i]
		if m == n { // every position is that of an element
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

// tap has, for each position, one element that it uses and its weight. Without weights the
// elements are only moved.
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

// keys is the weight of an element at a distance x below 2 (Keys, 1981). a is the slope at 1.
func keys(a, x float64) float64 {
	if x <= 1 {
		return float64(float64(float64((a+2)*x)-(a+3))*x*x) + 1
	}
	return float64(float64(float64(float64(float64(a*x)-5*a)*x)+8*a)*x) - 4*a
}

// resized adds up the weighted taps along an axis.
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

// floatTable returns a tensor of the numbers in t's dtype, Float32 or Float64, on t's stream.
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
