package onnx

import (
	"github.com/millrace-go/millrace"
)

func init() {
	pools := func(f func(c *call, x *tensor, w []millrace.Window) *tensor) func(c *call) []*value {
		return one(func(c *call) *tensor {
			w := c.windows(c.shape(0), c.list("kernel_shape"), true)
			if c.err != nil {
				return nil
			}
			return f(c, c.t(0), w)
		})
	}
	register(
		op{name: "AveragePool", since: 1, run: pools(averagePool)},
		op{name: "Conv", since: 1, run: one(func(c *call) *tensor {
			y := c.conv(c.t(0), c.t(1))
			if c.has(2) {
				y = y.Add(c.along(c.t(2), y, 1))
			}
			return y
		})},
		op{name: "ConvTranspose", since: 1, run: one(convTranspose)},
		op{name: "GlobalAveragePool", since: 1, run: one(func(c *call) *tensor { return c.t(0).MeanKeep(c.spatial()...) })},
		op{name: "GlobalMaxPool", since: 1, run: one(func(c *call) *tensor { return c.t(0).MaxKeep(c.spatial()...) })},
		op{name: "GlobalLpPool", since: 2, run: one(func(c *call) *tensor {
			p := c.float("p", 2)
			if a := c.attr("p"); a != nil {
				p = float64(a.i)
			}
			return c.t(0).Abs().PowScalar(p).SumKeep(c.spatial()...).PowScalar(1 / p)
		})},
		op{name: "LpPool", since: 2, run: pools(lpPool)},
		op{name: "MaxPool", since: 1, run: maxPool},
		op{name: "MaxUnpool", since: 9, run: one(maxUnpool), onHost: 1 << 2},
	)
}

// spatial are the axes after batch and channels.
func (c *call) spatial() []int {
	rank := c.rank(0)
	if rank < 3 {
		c.shapeFail("shape %v has no spatial dimensions", c.shape(0))
		return nil
	}
	return seq(rank)[2:]
}

// dims returns a list with an element for each spatial dimension, or the default.
func (c *call) perDim(name string, n, or int) []int {
	list := c.list(name)
	if list == nil {
		list = make([]int, n)
		for i := range list {
			list[i] = or
		}
	}
	if len(list) != n {
		c.shapeFail("attribute %q has %d elements for %d spatial dimensions", name, len(list), n)
		return make([]int, n)
	}
	for _, v := range list {
		if v < 0 || v > 1<<30 {
			c.shapeFail("attribute %q is %v", name, list)
		}
	}
	return list
}

// windows are the windows of a convolution or pool over the spatial dimensions of shape. A pool in
// ceil mode has windows that end after the padding, if they begin before its end.
func (c *call) windows(shape, kernel []int, pool bool) []millrace.Window {
	n := len(kernel)
	if len(shape) != n+2 || n == 0 {
		c.shapeFail("kernel %v for shape %v", kernel, shape)
		return nil
	}
	strides, dilations := c.perDim("strides", n, 1), c.perDim("dilations", n, 1)
	pads := c.perDim("pads", 2*n, 0)
	auto := c.str("auto_pad", "NOTSET")
	w := make([]millrace.Window, n)
	for i := range w {
		if kernel[i] < 1 || strides[i] < 1 || dilations[i] < 1 || kernel[i] > 1<<30 {
			c.shapeFail("kernel %v, strides %v, dilations %v", kernel, strides, dilations)
			return nil
		}
		w[i] = millrace.Window{Size: kernel[i], Stride: strides[i], Dilation: dilations[i], Before: pads[i], After: pads[n+i]}
		size, reach := shape[2+i], (kernel[i]-1)*dilations[i]+1
		switch auto {
		case "NOTSET", "":
		case "VALID":
			w[i].Before, w[i].After = 0, 0
		case "SAME_UPPER", "SAME_LOWER":
			outs := (size + strides[i] - 1) / strides[i]
			total := max((outs-1)*strides[i]+reach-size, 0)
			w[i].Before, w[i].After = total/2, total-total/2
			if auto == "SAME_LOWER" {
				w[i].Before, w[i].After = w[i].After, w[i].Before
			}
		default:
			c.fail("auto_pad %q is unknown", auto)
		}
		if pool && c.int("ceil_mode", 0) != 0 {
			whole := size + w[i].Before + w[i].After - reach
			if rest := whole % strides[i]; whole >= 0 && rest != 0 {
				// One more window, unless it begins in the padding after the elements.
				if begin := whole - rest + strides[i]; begin < size+w[i].Before {
					w[i].After += strides[i] - rest
				}
			}
		}
	}
	return w
}

func (c *call) conv(x, w *tensor) *tensor {
	kernel := c.list("kernel_shape")
	if w.Rank() < 3 {
		c.shapeFail("kernels of shape %v", w.Shape())
		return nil
	}
	if kernel == nil {
		kernel = w.Shape()[2:]
	}
	var opt millrace.ConvOptions
	for _, v := range c.windows(x.Shape(), kernel, false) {
		opt.Stride, opt.Dilation = append(opt.Stride, v.Stride), append(opt.Dilation, v.Dilation)
		opt.Padding = append(opt.Padding, [2]int{v.Before, v.After})
	}
	opt.Groups = c.int("group", 1)
	if c.err != nil {
		return new(tensor)
	}
	return x.Conv(w, opt)
}

func convTranspose(c *call) *tensor {
	x, w := c.t(0), c.t(1)
	n := x.Rank() - 2
	if n < 1 || w.Rank() != n+2 {
		c.shapeFail("kernels of shape %v for %v", c.shape(1), c.shape(0))
		return nil
	}
	kernel := w.Shape()[2:]
	strides, dilations := c.perDim("strides", n, 1), c.perDim("dilations", n, 1)
	extra, pads := c.perDim("output_padding", n, 0), c.perDim("pads", 2*n, 0)
	shape, auto := c.list("output_shape"), c.str("auto_pad", "NOTSET")
	if len(shape) == n+2 {
		shape = shape[2:]
	}
	if shape != nil && len(shape) != n {
		c.shapeFail("output_shape %v", shape)
	}
	if c.err != nil {
		return nil
	}
	// Without padding; the padding is cut off below, as it may be negative.
	opt := millrace.ConvOptions{Stride: strides, Dilation: dilations, Groups: c.int("group", 1)}
	y := x.ConvTranspose(w, opt)
	cut := make([]millrace.Padding, n+2)
	for i := range n {
		full := (x.Dim(2+i)-1)*strides[i] + (kernel[i]-1)*dilations[i] + 1
		before, after := pads[i], pads[n+i]
		want := -1
		if shape != nil {
			want = shape[i]
		} else if auto == "SAME_UPPER" || auto == "SAME_LOWER" {
			want = x.Dim(2+i) * strides[i]
		}
		if want >= 0 {
			total := full + extra[i] - want
			before, after = total/2, total-total/2
			if auto == "SAME_LOWER" || auto != "SAME_UPPER" && total > 0 {
				before, after = after, before
			}
		}
		cut[2+i] = millrace.Padding{Before: -before, After: extra[i] - after}
	}
	y = y.Pad(0, cut...)
	if c.has(2) {
		y = y.Add(c.along(c.t(2), y, 1))
	}
	return y
}

func averagePool(c *call, x *tensor, w []millrace.Window) *tensor {
	if c.int("count_include_pad", 0) == 0 {
		return x.AvgPool(w...)
	}
	// Padding counts, but not what ceil mode adds beyond it.
	n := len(w)
	pads := c.perDim("pads", 2*n, 0)
	fill := make([]millrace.Padding, n+2)
	rest := append([]millrace.Window(nil), w...)
	for i, v := range w {
		after := v.After
		if auto := c.str("auto_pad", "NOTSET"); auto == "NOTSET" || auto == "" {
			after = min(after, pads[n+i])
		}
		fill[2+i] = millrace.Padding{Before: v.Before, After: after}
		rest[i].Before, rest[i].After = 0, v.After-after
	}
	return x.Pad(0, fill...).AvgPool(rest...)
}

func lpPool(c *call, x *tensor, w []millrace.Window) *tensor {
	p := float64(c.int("p", 2))
	return x.Abs().PowScalar(p).ReduceWindow(millrace.ReduceSum, w...).PowScalar(1 / p)
}

// maxPool has as its second result the place of each maximum in the whole input.
func maxPool(c *call) []*value {
	x, dims := c.t(0), c.shape(0)
	w := c.windows(dims, c.list("kernel_shape"), true)
	if c.err != nil {
		return nil
	}
	y := x.MaxPool(w...)
	if !c.want(1) {
		return results(y)
	}
	n := len(w)
	if 2*n+2 > 8 {
		c.fail("%w: places of maxima of %d spatial dimensions", millrace.ErrUnsupported, n)
		return nil
	}
	// Places of the elements, windowed like the elements, with -1 for the padding.
	place := millrace.ArangeOn(c.f.r.place, millrace.Int64, 0, float64(product(dims)), 1)
	if c.int("storage_order", 0) != 0 && n > 1 { // column-major within an image
		perm := seq(n)
		inner := append([]int(nil), dims[2:]...)
		for i := range perm {
			perm[i] = n + 1 - i
			inner[i] = dims[2+n-1-i]
		}
		place = place.Reshape(append([]int{dims[0], dims[1]}, inner...)...).Permute(append([]int{0, 1}, perm...)...)
	} else {
		place = place.Reshape(dims...)
	}
	v, p := x, place
	for i, win := range w {
		axis := 2 + 2*i
		v, p = v.Windows(axis, win, 0), p.Windows(axis, win, -1)
	}
	// (batch, channels, out, in, out, in, …) becomes (batch, channels, outs…, ins…).
	perm := []int{0, 1}
	for i := range n {
		perm = append(perm, 2+2*i)
	}
	for i := range n {
		perm = append(perm, 3+2*i)
	}
	v, p = v.Permute(perm...), p.Permute(perm...)
	outs := v.Shape()[:2+n]
	v, p = v.Reshape(append(outs, -1)...), p.Reshape(append(append([]int(nil), outs...), -1)...)
	// The first element of a window that equals its maximum and is no padding.
	hit := v.Eq(y.Unsqueeze(-1)).And(p.GeScalar(0))
	first := hit.Cast(millrace.Uint8).ArgMax(-1)
	return results(y, p.TakeAlong(first.Unsqueeze(-1), -1).Squeeze(-1))
}

func maxUnpool(c *call) *tensor {
	x, dims := c.t(0), c.shape(0)
	kernel := c.list("kernel_shape")
	n := len(kernel)
	if len(dims) != n+2 || n == 0 {
		c.shapeFail("kernel %v for shape %v", kernel, dims)
		return nil
	}
	strides, pads := c.perDim("strides", n, 1), c.perDim("pads", 2*n, 0)
	plain := append([]int(nil), dims...)
	for i := range n {
		plain[2+i] = (dims[2+i]-1)*strides[i] + kernel[i] - pads[i] - pads[n+i]
	}
	out := plain
	if c.has(2) {
		out = c.ints(2)
	}
	for _, d := range plain {
		if d < 0 {
			c.shapeFail("impossible shape %v", plain)
		}
	}
	if c.err != nil || len(out) != len(dims) {
		c.shapeFail("output shape %v for %v", out, dims)
		return nil
	}
	// The places are those of the tensor before pooling. Elements go there, and then the tensor
	// gets its output shape.
	flat := millrace.ZerosOn(c.f.r.place, x.DType(), product(plain))
	y := flat.ScatterSet(c.t(1).Reshape(-1), x.Reshape(-1), 0).Reshape(plain...)
	grow := make([]millrace.Padding, len(dims))
	for i := range dims {
		grow[i] = millrace.Padding{After: out[i] - plain[i]}
	}
	return y.Pad(0, grow...)
}
