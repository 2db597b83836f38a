package data

import (
	"fmt"
	"math"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/handle"
)

// Uniform draws numbers of dtype Float32, uniform on [0, 1), others at each call, as the
// context of a forward pass of package nn does.
type Uniform interface {
	Uniform(shape ...int) *millrace.Tensor
}

// RandomCrop moves each image of a batch (batch, channels, height, width) by up to padding
// pixels in either direction, by another vector each: what a window of the image's size shows
// that is laid at random on the image with a frame of padding zeros. Of a padding below 0,
// and of a tensor that is no batch of images, the result carries [millrace.ErrShape].
//
// It is a gather on the device, and fuses with what is done to its result. It draws one tensor
// of 2 numbers for an image.
func RandomCrop(r Uniform, x *millrace.Tensor, padding int) *millrace.Tensor {
	if t := notImages("randomcrop", x); t != nil {
		return t
	}
	n, c, h, w := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	if padding < 0 || padding > math.MaxInt16 || h+padding+1 > math.MaxInt32/(w+padding+1) { // pixels are counted in Int32
		return failed("randomcrop", fmt.Errorf("%w: a padding of %d for images of %d by %d", millrace.ErrShape, padding, h, w), x)
	}
	var g garbage
	defer g.release()
	u := g.add(r.Uniform(2, n, 1, 1))
	// Less than 2*padding+1, also rounded, as no u is above 1-2^-24.
	by := g.add(g.add(u.MulScalar(float64(2*padding + 1))).Cast(millrace.Int32))
	rows := g.add(g.add(g.add(by.Slice(millrace.At(0))).Add(from(&g, x, -padding, h))).Unsqueeze(-1)) // (batch, 1, height, 1)
	cols := g.add(g.add(g.add(by.Slice(millrace.At(1))).Add(from(&g, x, -padding, w))).Unsqueeze(-2)) // (batch, 1, 1, width)
	at := g.add(g.add(rows.MulScalar(float64(w))).Add(cols))
	// A place above or below the image is one before or behind its pixels; one beside it
	// is in another row.
	in := g.add(g.add(cols.ClampScalar(0, float64(w-1))).Eq(cols))
	index := g.add(g.add(millrace.WhereScalar(in, at, -1)).Reshape(n, 1, h*w))
	flat := g.add(x.Reshape(n, c, h*w))
	return g.add(flat.TakeAlong(index, 2, millrace.IndexDrop)).Reshape(n, c, h, w)
}

// RandomFlip turns about half of the images of a batch (batch, channels, height, width) from
// left to right. Of a tensor that is no batch of images the result carries
// [millrace.ErrShape]. It draws one number for an image.
func RandomFlip(r Uniform, x *millrace.Tensor) *millrace.Tensor {
	if t := notImages("randomflip", x); t != nil {
		return t
	}
	var g garbage
	defer g.release()
	turned := g.add(g.add(r.Uniform(x.Dim(0), 1, 1, 1)).LtScalar(0.5))
	return millrace.Where(turned, g.add(x.Flip(-1)), x)
}

// Normalize brings each channel of a batch (batch, channels, …) to mean 0 and deviation 1, given
// the channels' means and deviations: (x - mean) / std. Uint8 becomes Float32 on [0, 1] first,
// by a division by 255; of floats the dtype stays; others carry [millrace.ErrDType]. Lists with
// more or fewer elements than x has channels, and numbers that are not finite or a deviation
// of 0, give a tensor that carries [millrace.ErrShape].
func Normalize(x *millrace.Tensor, mean, std []float64) *millrace.Tensor {
	const op = "normalize"
	var g garbage
	defer g.release()
	switch dt := x.DType(); {
	case x.Err() != nil:
		return failed(op, x.Err(), x)
	case dt == millrace.Uint8:
		x = g.add(g.add(x.Cast(millrace.Float32)).DivScalar(255))
	case !dt.IsFloat():
		return failed(op, fmt.Errorf("%w: %v tensor: floats or uint8", millrace.ErrDType, dt), x)
	}
	if x.Rank() < 2 || x.Dim(1) != len(mean) || len(mean) != len(std) {
		return failed(op, fmt.Errorf("%w: %d means and %d deviations for the channels of %v", millrace.ErrShape, len(mean), len(std), x.Shape()), x)
	}
	for k := range mean {
		if math.IsNaN(mean[k]) || math.IsInf(mean[k], 0) || math.IsNaN(std[k]) || math.IsInf(std[k], 0) || std[k] == 0 {
			return failed(op, fmt.Errorf("%w: channel %d of mean %v and deviation %v", millrace.ErrShape, k, mean[k], std[k]), x)
		}
	}
	return g.add(x.Sub(perChannel(&g, x, mean))).Div(perChannel(&g, x, std))
}

// perChannel is a tensor that broadcasts to x, with a number for each channel.
func perChannel(g *garbage, x *millrace.Tensor, v []float64) *millrace.Tensor {
	f := make([]float32, len(v))
	for k := range v {
		f[k] = float32(v[k])
	}
	shape := slices.Repeat([]int{1}, x.Rank()-1)
	shape[0] = len(v)
	t := g.add(millrace.FromSliceOn(x.Stream(), f, shape...))
	if x.DType() != millrace.Float32 {
		t = g.add(t.Cast(x.DType()))
	}
	return t
}

// notImages is the result for what is no batch of images, else nil.
func notImages(op string, x *millrace.Tensor) *millrace.Tensor {
	switch {
	case x.Err() != nil:
		return failed(op, x.Err(), x)
	case x.Rank() != 4:
		return failed(op, fmt.Errorf("%w: %v is no (batch, channels, height, width)", millrace.ErrShape, x.Shape()), x)
	case x.Dim(2) > maxPixels/max(x.Dim(3), 1):
		return failed(op, fmt.Errorf("%w: images of %v have more than %d pixels", millrace.ErrShape, x.Shape(), maxPixels), x)
	}
	return nil
}

func failed(op string, err error, x *millrace.Tensor) *millrace.Tensor {
	return handle.Fail(op, err, []any{x}).(*millrace.Tensor)
}

// from counts n numbers up, where x is.
func from(g *garbage, x *millrace.Tensor, first, n int) *millrace.Tensor {
	return g.add(millrace.ArangeOn(x.Stream(), millrace.Int32, float64(first), float64(first+n), 1))
}

// garbage is what an op of several ops leaves: without a scope only the collector would find it.
type garbage []*millrace.Tensor

func (g *garbage) add(t *millrace.Tensor) *millrace.Tensor {
	*g = append(*g, t)
	return t
}

func (g *garbage) release() {
	for _, t := range *g {
		t.Release()
	}
}
