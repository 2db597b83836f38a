package main

import "github.com/millrace-go/millrace"

const height, width = 240, 320

// photograph is a picture of bytes: a gradient with circles on it.
func photograph() []uint8 {
	p := make([]uint8, 0, height*width*3)
	for y := range height {
		for x := range width {
			ring := uint8((x*x + y*y) / 97)
			p = append(p, uint8(x), uint8(y)^ring, ring)
		}
	}
	return p
}

// filter takes bytes to a sharpened and graded picture of floats.
func filter(bytes *millrace.Tensor) *millrace.Tensor {
	x := bytes.Cast(millrace.Float32).DivScalar(255)
	linear := x.PowScalar(2.2)
	sharp := linear.Add(linear.Sub(blur(linear)).MulScalar(0.8))
	bright := sharp.MulScalar(1.15).AddScalar(0.02).ClampScalar(0, 1)
	grey := bright.MeanKeep(2)
	vivid := grey.Add(bright.Sub(grey).MulScalar(1.3)).ClampScalar(0, 1)
	return vivid.PowScalar(1 / 2.2)
}

// blur is the binomial filter of three taps along both axes.
func blur(x *millrace.Tensor) *millrace.Tensor {
	for axis := range 2 {
		before, after := x.Roll(1, axis), x.Roll(-1, axis)
		x = before.Add(after).MulScalar(0.25).Add(x.MulScalar(0.5))
	}
	return x
}

// tile is the side of the squares that the classifier looks at.
const tile = 40

// model is a layer and a softmax head.
type model struct{ hidden, bias, head *millrace.Tensor }

func newModel(p millrace.Place) *model {
	features := height / tile * width / tile * 3
	return &model{
		hidden: millrace.NormalOn(p, millrace.Float32, 1, features, 64).MulScalar(0.1),
		bias:   millrace.NormalOn(p, millrace.Float32, 2, 64),
		head:   millrace.NormalOn(p, millrace.Float32, 3, 64, 10).MulScalar(0.3),
	}
}

// classify is the probability of each of ten classes.
func (m *model) classify(picture *millrace.Tensor) *millrace.Tensor {
	tiles := picture.Reshape(height/tile, tile, width/tile, tile, 3).Mean(1, 3)
	x := tiles.Reshape(1, tiles.Len())
	x = x.Sub(x.MeanKeep(1)).Mul(x.Std(1, 1).AddScalar(1e-3).Recip())
	return x.MatMul(m.hidden).Add(m.bias).Gelu().MatMul(m.head).Softmax(1)
}
