package main

import "github.com/millrace-go/millrace"

// convSuite convolves images into twice as many channels, followed by a bias and a ReLU.
var convSuite = &Suite{
	name: "conv", about: "2-D convolutions of 3×3 and 1×1, with bias and ReLU behind", shape: shape{8, 64, 56, 56}, sizes: "batch,channels,height,width",
	variants: always("3x3", "1x1"), modes: allModes, problem: convProblem,
}

func convProblem(variant string, s shape, as *arrays) (*problem, error) {
	side, channels, outputs := int(variant[0]-'0'), s[1], 2*s[1]
	out := shape{s[0], outputs, s[2], s[3]}
	if err := fitsMemory(out, shape{outputs, channels, side, side}); err != nil {
		return nil, err
	}
	x := as.normal("x", 1, s...)
	k := as.weight("kernels", channels*side*side, outputs, channels, side, side)
	b := as.normal("bias", 0.5, outputs, 1, 1)
	pad := [2]int{side / 2, side / 2} // the result is as large as the image
	opt := millrace.ConvOptions{Padding: [][2]int{pad, pad}}
	return &problem{
		shape: s, inputs: []*array{x, k, b}, intermediate: out.len(),
		flops: 2 * float64(out.len()) * float64(channels*side*side),
		program: func(x []*millrace.Tensor) *millrace.Tensor {
			return x[0].Conv(x[1], opt).Add(x[2]).Relu()
		},
		oracle: convOracle(x, k, b),
	}, nil
}

// convOracle computes one channel of one image at a time.
func convOracle(x, k, b *array) *oracle {
	channels, height, width := x.shape[1], x.shape[2], x.shape[3]
	outputs, side := k.shape[0], k.shape[2]
	cost := float64(height * width * channels * side * side)
	return &oracle{units: x.shape[0] * outputs, size: height * width, cost: cost, unit: func(u int, out []float64) {
		image, o := u/outputs, u%outputs
		for c := range channels {
			for p := range side * side {
				f := k.at((o*channels+c)*side*side + p)
				plane := (image*channels + c) * height * width
				addShifted(out, f, x, plane, height, width, p/side-side/2, p%side-side/2)
			}
		}
		for i := range out {
			out[i] = max(0, out[i]+b.at(o))
		}
	}}
}

// addShifted adds a plane of x to out, multiplied by f and shifted by dy and dx. Zeros are
// shifted in.
func addShifted(out []float64, f float64, x *array, plane, height, width, dy, dx int) {
	for i := max(0, -dy); i < min(height, height-dy); i++ {
		for j := max(0, -dx); j < min(width, width-dx); j++ {
			out[i*width+j] += float64(f * x.at(plane+(i+dy)*width+j+dx))
		}
	}
}
