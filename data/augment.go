package data

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostapi"
)

// Uniform draws Float32 numbers, uniform on [0, 1), different at each call. The Ctx of package nn
// implements it.
type Uniform interface {
	Uniform(shape ...int) *millrace.Tensor
}

// RandomCrop shifts each image of a batch (batch, channels, height, width) by a random vector of up
// to padding pixels in either direction: it cuts a window of the image's size at a random place
// from the image with a frame of padding zeros (torchvision's RandomCrop). The result has x's shape
// and dtype, which may be any. A padding below 0, or a tensor that is no batch of images, gives
// [millrace.ErrShape]; a nil r is an error, too.
//
// It is a gather on the device, and fuses with ops on its result. It draws one tensor with 2
// numbers for each image.
func RandomCrop(r Uniform, x *millrace.Tensor, padding int) *millrace.Tensor {
	if t := notImages("randomcrop", r, x); t != nil {
		return t
	}
	n, c, h, w := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	if padding < 0 || padding > math.MaxInt16 || h+padding+1 > math.MaxInt32/(w+padding+1) { // pixels are counted in Int32
		return failed("randomcrop", fmt.Errorf("%w: a padding of %d does not fit images of %d by %d", millrace.ErrShape, padding, h, w), x)
	}
	var g garbage
	defer g.release()
	u := g.add(r.Uniform(2, n, 1, 1))
	// At most 2*padding, even after rounding, because u is at most 1-2^-24.
	by := g.add(g.add(u.MulScalar(float64(2*padding + 1))).Cast(millrace.Int32))
	rows := g.add(g.add(g.add(by.Slice(millrace.At(0))).Add(from(&g, x, -padding, h))).Unsqueeze(-1)) // (batch, 1, height, 1)
	cols := g.add(g.add(g.add(by.Slice(millrace.At(1))).Add(from(&g, x, -padding, w))).Unsqueeze(-2)) // (batch, 1, 1, width)
	at := g.add(g.add(rows.MulScalar(float64(w))).Add(cols))
	// A row above or below the image gives an index before or after the pixels, which IndexDrop
	// turns into 0. A column beside the image would give an index in another row; the index is set
	// to -1 instead.
	in := g.add(g.add(cols.ClampScalar(0, float64(w-1))).Eq(cols))
	index := g.add(g.add(millrace.WhereScalar(in, at, -1)).Reshape(n, 1, h*w))
	flat := g.add(x.Reshape(n, c, h*w))
	return g.add(flat.TakeAlong(index, 2, millrace.IndexDrop)).Reshape(n, c, h, w)
}

// RandomFlip mirrors about half of the images of a batch (batch, channels, height, width) from left
// to right (torchvision's RandomHorizontalFlip). The result has x's shape and dtype, which may be
// any. A tensor that is no batch of images gives [millrace.ErrShape]; a nil r is an error, too. It
// draws one number for each image.
func RandomFlip(r Uniform, x *millrace.Tensor) *millrace.Tensor {
	if t := notImages("randomflip", r, x); t != nil {
		return t
	}
	var g garbage
	defer g.release()
	turned := g.add(g.add(r.Uniform(x.Dim(0), 1, 1, 1)).LtScalar(0.5))
	return millrace.Where(turned, g.add(x.Flip(-1)), x)
}

// Normalize computes (x - mean) / std for each channel of a batch (batch, channels, …), given the
// channels' means and deviations (torchvision's Normalize). Uint8 is first converted to Float32 on
// [0, 1], by a division by 255; floats keep their dtype; other dtypes give [millrace.ErrDType]. The
// lists must have one finite number for each channel, and no deviation may be 0; else the result
// carries [millrace.ErrShape].
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
		return failed(op, fmt.Errorf("%w: images cannot have dtype %v, only floats or Uint8", millrace.ErrDType, dt), x)
	}
	if x.Rank() < 2 || x.Dim(1) != len(mean) || len(mean) != len(std) {
		return failed(op, fmt.Errorf("%w: %d means and %d deviations were given for the channels of %v", millrace.ErrShape, len(mean), len(std), x.Shape()), x)
	}
	for k := range mean {
		if math.IsNaN(mean[k]) || math.IsInf(mean[k], 0) || math.IsNaN(std[k]) || math.IsInf(std[k], 0) || std[k] == 0 {
			return failed(op, fmt.Errorf("%w: channel %d has mean %v and deviation %v, they must be finite and the deviation not 0", millrace.ErrShape, k, mean[k], std[k]), x)
		}
	}
	return g.add(x.Sub(perChannel(&g, x, mean))).Div(perChannel(&g, x, std))
}

// perChannel makes a tensor with one number for each channel, which broadcasts to x.
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

// notImages returns the failed result for a tensor that is no batch of images, or without random
// numbers, else nil.
func notImages(op string, r Uniform, x *millrace.Tensor) *millrace.Tensor {
	switch {
	case x.Err() != nil:
		return failed(op, x.Err(), x)
	case r == nil:
		return failed(op, errNoUniform, x)
	case x.Rank() != 4:
		return failed(op, fmt.Errorf("%w: %v is not (batch, channels, height, width)", millrace.ErrShape, x.Shape()), x)
	case x.Dim(2) > maxPixels/max(x.Dim(3), 1):
		return failed(op, fmt.Errorf("%w: images of %v have more than %d pixels", millrace.ErrShape, x.Shape(), maxPixels), x)
	}
	return nil
}

func failed(op string, err error, x *millrace.Tensor) *millrace.Tensor {
	return hostapi.Fail(op, err, []any{x}).(*millrace.Tensor)
}

var errNoUniform = errors.New("the source of random numbers is nil")

// from makes the numbers first, first+1, … (n of them) on x's stream.
func from(g *garbage, x *millrace.Tensor, first, n int) *millrace.Tensor {
	return g.add(millrace.ArangeOn(x.Stream(), millrace.Int32, float64(first), float64(first+n), 1))
}

// garbage collects the intermediate tensors of an op made of ops. Outside of a scope only Go's
// collector would release them.
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
