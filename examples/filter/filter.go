package main

import "github.com/millrace-go/millrace"

// The filter is elementwise work on shifted views. It becomes two kernels: one puts the
// border around the image, the other does all the rest and writes what the texture is
// filled from.

// edges darkens an image and has its edges shine: the length of Sobel's gradient of
// each channel, times gain, is added. image is (height, width, 4), from 0 to 1.
func edges(image *millrace.Tensor, gain float64) *millrace.Tensor {
	h, w := image.Dim(0), image.Dim(1)
	around := millrace.Padding{Before: 1, After: 1}
	padded := image.Pad(0, around, around, millrace.Padding{})
	at := func(dy, dx int) *millrace.Tensor {
		return padded.Slice(millrace.R(1+dy, 1+dy+h), millrace.R(1+dx, 1+dx+w))
	}
	// Of one direction the difference between both sides, each a sum of three.
	side := func(y0, x0, y1, x1, y2, x2 int) *millrace.Tensor {
		return at(y0, x0).Add(at(y1, x1).MulScalar(2)).Add(at(y2, x2))
	}
	dx := side(-1, 1, 0, 1, 1, 1).Sub(side(-1, -1, 0, -1, 1, -1))
	dy := side(1, -1, 1, 0, 1, 1).Sub(side(-1, -1, -1, 0, -1, 1))
	length := dx.Square().Add(dy.Square()).Sqrt()
	return image.MulScalar(0.4).Add(length.MulScalar(gain)).ClampScalar(0, 1)
}
