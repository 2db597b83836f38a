package imagex_test

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/imagex"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

// drawable is an image with a method Set.
type drawable interface {
	image.Image
	Set(x, y int, c color.Color)
}

// images makes images of all kinds, with bounds that do not begin at 0.
func images() map[string]image.Image {
	r := rand.New(rand.NewPCG(1, 2))
	b := image.Rect(-2, 3, 5, 8)
	all := map[string]image.Image{}
	for name, m := range map[string]drawable{
		"nrgba": image.NewNRGBA(b), "rgba": image.NewRGBA(b), "gray": image.NewGray(b), "gray16": image.NewGray16(b), "cmyk": image.NewCMYK(b),
		"nrgba64": image.NewNRGBA64(b), "rgba64": image.NewRGBA64(b), "alpha": image.NewAlpha(b), "paletted": image.NewPaletted(b, palette.Plan9),
	} {
		for y := b.Min.Y; y < b.Max.Y; y++ {
			for x := b.Min.X; x < b.Max.X; x++ {
				m.Set(x, y, color.NRGBA{uint8(r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32())})
			}
		}
		all[name] = m
		all["part of "+name] = m.(interface {
			SubImage(image.Rectangle) image.Image
		}).SubImage(image.Rect(-1, 4, 3, 7))
	}
	yuv := image.NewYCbCr(b, image.YCbCrSubsampleRatio420)
	for _, p := range [][]uint8{yuv.Y, yuv.Cb, yuv.Cr} {
		for i := range p {
			p[i] = uint8(r.Uint32())
		}
	}
	all["ycbcr"], all["part of ycbcr"] = yuv, yuv.SubImage(image.Rect(-1, 4, 3, 7))
	all["empty"] = image.NewNRGBA(image.Rect(0, 0, 3, 0))
	return all
}

// TestImages: FromImage converts pixels as image/color does, and Image returns the same pixels.
func TestImages(t *testing.T) {
	for name, m := range images() {
		b := m.Bounds()
		for _, o := range []imagex.Options{
			{}, {Last: true}, {Channels: 1}, {Channels: 3, Last: true}, {Channels: 4},
			{DType: millrace.Float32}, {DType: millrace.Float32, Channels: 3, Last: true}, {DType: millrace.Float32, Channels: 4},
		} {
			x := imagex.FromImage(m, o)
			back, err := imagex.Image(x, o)
			if err != nil {
				t.Errorf("%s, %+v: %v", name, o, err)
				continue
			}
			c := o.Channels
			if axis := 0; c == 0 {
				if o.Last {
					axis = 2
				}
				c = x.Dim(axis)
			}
			shape := []int{c, b.Dy(), b.Dx()}
			if o.Last {
				shape = []int{b.Dy(), b.Dx(), c}
			}
			if fmt.Sprint(x.Shape()) != fmt.Sprint(shape) || back.Bounds() != image.Rect(0, 0, b.Dx(), b.Dy()) {
				t.Errorf("%s, %+v: %v, want %v; %v", name, o, x.Shape(), shape, back.Bounds())
				continue
			}
			for y := range b.Dy() {
				for i := range b.Dx() {
					p := color.NRGBAModel.Convert(m.At(b.Min.X+i, b.Min.Y+y)).(color.NRGBA)
					var want color.Color = p
					switch c {
					case 1:
						p.A = 255
						want = color.GrayModel.Convert(p)
					case 3:
						p.A = 255
						want = p
					}
					if got := back.At(i, y); got != want {
						t.Fatalf("%s, %+v at %d, %d: %v, want %v", name, o, i, y, got, want)
					}
				}
			}
		}
	}
	if x := imagex.FromImage(images()["gray"], imagex.Options{}); x.Dim(0) != 1 {
		t.Errorf("gray has %v", x.Shape())
	}
	if x := imagex.FromImage(images()["ycbcr"], imagex.Options{Last: true}); x.Dim(2) != 3 {
		t.Errorf("ycbcr has %v", x.Shape())
	}
}

// TestPremultiplied: colours of image.RGBA are divided by their transparency.
func TestPremultiplied(t *testing.T) {
	m := image.NewRGBA(image.Rect(0, 0, 2, 1))
	m.SetRGBA(0, 0, color.RGBA{64, 32, 0, 128})
	v, err := millrace.Values[uint8](imagex.FromImage(m, imagex.Options{Last: true}))
	if err != nil || fmt.Sprint(v) != "[127 63 0 128 0 0 0 0]" {
		t.Errorf("%v, %v", v, err)
	}
}

func TestFloats(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	x := millrace.FromSlice([]float32{nan, -1, 0, 0.5, 1, 2, inf, -inf, 0.1}, 1, 1, 9)
	m, err := imagex.Image(x, imagex.Options{})
	if err != nil || fmt.Sprint(m.(*image.Gray).Pix) != "[0 0 0 128 255 255 255 0 26]" {
		t.Errorf("%v, %v", m, err)
	}
}

// TestBadInput: an operand that is no image gives an error with the line.
func TestBadInput(t *testing.T) {
	line := func() int { _, _, n, _ := runtime.Caller(1); return n }
	bad := func(err error, n int, want error) {
		t.Helper()
		var op *millrace.OpError
		if !errors.As(err, &op) || !strings.HasSuffix(op.Caller, fmt.Sprintf("imagex_test.go:%d", n)) || want != nil && !errors.Is(err, want) {
			t.Errorf("%v, want %v of line %d", err, want, n)
		}
	}
	m := image.NewGray(image.Rect(0, 0, 2, 2))
	from := imagex.FromImage
	bad(from(nil, imagex.Options{}).Err(), line(), nil)
	bad(from((*image.Gray)(nil), imagex.Options{}).Err(), line(), nil)
	bad(from(m, imagex.Options{Channels: 2}).Err(), line(), millrace.ErrShape)
	bad(from(m, imagex.Options{DType: millrace.Int32}).Err(), line(), millrace.ErrDType)
	bad(from(image.NewUniform(color.Black), imagex.Options{}).Err(), line(), nil)
	bad(imagex.FromImageOn(nil, m, imagex.Options{}).Err(), line(), nil)
	for o, want := range map[imagex.Options]error{
		{DType: millrace.Float32}: millrace.ErrDType, {DType: millrace.Int32}: millrace.ErrDType,
		{Channels: 3}: millrace.ErrShape, {Channels: 2}: millrace.ErrShape, {Last: true}: millrace.ErrShape,
	} {
		_, err := imagex.Image(millrace.Ones(millrace.Uint8, 1, 2, 2), o)
		bad(err, line()-1, want)
	}
	out := func(x *millrace.Tensor) error { _, err := imagex.Image(x, imagex.Options{}); return err }
	for _, c := range []struct {
		x    *millrace.Tensor
		want error
	}{
		{millrace.Ones(millrace.Bool, 3, 2, 2), millrace.ErrDType}, {millrace.Ones(millrace.Float16, 3, 2, 2), millrace.ErrDType}, {millrace.Ones(millrace.Float64, 3, 2, 2), millrace.ErrDType},
		{millrace.Ones(millrace.Float32), millrace.ErrShape}, {millrace.Ones(millrace.Float32, 1, 3, 2, 2), millrace.ErrShape},
		{nil, nil}, {new(millrace.Tensor), nil}, {millrace.Ones(millrace.Uint8, 2, 2), millrace.ErrShape},
		{millrace.Ones(millrace.Uint8, 2, 2, 3), millrace.ErrShape}, {millrace.Ones(millrace.Int32, 3, 2, 2), millrace.ErrDType},
		{millrace.Ones(millrace.Uint8, 2).Add(millrace.Ones(millrace.Uint8, 3)), millrace.ErrShape},
	} {
		if err := out(c.x); err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), "imagex_test.go:") {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
}

// An image made brighter.
func Example() {
	m := image.NewGray(image.Rect(0, 0, 2, 1))
	m.Pix[0], m.Pix[1] = 40, 200
	x := imagex.FromImage(m, imagex.Options{DType: millrace.Float32})
	bright, err := imagex.Image(x.MulScalar(1.5), imagex.Options{})
	fmt.Println(bright.(*image.Gray).Pix, err)
	// Output: [60 255] <nil>
}
