package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/millrace-go/millrace"
)

func init() {
	register(
		op{name: "Resize", since: 10, run: one(resize10), onHost: 1 << 1},
		op{name: "Resize", since: 11, run: one(resize), onHost: 1<<1 | 1<<2 | 1<<3},
		op{name: "Upsample", since: 7, run: one(resize10), onHost: 1 << 1},
		op{name: "Upsample", since: 10},
	)
}

// resampling says how Resize treats one axis.
type resampling struct {
	in, out    int
	scale      float64
	start, end float64 // the region of tf_crop_and_resize
	mode       string
	coords     string
	nearest    string
	cubic      float64
	antialias  bool
	exclude    bool // what is outside does not count
}

// source is the place in the input that an element of the output comes from.
func (r *resampling) source(k int) float64 {
	x, n := float64(k), float64(r.in)
	size := r.scale * n
	switch r.coords {
	case "align_corners":
		if size == 1 {
			return 0
		}
		return x * (n - 1) / (size - 1)
	case "asymmetric":
		return x / r.scale
	case "tf_crop_and_resize":
		if size == 1 {
			return (r.end-r.start)*(n-1)/2 + float64(r.start*(n-1))
		}
		return x*(r.end-r.start)*(n-1)/(size-1) + float64(r.start*(n-1))
	case "pytorch_half_pixel":
		if r.out == 1 {
			return -0.5
		}
	case "half_pixel_symmetric":
		return n/2*(1-float64(r.out)/size) + (x+0.5)/r.scale - 0.5
	}
	return (x+0.5)/r.scale - 0.5
}

var errResize = fmt.Errorf("%w: a mode of Resize", millrace.ErrUnsupported)

// pick is the place of the nearest element.
func (r *resampling) pick(x float64) (float64, error) {
	switch r.nearest {
	case "round_prefer_floor", "":
		return math.Ceil(x - 0.5), nil
	case "round_prefer_ceil":
		return math.Floor(x + 0.5), nil
	case "floor":
		return math.Floor(x), nil
	case "ceil":
		return math.Ceil(x), nil
	}
	return 0, errResize
}

// curve is the weight of an element at a distance.
func (r *resampling) curve(d float64) float64 {
	d = math.Abs(d)
	if r.mode == "linear" {
		return math.Max(1-d, 0)
	}
	a := r.cubic
	switch {
	case d <= 1:
		return float64((float64((a+2)*d)-(a+3))*d*d) + 1
	case d < 2:
		return float64((float64((float64(a*d)-5*a)*d)+8*a)*d) - 4*a
	}
	return 0
}

// taps are, for each output element, the places of the elements it is made of and their weights.
// Every element has the same number of taps.
func (r *resampling) taps() (places [][]int64, weights [][]float64, err error) {
	reach, squeeze := 1.0, 1.0
	if r.mode == "cubic" {
		reach = 2
	}
	if r.antialias {
		squeeze = math.Min(r.scale, 1)
	}
	first := -int(math.Ceil(reach/squeeze)) + 1
	count := 2 - 2*first
	if r.mode == "nearest" {
		first, count = 0, 1
	}
	if count > 1<<16 {
		return nil, nil, errResize
	}
	places, weights = make([][]int64, count), make([][]float64, count)
	for t := range count {
		places[t], weights[t] = make([]int64, r.out), make([]float64, r.out)
	}
	for k := range r.out {
		x := r.source(k)
		base := math.Floor(x)
		if r.mode == "nearest" {
			if base, err = r.pick(x); err != nil {
				return nil, nil, err
			}
		}
		sum := 0.0
		for t := range count {
			at := base + float64(first+t)
			w := 1.0
			if r.mode != "nearest" {
				w = r.curve((at - x) * squeeze)
			}
			if r.exclude && (at < 0 || at > float64(r.in-1)) {
				w = 0
			}
			places[t][k] = int64(math.Min(math.Max(at, 0), float64(r.in-1)))
			weights[t][k] = w
			sum += w
		}
		if r.antialias || r.exclude {
			for t := range count {
				weights[t][k] /= sum
			}
		}
	}
	return places, weights, nil
}

// apply resizes an axis.
func (r *resampling) apply(c *call, x *tensor, axis int) *tensor {
	places, weights, err := r.taps()
	if err != nil {
		c.fail("%w", err)
		return x
	}
	var y *tensor
	for t := range places {
		part := x.Take(millrace.FromSliceOn(c.f.r.place, places[t]), axis)
		if r.mode == "nearest" {
			return part
		}
		w := millrace.FromSliceOn(c.f.r.place, weights[t]).Cast(x.DType())
		part = part.Mul(c.along(w, part, axis))
		if y == nil {
			y = part
		} else {
			y = y.Add(part)
		}
	}
	return y
}

// resize10 is Upsample, and Resize of opset 10: scales alone.
func resize10(c *call) *tensor {
	var scales []float64
	if c.n.opset < 9 {
		a := c.attr("scales")
		if a == nil {
			c.fail("attribute %q is missing", "scales")
			return nil
		}
		for _, v := range a.floats {
			scales = append(scales, float64(v))
		}
	} else {
		scales = c.floats(1)
	}
	x, dims := c.t(0), c.shape(0)
	if len(scales) != len(dims) {
		c.shapeFail("%d scales for shape %v", len(scales), dims)
		return nil
	}
	for axis, s := range scales {
		r := resampling{in: dims[axis], out: c.size(stretched(s, dims[axis])), scale: s, mode: c.str("mode", "nearest"), coords: "asymmetric", nearest: "floor"}
		x = c.resample(x, axis, r)
	}
	return x
}

func (c *call) floats(i int) []float64 {
	h := c.h(i)
	list := make([]float64, h.len())
	for k := range list {
		list[k] = h.at(k)
	}
	return list
}

// size checks the size of a result.
func (c *call) size(v float64) int {
	if !(v >= 0 && v < 1<<40) {
		c.shapeFail("impossible size %v", v)
		return 0
	}
	return int(v)
}

// resample resizes an axis if that changes something.
func (c *call) resample(x *tensor, axis int, r resampling) *tensor {
	if c.err != nil || r.in == r.out && r.scale == 1 && r.coords != "tf_crop_and_resize" {
		return x
	}
	if r.mode == "bilinear" {
		r.mode = "linear"
	}
	if r.mode != "nearest" && r.mode != "linear" && r.mode != "cubic" {
		c.fail("%w: mode %q", millrace.ErrUnsupported, r.mode)
		return x
	}
	if r.out > 1<<24 {
		c.fail("%w: an axis of %d elements", millrace.ErrUnsupported, r.out)
		return x
	}
	if r.in == 0 && r.out > 0 {
		c.shapeFail("a dimension of 0 cannot grow")
		return x
	}
	return r.apply(c, x, axis)
}

func resize(c *call) *tensor {
	x, dims := c.t(0), c.shape(0)
	axes := seq(len(dims))
	if c.given("axes") {
		axes = c.axes(c.list("axes"), len(dims))
	}
	scales, sizes := c.scales(dims, axes)
	if c.err != nil {
		return nil
	}
	var region []float64
	coords := c.str("coordinate_transformation_mode", "half_pixel")
	if coords == "tf_crop_and_resize" {
		if region = c.floats(1); len(region) != 2*len(axes) {
			c.shapeFail("a region of %d numbers for %d axes", len(region), len(axes))
			return nil
		}
	}
	dt, mode := x.DType(), c.str("mode", "nearest")
	if !isFloat(dt) && mode != "nearest" {
		x = x.Cast(millrace.Float32)
	}
	for i, axis := range axes {
		r := resampling{
			in: dims[axis], out: sizes[i], scale: scales[i], mode: mode, coords: coords,
			nearest: c.str("nearest_mode", "round_prefer_floor"), cubic: c.float("cubic_coeff_a", -0.75),
			antialias: c.int("antialias", 0) != 0, exclude: c.int("exclude_outside", 0) != 0,
		}
		if region != nil {
			r.start, r.end = region[i], region[len(axes)+i]
		}
		x = c.resample(x, axis, r)
		if region != nil {
			x = c.beyond(x, axis, r)
		}
	}
	if x.DType() != dt {
		x = x.Round().Cast(dt)
	}
	return x
}

// beyond fills what a region has outside of the input.
func (c *call) beyond(x *tensor, axis int, r resampling) *tensor {
	out := make([]bool, r.out)
	for k := range out {
		at := r.source(k)
		out[k] = at < 0 || at > float64(r.in-1)
	}
	if !slices.Contains(out, true) {
		return x
	}
	mask := millrace.FromSliceOn(c.f.r.place, out)
	return x.MaskedFill(c.along(mask, x, axis), c.float("extrapolation_value", 0))
}

// stretched is the size that a scale gives a dimension. Scales are float32, and so is the product.
func stretched(scale float64, n int) float64 {
	return math.Floor(float64(float32(scale) * float32(n)))
}

// scales are the factors and the sizes of the axes.
func (c *call) scales(dims, axes []int) (scales []float64, sizes []int) {
	if c.has(2) && product(c.shape(2)) > 0 {
		if scales = c.floats(2); len(scales) != len(axes) {
			c.shapeFail("%d scales for %d axes", len(scales), len(axes))
			return
		}
		for i, a := range axes {
			sizes = append(sizes, c.size(stretched(scales[i], dims[a])))
			if !(scales[i] > 0) {
				c.shapeFail("scale %v", scales[i])
			}
		}
		return
	}
	if sizes = slices.Clone(c.ints(3)); len(sizes) != len(axes) {
		c.shapeFail("%d sizes for %d axes", len(sizes), len(axes))
		return
	}
	for i, a := range axes {
		scales = append(scales, float64(c.size(float64(sizes[i])))/float64(max(dims[a], 1)))
	}
	policy := c.str("keep_aspect_ratio_policy", "stretch")
	if policy == "stretch" || len(scales) == 0 || c.err != nil {
		return
	}
	same := slices.Min(scales)
	if policy == "not_smaller" {
		same = slices.Max(scales)
	}
	for i, a := range axes {
		scales[i], sizes[i] = same, c.size(math.Floor(same*float64(dims[a])+0.5))
	}
	return
}
