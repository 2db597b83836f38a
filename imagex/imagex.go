package imagex

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"
	"reflect"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/internal/hostmem"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
)

// Options say how a tensor holds an image. The zero value is a tensor of Uint8, channels first.
type Options struct {
	// DType is Uint8 or Float32; another one is [millrace.ErrDType]. The default is Uint8.
	DType millrace.DType
	// Channels is 1 for brightness, 3 for colours, or 4 with alpha. 0 stands for the image's own
	// number: 1 for image.Gray and Gray16, 3 for YCbCr and CMYK, else 4. With fewer than 4,
	// transparency is ignored.
	Channels int
	// Last puts the channels last, (height, width, channels); else they are the first dimension.
	Last bool
}

var errNil = errors.New("nil image")

// FromImage makes a tensor of an image, on the default device. Its shape is (channels, height,
// width), or that of Options.Last. Its dtype is Uint8, or Float32 if Options.DType says so; another
// one is millrace.ErrDType. A number of channels other than 0, 1, 3 and 4 is millrace.ErrShape. A
// nil image gives a tensor with an error, and so does an image for which the host's memory does not
// suffice (millrace.ErrOutOfMemory).
func FromImage(img image.Image, o Options) *millrace.Tensor {
	d, err := millrace.Default()
	if err != nil {
		return failed("fromimage", err)
	}
	return FromImageOn(d, img, o)
}

// FromImageOn is [FromImage] in a given place. A nil place, or one that was not opened, gives a
// tensor with an error. millrace.Stack makes a batch of several images.
func FromImageOn(p millrace.Place, img image.Image, o Options) *millrace.Tensor {
	const op = "fromimage"
	if v := reflect.ValueOf(img); img == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return failed(op, errNil)
	}
	c, err := o.channels(img)
	if err != nil {
		return failed(op, err)
	}
	h, w := img.Bounds().Dy(), img.Bounds().Dx()
	if err := room(h, w); err != nil {
		return failed(op, err)
	}
	t := millrace.FromSliceOn(p, pixels(img, c), h, w, c)
	if o.DType == millrace.Float32 {
		t = then(t, t.Cast(millrace.Float32))
		t = then(t, t.DivScalar(255))
	}
	if !o.Last {
		t = then(t, t.Permute(2, 0, 1))
	}
	return t
}

// then releases an intermediate tensor t and returns r.
func then(t, r *millrace.Tensor) *millrace.Tensor {
	hostapi.Drop(t)
	return r
}

func (o Options) channels(img image.Image) (int, error) {
	if o.DType != millrace.Invalid && o.DType != millrace.Uint8 && o.DType != millrace.Float32 {
		return 0, fmt.Errorf("%w: images cannot have dtype %v, only Uint8 or Float32", millrace.ErrDType, o.DType)
	}
	switch o.Channels {
	case 1, 3, 4:
		return o.Channels, nil
	case 0:
	default:
		return 0, fmt.Errorf("%w: images cannot have %d channels, only 1, 3 or 4", millrace.ErrShape, o.Channels)
	}
	switch img.(type) {
	case *image.Gray, *image.Gray16:
		return 1, nil
	case *image.YCbCr, *image.CMYK:
		return 3, nil
	}
	return 4, nil
}

// pixels returns an image's pixels, row by row, with c channels each.
func pixels(img image.Image, c int) []uint8 {
	b := img.Bounds()
	h, w := b.Dy(), b.Dx()
	dst := make([]uint8, 0, h*w*c)
	switch x := img.(type) {
	case *image.Gray:
		if c == 1 {
			for y := range h {
				dst = append(dst, x.Pix[y*x.Stride:y*x.Stride+w]...)
			}
			return dst
		}
	case *image.YCbCr: // has no transparency, and allows a faster way
		rgba := image.NewRGBA(b)
		draw.Draw(rgba, b, x, b.Min, draw.Src)
		img = &image.NRGBA{Pix: rgba.Pix, Stride: rgba.Stride, Rect: b}
	}
	n, direct := img.(*image.NRGBA)
	for y := range h {
		for x := range w {
			var p color.NRGBA
			if direct {
				i := y*n.Stride + 4*x
				p = color.NRGBA{n.Pix[i], n.Pix[i+1], n.Pix[i+2], n.Pix[i+3]}
			} else {
				p = color.NRGBAModel.Convert(img.At(b.Min.X+x, b.Min.Y+y)).(color.NRGBA)
			}
			switch c {
			case 1:
				p.A = 0xff
				dst = append(dst, color.GrayModel.Convert(p).(color.Gray).Y)
			case 3:
				dst = append(dst, p.R, p.G, p.B)
			default:
				dst = append(dst, p.R, p.G, p.B, p.A)
			}
		}
	}
	return dst
}

// Image converts a tensor of three dimensions to an image: one channel to an *image.Gray, 3 or 4 to
// an *image.NRGBA. It takes the options that [FromImage] makes such a tensor with: Last says where
// the channels are, and a DType or a number of Channels that is set must be the tensor's. Other
// shapes are [millrace.ErrShape]. The dtype is Uint8 or Float32, else [millrace.ErrDType]. Of Float32, numbers below 0 and NaN
// become 0, numbers above 1 become 255, and others are rounded to the nearest of 255 steps, halves
// to even. It runs the ops that t needs, waits, and returns their errors.
func Image(t *millrace.Tensor, o Options) (image.Image, error) {
	const op = "image"
	if t.Err() != nil {
		return nil, failed(op, operror.ErrNoValue, t).Err()
	}
	t = t.To(t.Stream()) // the current value, even if Set is called meanwhile
	defer hostapi.Drop(t)
	if t.Rank() != 3 {
		return nil, failed(op, fmt.Errorf("%w: %v is not an image", millrace.ErrShape, t.Shape()), t).Err()
	}
	x := t
	if !o.Last {
		x = t.Permute(1, 2, 0)
		defer hostapi.Drop(x)
	}
	h, w, c := x.Dim(0), x.Dim(1), x.Dim(2)
	if c != 1 && c != 3 && c != 4 {
		return nil, failed(op, fmt.Errorf("%w: images cannot have the %d channels of %v, only 1, 3 or 4", millrace.ErrShape, c, t.Shape()), t).Err()
	}
	err := room(h, w)
	switch {
	case o.DType != millrace.Invalid && o.DType != t.DType():
		err = fmt.Errorf("%w: the options are for %v, the tensor is %v", millrace.ErrDType, o.DType, t.DType())
	case o.Channels != 0 && o.Channels != c:
		err = fmt.Errorf("%w: the options are for %d channels, %d in %v", millrace.ErrShape, o.Channels, c, t.Shape())
	}
	var pix []uint8
	if err == nil {
		pix, err = bytesOf(x)
	}
	if err != nil {
		return nil, failed(op, err, t).Err()
	}
	r := image.Rect(0, 0, w, h)
	if c == 1 {
		return &image.Gray{Pix: pix, Stride: w, Rect: r}, nil
	}
	if c == 3 {
		wide := make([]uint8, 0, 4*h*w)
		for i := 0; i < len(pix); i += 3 {
			wide = append(wide, pix[i], pix[i+1], pix[i+2], 0xff)
		}
		pix = wide
	}
	return &image.NRGBA{Pix: pix, Stride: 4 * w, Rect: r}, nil
}

func bytesOf(x *millrace.Tensor) ([]uint8, error) {
	switch dt := x.DType(); dt {
	case millrace.Uint8:
		return millrace.Values[uint8](x)
	case millrace.Float32:
		f, err := millrace.Values[float32](x)
		b := make([]uint8, len(f))
		for i, v := range f {
			if v > 0 {
				b[i] = uint8(math.RoundToEven(float64(255 * float64(min(v, 1)))))
			}
		}
		return b, err
	default:
		return nil, fmt.Errorf("%w: images cannot have dtype %v, only Uint8 or Float32", millrace.ErrDType, dt)
	}
}

// sure is the size in bytes up to which room does not compare with the machine's memory.
const sure = 1 << 30

// room rejects images that do not fit in this machine's memory, such as an image.Uniform.
func room(h, w int) error {
	s := ir.Shape{h, w, 4}
	if err := s.Check(); err != nil {
		return fmt.Errorf("%w: %v", millrace.ErrShape, err)
	}
	n := s.Elems()
	if n <= sure {
		return nil
	}
	if limit := hostmem.Limit(sure); int64(n) > limit {
		return fmt.Errorf("%w: an image of %d by %d, host memory is %d bytes", millrace.ErrOutOfMemory, w, h, limit)
	}
	return nil
}

// failed returns a tensor that carries an error with the program's line, or the error of an
// operand.
func failed(op string, err error, ts ...*millrace.Tensor) *millrace.Tensor {
	operands := make([]any, len(ts))
	for i, t := range ts {
		operands[i] = t
	}
	return hostapi.Fail(op, err, operands).(*millrace.Tensor)
}
