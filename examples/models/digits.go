package models

import "github.com/millrace-go/millrace/nn"

// NewDigits makes a small convolutional network for gray images of 8 by 8 pixels, (n, 1, 8,
// 8), of ten classes.
func NewDigits(opts ...nn.Option) nn.Sequential {
	conv := func(in, out int) *nn.Conv {
		return nn.NewConv2d(in, out, 3, append([]nn.Option{nn.Pad(1), nn.NoBias()}, opts...)...)
	}
	return nn.NewSequential(
		conv(1, 32), nn.NewBatchNorm2d(32, opts...), nn.ReLU{},
		conv(32, 64), nn.NewBatchNorm2d(64, opts...), nn.ReLU{},
		nn.NewMaxPool2d(2),
		nn.Flatten{Start: 1},
		nn.NewDropout(0.3),
		nn.NewLinear(64*4*4, 128, opts...), nn.ReLU{},
		nn.NewLinear(128, 10, opts...),
	)
}
