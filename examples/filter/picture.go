package main

import (
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg"
	_ "image/png"
	"math"
	"os"
)

// pixels are the channels of a picture, from 0 to 1, row by row from the top.
func pixels(m image.Image) (data []float32, height, width int) {
	b := m.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
			for _, v := range [4]uint8{c.R, c.G, c.B, c.A} {
				data = append(data, float32(v)/255)
			}
		}
	}
	return data, b.Dy(), b.Dx()
}

// load reads a picture; without a name it paints one.
func load(name string) (image.Image, error) {
	if name == "" {
		return paint(256, 256), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, _, err := image.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// paint makes rings and squares, which have edges of all directions.
func paint(height, width int) image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			r := math.Hypot(float64(x-width/2), float64(y-height/2))
			c := color.NRGBA{R: uint8(128 + 127*math.Sin(r/9)), G: uint8(x * 255 / width), B: 40, A: 255}
			if x/32%2 == y/32%2 {
				c.B = 160
			}
			m.SetNRGBA(x, y, c)
		}
	}
	return m
}
