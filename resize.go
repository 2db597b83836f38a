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
func Resize(t *Tensor, opt ResizeOptions, sizes ...int) (r *Tensor) {
	const name = "resize"
	c := compose(name, nil, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	in := t.shape()
	first := len(in) - len(sizes)
	switch {
	case len(sizes) == 0 || first < 0 || slices.Min(sizes) < 1 || slices.Max(sizes) > maxTable:
		return failed(name, shapeErr("%v cannot be resized to sizes %v", in, sizes), t)
	case slices.Contains(in[first:], 0):
		return failed(name, shapeErr("%v has no elements to resize", in), t)
	case opt.Mode > ResizeCubic || (opt.AlignCorners || opt.Antialias) && opt.Mode == ResizeNearest || opt.AlignCorners && opt.Antialias:
		return failed(name, shapeErr("options %+v do not go together", opt), t)
	case opt.Antialias && slices.ContainsFunc(filtersOf(opt.Mode, in[first:], sizes), filter.large):
		return failed(name, shapeErr("%v cannot be resized to sizes %v with a filter", in, sizes), t)
	case opt.Mode != ResizeNearest && !t.DType().IsFloat():
		return failed(name, dtypeErr("%v is not a float dtype; use Cast", t.DType()), t)
	}
	out := ir.Shape(slices.Concat(in[:first], sizes))
	if err := out.Check(); err != nil { // checked before tables of its positions are made
		return failed(name, shapeErr("%v", err), t)
	}
	x := t
	if opt.Mode != ResizeNearest {
		x = inDType(t, t.DType().Compute())
	}
	x = inTurn(len(sizes), x, func(x *Tensor, i int) *Tensor {
		n, m := in[first+i], sizes[i]
		switch {
		case m == n: // every position is that of an element
			return x
		case opt.Antialias:
			return x.filtered(first+i, newFilter(opt.Mode, n, m))
		}
		return x.resized(first+i, resizeTaps(opt, n, m))
	})
	return inDType(x, t.DType())
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
	return inTurn(len(taps), t, func(sum *Tensor, i int) *Tensor {
		x := t.Take(FromSliceOn(beside(t), taps[i].at), axis, IndexClamp)
		if taps[i].weight != nil {
			x = x.Mul(floatTable(t, taps[i].weight, column...))
		}
		if i == 0 {
			return x
		}
		return sum.Add(x)
	})
}

// floatTable returns a tensor of the numbers in t's dtype, Float32 or Float64, on t's stream.
func floatTable(t *Tensor, v []float64, shape ...int) *Tensor {
	if t.DType() == Float64 {
		return FromSliceOn(beside(t), v, shape...)
	}
	return FromSliceOn(beside(t), narrow(v), shape...)
}

func narrow(v []float64) []float32 {
	n := make([]float32, len(v))
	for i, x := range v {
		n[i] = float32(x)
	}
	return n
}

// filter computes m positions from n elements so that every element counts: each position uses
// the elements within its reach.
type filter struct {
	n, m  int
	cubic bool
	wide  float64 // the scale of the weights: n/m, at least 1
	reach float64
}

func newFilter(mode ResizeMode, n, m int) filter {
	f := filter{n: n, m: m, cubic: mode == ResizeCubic, wide: max(float64(n)/float64(m), 1)}
	if f.reach = f.wide; f.cubic {
		f.reach = 2 * f.wide
	}
	return f
}

func filtersOf(mode ResizeMode, in, out []int) (fs []filter) {
	for i, m := range out {
		fs = append(fs, newFilter(mode, in[i], m))
	}
	return fs
}

// large reports a filter whose table would be too large.
func (f filter) large() bool { return f.n != f.m && float64(f.m)*(2*f.reach+2) > maxTable }

// within returns the range of elements that position i uses, from first up to behind, and the
// position's middle among them.
func (f filter) within(i int) (first, behind int, middle float64) {
	middle = float64((float64(i) + 0.5) * float64(f.n) / float64(f.m))
	return max(int(middle-f.reach+0.5), 0), min(int(middle+f.reach+0.5), f.n), middle
}

// weight returns the weight of an element at a distance.
func (f filter) weight(distance float64) float64 {
	x := math.Abs(distance) / f.wide
	if f.cubic && x < 2 {
		return keys(-0.5, x)
	}
	return max(1-x, 0)
}

// table returns, for each position, the elements that it uses and their weights: count of them
// each. If a position has fewer elements within reach, the last one is repeated, and its
// repetitions share its weight. A weight of 0 would not do, because 0 times an infinity is NaN.
func (f filter) table() (at []int32, weights []float64, count int) {
	for i := range f.m {
		first, behind, _ := f.within(i)
		count = max(count, behind-first)
	}
	at, weights = make([]int32, f.m*count), make([]float64, f.m*count)
	for i := range f.m {
		first, behind, middle := f.within(i)
		places, row := at[i*count:(i+1)*count], weights[i*count:(i+1)*count]
		sum := 0.0
		for k := range behind - first {
			places[k] = int32(first + k)
			row[k] = f.weight(float64(first+k) - middle + 0.5)
			sum += row[k]
		}
		for k := range row {
			row[k] /= sum
		}
		last := behind - first - 1
		share := row[last] / float64(count-last)
		for k := last; k < count; k++ {
			places[k], row[k] = places[last], share
		}
	}
	return at, weights, count
}

// filtered resizes along an axis. One kernel gathers, weights and adds the elements.
func (t *Tensor) filtered(axis int, f filter) *Tensor {
	at, weights, count := f.table()
	x := t.Take(FromSliceOn(beside(t), at, f.m, count), axis, IndexClamp)
	column := slices.Repeat([]int{1}, x.Rank())
	column[axis], column[axis+1] = f.m, count
	return x.Mul(floatTable(t, weights, column...)).Sum(axis + 1)
}
