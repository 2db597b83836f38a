package onnx

import (
	"math"

	"github.com/millrace-go/millrace"
)

func init() {
	// The cosine series of a window: a0 - a1·cos(x) + a2·cos(2x).
	window := func(name string, a0, a1, a2 float64) op {
		return op{name: name, since: 17, onHost: 1, run: one(func(c *call) *tensor { return cosineWindow(c, a0, a1, a2) })}
	}
	register(
		window("BlackmanWindow", 0.42, 0.5, 0.08),
		window("HammingWindow", 25.0/46, 21.0/46, 0),
		window("HannWindow", 0.5, 0.5, 0),
		op{name: "Col2Im", since: 18, run: one(col2im), onHost: 1<<1 | 1<<2},
		op{name: "DFT", since: 17, run: one(dft), onHost: 1<<1 | 1<<2},
		op{name: "MelWeightMatrix", since: 17, run: one(melWeights), onHost: 31},
		op{name: "STFT", since: 17, run: one(stft), onHost: 1<<1 | 1<<3},
	)
}

func cosineWindow(c *call, a0, a1, a2 float64) *tensor {
	n := c.size(float64(c.intScalar(0)))
	period := float64(n)
	if c.int("periodic", 1) == 0 {
		period--
	}
	x := millrace.ArangeOn(c.f.r.place, millrace.Float64, 0, float64(n), 1).MulScalar(2 * math.Pi / period)
	y := x.Cos().MulScalar(-a1).Add(x.MulScalar(2).Cos().MulScalar(a2)).AddScalar(a0)
	return y.Cast(c.dtypeAttr("output_datatype", millrace.Float32))
}

// complexParts splits the last dimension, which has the real part, or the real and imaginary parts.
func (c *call) complexParts(x *tensor) (re, im *tensor) {
	last := x.Rank() - 1
	if last < 1 || x.Dim(last) < 1 || x.Dim(last) > 2 {
		c.shapeFail("shape %v does not end in one or two parts", x.Shape())
		return x, nil
	}
	parts := millrace.Split(x, last, make1(x.Dim(last))...)
	re = parts[0].Squeeze(last)
	if len(parts) == 2 {
		return re, parts[1].Squeeze(last)
	}
	return re, millrace.ZerosOn(c.f.r.place, x.DType(), re.Shape()...)
}

// sized cuts an axis, or adds zeros.
func sized(x *tensor, axis, n int) *tensor {
	if x.Dim(axis) == n {
		return x
	}
	pads := make([]millrace.Padding, x.Rank())
	pads[axis].After = n - x.Dim(axis)
	return x.Pad(0, pads...)
}

// spectrum transforms an axis.
func spectrum(re, im *tensor, axis int, inverse, half bool) *tensor {
	if inverse {
		re, im = millrace.IFFT(re, im, axis)
	} else {
		re, im = millrace.FFT(re, im, axis)
	}
	if half {
		part := make([]millrace.Range, axis+1)
		part[axis] = millrace.R(0, re.Dim(axis)/2+1)
		re, im = re.Slice(part...), im.Slice(part...)
	}
	return millrace.Stack(re.Rank(), re, im)
}

func dft(c *call) *tensor {
	x, rank := c.t(0), c.rank(0)
	axis := c.int("axis", 1)
	if c.n.opset >= 20 {
		axis = -2
		if c.has(2) {
			axis = c.intScalar(2)
		}
	}
	if axis = c.axis(axis, rank); axis == rank-1 {
		c.shapeFail("axis %d has the parts of complex numbers", axis)
	}
	inverse, half := c.int("inverse", 0) != 0, c.int("onesided", 0) != 0
	re, im := c.complexParts(x)
	if c.err != nil {
		return nil
	}
	n := re.Dim(axis)
	if c.has(1) {
		n = c.size(float64(c.intScalar(1)))
	}
	if half && (inverse || c.shape(0)[rank-1] == 2) {
		c.fail("%w: half of a spectrum whose input is not real", millrace.ErrUnsupported)
		return nil
	}
	if n < 1 {
		c.shapeFail("a transform of %d elements", n)
		return nil
	}
	return spectrum(sized(re, axis, n), sized(im, axis, n), axis, inverse, half)
}

func stft(c *call) *tensor {
	x, step := c.t(0), c.intScalar(1)
	if c.rank(0) == 2 {
		x = x.Unsqueeze(2)
	}
	re, im := c.complexParts(x)
	if c.err != nil || re.Rank() != 2 {
		c.shapeFail("a signal of shape %v", c.shape(0))
		return nil
	}
	n := re.Dim(1)
	if c.has(2) {
		n = c.t(2).Len()
	}
	if c.has(3) {
		n = c.size(float64(c.intScalar(3)))
	}
	if step < 1 || n < 1 || n > re.Dim(1) {
		c.shapeFail("frames of %d elements every %d of %d", n, step, re.Dim(1))
		return nil
	}
	w := millrace.Window{Size: n, Stride: step}
	re, im = re.Windows(1, w, 0), im.Windows(1, w, 0)
	if c.has(2) {
		re, im = re.Mul(c.t(2)), im.Mul(c.t(2))
	}
	return spectrum(re, im, 2, false, c.int("onesided", 1) != 0)
}

// melWeights maps the bins of a spectrum to bands that are evenly spaced in mel. Each band is a
// triangle over the bins.
func melWeights(c *call) *tensor {
	bands, length, rate := c.intScalar(0), c.intScalar(1), c.intScalar(2)
	lo, hi := c.scalar(3), c.scalar(4)
	if bands < 0 || length < 0 || rate < 1 || bands > 1<<20 || length > 1<<30 {
		c.shapeFail("%d bands, %d bins at rate %d", bands, length, rate)
		return nil
	}
	bins := length/2 + 1
	mel := func(hz float64) float64 { return 2595 * math.Log10(1+hz/700) }
	step := (mel(hi) - mel(lo)) / float64(bands+2)
	edge := make([]int, bands+2)
	for i := range edge {
		hz := 700 * (math.Pow(10, (float64(float64(i)*step)+mel(lo))/2595) - 1)
		edge[i] = int(math.Floor(float64(length+1) * hz / float64(rate)))
		if edge[i] < 0 || edge[i] >= bins {
			c.shapeFail("frequency %v Hz has no bin", hz)
			return nil
		}
	}
	w := make([]float64, c.listed(bins, bands))
	if c.err != nil {
		return nil
	}
	for i := range bands {
		left, mid, right := edge[i], edge[i+1], edge[i+2]
		if left == mid {
			w[mid*bands+i] = 1
		}
		for j := left; j <= mid && left < mid; j++ {
			w[j*bands+i] = float64(j-left) / float64(mid-left)
		}
		for j := mid; j < right; j++ {
			w[j*bands+i] = float64(right-j) / float64(right-mid)
		}
	}
	return millrace.FromSliceOn(c.f.r.place, w, bins, bands).Cast(c.dtypeAttr("output_datatype", millrace.Float32))
}

// col2im adds up overlapping blocks: the opposite of cutting an image into windows.
func col2im(c *call) *tensor {
	x, image, block := c.t(0), c.ints(1), c.ints(2)
	n, d := len(image), c.shape(0)
	strides, dilations, pads := c.perDim("strides", n, 1), c.perDim("dilations", n, 1), c.perDim("pads", 2*n, 0)
	if len(block) != n || n < 1 || len(d) != 3 || product(block) < 1 || d[1]%product(block) != 0 {
		c.shapeFail("blocks %v of an image %v for shape %v", block, image, d)
	}
	if c.err != nil {
		return nil
	}
	// Each axis has a list of places for (element of a block, block); -1 is outside.
	counts := make([]int, n)
	for i := range n {
		reach := (block[i]-1)*dilations[i] + 1
		if strides[i] < 1 || block[i] < 1 || image[i] < 1 || image[i]+pads[i]+pads[n+i] < reach {
			c.shapeFail("blocks %v of an image %v", block, image)
			return nil
		}
		counts[i] = (image[i]+pads[i]+pads[n+i]-reach)/strides[i] + 1
	}
	if product(counts) != d[2] {
		c.shapeFail("%d blocks for an image of %v", d[2], counts)
		return nil
	}
	index := make([]int64, c.listed(product(block), d[2]))
	if c.err != nil {
		return nil
	}
	for e := range product(block) {
		for b := range d[2] {
			at, re, rb, unit := int64(0), e, b, int64(1)
			for i := n - 1; i >= 0; i-- {
				p := (rb%counts[i])*strides[i] - pads[i] + (re%block[i])*dilations[i]
				re, rb = re/block[i], rb/counts[i]
				if p < 0 || p >= image[i] {
					at = math.MinInt32
				}
				at += int64(p) * unit
				unit *= int64(image[i])
			}
			index[e*d[2]+b] = max(at, -1)
		}
	}
	channels := d[1] / product(block)
	zero := millrace.ZerosOn(c.f.r.place, x.DType(), d[0], channels, product(image))
	places := millrace.FromSliceOn(c.f.r.place, index, 1, 1, len(index))
	y := zero.ScatterAdd(places, x.Reshape(d[0], channels, len(index)), 2, millrace.IndexDrop)
	return y.Reshape(append([]int{d[0], channels}, image...)...)
}
