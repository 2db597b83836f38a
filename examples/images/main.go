// Images blurs a picture, finds its edges, and makes a thumbnail: convolutions,
// elementwise operations and Resize between image/png and tensors.
//
//	go run ./examples/images -o out picture.png
//
// Without a picture it draws one.
package main

import (
	"flag"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg"
	"image/png"
	"log"
	"math"
	"os"
	"path/filepath"

	"github.com/millrace-go/millrace"
)

func main() {
	out := flag.String("o", ".", "folder to write blurred.png, edges.png and small.png to; it is made if need be")
	flag.Parse()
	if err := run(flag.Arg(0), *out); err != nil {
		log.Fatal(err)
	}
}

func run(file, out string) error {
	x, err := load(file)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	for name, y := range map[string]*millrace.Tensor{
		"blurred.png": blur(x, 3),
		"edges.png":   edges(x),
		"small.png":   millrace.Resize(blur(x, 1), millrace.ResizeOptions{Mode: millrace.ResizeCubic}, 48, 64),
	} {
		if err := save(filepath.Join(out, name), y); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Println("wrote", filepath.Join(out, name))
	}
	return nil
}

// blur is by a Gaussian of standard deviation sigma, along rows and then along columns,
// of x of shape (3, 1, height, width).
func blur(x *millrace.Tensor, sigma float64) *millrace.Tensor {
	r := int(3 * sigma)
	at := millrace.Arange(millrace.Float32, float64(-r), float64(r+1), 1)
	bell := at.Square().MulScalar(-1 / (2 * sigma * sigma)).Exp()
	bell = bell.Div(bell.Sum())
	n := 2*r + 1
	x = x.Conv(bell.Reshape(1, 1, n, 1), millrace.ConvOptions{Padding: [][2]int{{r, r}, {0, 0}}})
	return x.Conv(bell.Reshape(1, 1, 1, n), millrace.ConvOptions{Padding: [][2]int{{0, 0}, {r, r}}})
}

// edges is how much neighbours differ, by Sobel's kernels in both directions.
func edges(x *millrace.Tensor) *millrace.Tensor {
	sobel := millrace.FromSlice([]float32{-1, 0, 1, -2, 0, 2, -1, 0, 1}, 1, 1, 3, 3)
	around := millrace.ConvOptions{Padding: [][2]int{{1, 1}, {1, 1}}}
	across, down := x.Conv(sobel, around), x.Conv(sobel.Transpose(2, 3), around)
	return across.Square().Add(down.Square()).Sqrt().MulScalar(0.25)
}

// load is a picture as a tensor of shape (3, 1, height, width), from 0 to 1: its colours
// are a batch of gray pictures.
func load(file string) (*millrace.Tensor, error) {
	picture := drawn()
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if picture, _, err = image.Decode(f); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	b := picture.Bounds()
	w, h := b.Dx(), b.Dy()
	bytes := make([]uint8, 0, 3*w*h)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.NRGBAModel.Convert(picture.At(x, y)).(color.NRGBA)
			bytes = append(bytes, c.R, c.G, c.B)
		}
	}
	x := millrace.FromSlice(bytes, h, w, 3).Cast(millrace.Float32).MulScalar(1.0 / 255)
	return x.Permute(2, 0, 1).Unsqueeze(1), nil
}

// drawn is a picture for who has none: a disc before stripes.
func drawn() image.Image {
	p := image.NewNRGBA(image.Rect(0, 0, 320, 240))
	for y := range 240 {
		for x := range 320 {
			c := color.NRGBA{uint8(40 + 60*(x/20%2)), 80, 140, 255}
			if math.Hypot(float64(x-160), float64(y-120)) < 70 {
				c = color.NRGBA{240, 200, 60, 255}
			}
			p.Set(x, y, c)
		}
	}
	return p
}

// save writes a tensor as load makes them.
func save(file string, x *millrace.Tensor) error {
	h, w := x.Dim(2), x.Dim(3)
	v, err := millrace.Values[uint8](x.Squeeze(1).Permute(1, 2, 0).ClampScalar(0, 1).MulScalar(255).Round().Cast(millrace.Uint8))
	if err != nil {
		return err
	}
	p := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range h * w {
		p.SetNRGBA(i%w, i/w, color.NRGBA{v[3*i], v[3*i+1], v[3*i+2], 255})
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := png.Encode(f, p); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
