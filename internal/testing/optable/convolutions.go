package optable

import (
	"github.com/millrace-go/millrace"
)

var convolutions = []Op{
	{Name: "Tensor.Conv", Example: func(o In) *T { return o.image.Conv(o.kernel, millrace.ConvOptions{}) },
		Grads: []Grad{
			{"conv", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{}) }), over{in(-1, 1, 2, 3, 5, 4), in(-1, 1, 2, 3, 3, 2)}},
			{"convopts", two(func(x, k *T) *T {
				return x.Conv(k, millrace.ConvOptions{Stride: []int{2, 3}, Dilation: []int{2, 1}, Padding: [][2]int{{1, 2}, {0, 1}}, Groups: 2})
			}), over{in(-1, 1, 2, 4, 7, 8), in(-1, 1, 6, 2, 3, 2)}},
			{"convrest", two(func(x, k *T) *T { // elements that no kernel reaches
				return x.Conv(k, millrace.ConvOptions{Stride: []int{2, 3}, Padding: [][2]int{{1, 1}, {0, 1}}})
			}), over{in(-1, 1, 2, 2, 6, 7), in(-1, 1, 3, 2, 3, 2)}},
			{"convgroups", two(func(x, k *T) *T {
				return x.Conv(k, millrace.ConvOptions{Stride: []int{2, 2}, Dilation: []int{2, 3}, Padding: [][2]int{{2, 1}, {3, 0}}, Groups: 2})
			}), over{in(-1, 1, 2, 4, 6, 7), in(-1, 1, 6, 2, 2, 2)}},
			{"convplaces", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Stride: []int{3, 2}}) }), over{in(-1, 1, 2, 2, 6, 6), in(-1, 1, 3, 2, 1, 1)}},
			{"convnone", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Stride: []int{2}}) }), over{in(-1, 1, 0, 2, 6), in(-1, 1, 3, 2, 3)}},
			{"convpadding", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Padding: [][2]int{{2, 1}}}) }), over{in(-1, 1, 2, 2, 0), in(-1, 1, 3, 2, 2)}},
			{"convdepth", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Groups: 3, Padding: [][2]int{{1, 1}, {1, 1}}}) }), over{in(-1, 1, 2, 3, 4, 4), in(-1, 1, 3, 1, 3, 3)}},
			{"convcrop", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Stride: []int{3}, Padding: [][2]int{{3, 3}}}) }), over{in(-1, 1, 2, 2, 4), in(-1, 1, 3, 2, 2)}},
			{"convdepthwise", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Groups: 3}) }), over{in(-1, 1, 2, 3, 5), in(-1, 1, 6, 1, 2)}},
		},
		Bad: []Bad{
			{"conv", shape, func(o *Given) (*T, string) { return o.f.Conv(o.f, millrace.ConvOptions{}), here() }},
			{"conv", shape, func(o *Given) (*T, string) { return o.image.Conv(o.f, millrace.ConvOptions{}), here() }},
			{"conv", dtype, func(o *Given) (*T, string) {
				return o.image.Conv(o.kernels.Cast(millrace.Float64), millrace.ConvOptions{}), here()
			}},
			{"conv", shape, func(o *Given) (*T, string) { return o.image.Conv(o.kernels, millrace.ConvOptions{Groups: 2}), here() }},
			{"conv", shape, func(o *Given) (*T, string) { return o.image.Conv(o.kernels, millrace.ConvOptions{Groups: -1}), here() }},
			{"conv", shape, func(o *Given) (*T, string) { return o.image.Conv(o.kernels, millrace.ConvOptions{Groups: 3}), here() }},
			{"conv", shape, func(o *Given) (*T, string) {
				return o.image.Conv(o.kernels, millrace.ConvOptions{Stride: []int{1}}), here()
			}},
			{"conv", shape, func(o *Given) (*T, string) {
				return o.image.Conv(o.kernels, millrace.ConvOptions{Stride: []int{1, -1}}), here()
			}},
			{"conv", shape, func(o *Given) (*T, string) {
				return o.image.Conv(o.kernels, millrace.ConvOptions{Dilation: []int{3, 3}}), here()
			}},
			{"conv", shape, func(o *Given) (*T, string) {
				return o.image.Conv(o.kernels, millrace.ConvOptions{Padding: [][2]int{{-1, 0}, {0, 0}}}), here()
			}},
			{"conv", shape, func(o *Given) (*T, string) {
				return o.image.Conv(o.kernels, millrace.ConvOptions{OutputPadding: []int{1, 1}}), here()
			}},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return x.Conv(o.f, millrace.ConvOptions{}) }},
			{Call: func(o *Given, x *T) *T { return o.f.Conv(x, millrace.ConvOptions{}) }},
			{Op: "conv", Call: func(o *Given, x *T) *T { return o.two.Conv(x, millrace.ConvOptions{}) }},
		},
	},
	{Name: "Tensor.ConvTranspose", Quiet: true, Example: func(o In) *T { return o.image.ConvTranspose(o.kernel, millrace.ConvOptions{Stride: []int{2, 2}}) },
		Grads: []Grad{
			{"convtranspose", two(func(x, k *T) *T {
				return x.ConvTranspose(k, millrace.ConvOptions{Stride: []int{2, 1}, Padding: [][2]int{{1, 0}, {0, 1}}, OutputPadding: []int{1, 0}})
			}), over{in(-1, 1, 2, 3, 3, 4), in(-1, 1, 3, 2, 3, 2)}},
			{"convtransposegroups", two(func(x, k *T) *T { return x.ConvTranspose(k, millrace.ConvOptions{Stride: []int{2}, Groups: 2}) }), over{in(-1, 1, 2, 4, 3), in(-1, 1, 4, 3, 3)}},
			{"convtransposejoint", two(func(x, k *T) *T {
				return x.ConvTranspose(k, millrace.ConvOptions{Stride: []int{2, 2}, Padding: [][2]int{{1, 1}, {0, 2}}})
			}), over{in(-1, 1, 2, 2, 3, 2), in(-1, 1, 2, 2, 4, 4)}},
			{"convtransposebehind", two(func(x, k *T) *T { // output padding of more than a stride
				return x.ConvTranspose(k, millrace.ConvOptions{Stride: []int{2}, Dilation: []int{2}, OutputPadding: []int{3}})
			}), over{in(-1, 1, 2, 2, 3), in(-1, 1, 2, 3, 2)}},
			{"convtransposedilated", two(func(x, k *T) *T {
				return x.ConvTranspose(k, millrace.ConvOptions{Stride: []int{2}, Dilation: []int{3}, Padding: [][2]int{{2, 1}}, OutputPadding: []int{1}})
			}), over{in(-1, 1, 2, 3, 4), in(-1, 1, 3, 2, 3)}},
			{"convtranspose3d", two(func(x, k *T) *T {
				return x.ConvTranspose(k, millrace.ConvOptions{Stride: []int{2, 1, 2}, Padding: [][2]int{{1, 0}, {0, 1}, {1, 1}}, OutputPadding: []int{0, 0, 1}, Groups: 2})
			}), over{in(-1, 1, 1, 2, 3, 2, 2), in(-1, 1, 2, 1, 3, 2, 2)}},
		},
		Bad: []Bad{
			{"convtranspose", shape, func(o *Given) (*T, string) { return o.image.ConvTranspose(o.kernels, millrace.ConvOptions{}), here() }},
			{"convtranspose", shape, func(o *Given) (*T, string) {
				return millrace.Ones(f32, 1, 6, 2, 2).ConvTranspose(o.kernels, millrace.ConvOptions{Padding: [][2]int{{4, 4}, {0, 0}}}), here()
			}},
			{"convtranspose", shape, func(o *Given) (*T, string) {
				return millrace.Ones(f32, 1, 6, 2, 2).ConvTranspose(o.kernels, millrace.ConvOptions{OutputPadding: []int{-1, 0}}), here()
			}},
			{"convtranspose", shape, func(o *Given) (*T, string) {
				return millrace.Ones(f32, 1, 6, 0, 2).ConvTranspose(o.kernels, millrace.ConvOptions{}), here()
			}},
			{"convtranspose", shape, func(o *Given) (*T, string) { return o.volume.ConvTranspose(o.cubes, millrace.ConvOptions{}), here() }},
			{"convtranspose", shape, func(o *Given) (*T, string) {
				return o.volume.ConvTranspose(o.cubes.Slice(millrace.R(0, 4)), millrace.ConvOptions{Padding: [][2]int{{0, 0}, {4, 4}, {0, 0}}}), here()
			}},
			{"convtranspose", shape, func(o *Given) (*T, string) {
				return o.volume.ConvTranspose(o.cubes.Slice(millrace.R(0, 4)), millrace.ConvOptions{OutputPadding: []int{0, -1, 0}}), here()
			}},
			{"convtranspose", shape, func(o *Given) (*T, string) {
				return o.volume.Unsqueeze(0).ConvTranspose(o.cubes.Unsqueeze(0), millrace.ConvOptions{}), here()
			}},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return o.f.ConvTranspose(x, millrace.ConvOptions{}) }}},
	},
	{Name: "Conv1d", Func: millrace.Conv1d,
		Example: func(o In) *T {
			return millrace.Conv1d(o.signal, o.taps, millrace.ConvOptions{})
		},
		Grads: []Grad{
			{"conv1d", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Stride: []int{2}}) }), over{in(-1, 1, 2, 3, 8), in(-1, 1, 4, 3, 3)}},
		},
		Peers: []Peer{
			{Name: "conv1d", Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.Conv1d(x[0], x[1], convolved(c)))
			}},
		},
		Bad: []Bad{{"conv1d", shape, func(o *Given) (*T, string) { return millrace.Conv1d(o.image, o.image, millrace.ConvOptions{}), here() }}},
	},
	{Name: "Conv2d", Func: millrace.Conv2d, Example: func(o In) *T { return millrace.Conv2d(o.image, o.kernel, millrace.ConvOptions{}) },
		Peers: []Peer{
			{Name: "conv2d", Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.Conv2d(x[0], x[1], convolved(c)))
			}},
		},
		Bad: []Bad{{"conv2d", shape, func(o *Given) (*T, string) { return millrace.Conv2d(o.volume, o.cubes, millrace.ConvOptions{}), here() }}},
	},
	{Name: "Conv3d", Func: millrace.Conv3d,
		Example: func(o In) *T {
			return millrace.Conv3d(o.volume, o.block, millrace.ConvOptions{})
		},
		Grads: []Grad{
			{"conv3d", two(func(x, k *T) *T {
				return millrace.Conv3d(x, k, millrace.ConvOptions{Stride: []int{2, 1, 1}, Padding: [][2]int{{1, 1}, {0, 1}, {1, 0}}, Groups: 2})
			}), over{in(-1, 1, 1, 2, 3, 2, 3), in(-1, 1, 2, 1, 2, 2, 2)}},
		},
		Peers: []Peer{
			{Name: "conv3d", Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.Conv3d(x[0], x[1], convolved(c)))
			}},
		},
		Kernels: []Kernel{
			{"conv3d", 2, func(p millrace.Place, x, _ Maker) *T {
				return millrace.Conv3d(x().Reshape(1, 4, 4, 16, 16), millrace.OnesOn(p, millrace.Float32, 2, 4, 2, 3, 3), millrace.ConvOptions{})
			}},
		},
		Bad: []Bad{
			{"conv3d", shape, func(o *Given) (*T, string) { return millrace.Conv3d(o.image, o.image, millrace.ConvOptions{}), here() }},
			{"conv", shape, func(o *Given) (*T, string) { return millrace.Conv3d(o.volume, o.image, millrace.ConvOptions{}), here() }},
			{"conv", dtype, func(o *Given) (*T, string) {
				return millrace.Conv3d(o.volume, o.cubes.Cast(millrace.Float64), millrace.ConvOptions{}), here()
			}},
			{"conv", shape, func(o *Given) (*T, string) {
				return millrace.Conv3d(o.volume, o.cubes, millrace.ConvOptions{Stride: []int{1, 1}}), here()
			}},
			{"conv", shape, func(o *Given) (*T, string) {
				return millrace.Conv3d(o.volume, o.cubes, millrace.ConvOptions{Dilation: []int{3, 1, 1}}), here()
			}},
			{"conv", shape, func(o *Given) (*T, string) {
				return millrace.Conv3d(o.volume, o.cubes, millrace.ConvOptions{Groups: 3}), here()
			}},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return millrace.Conv3d(x, o.cubes, millrace.ConvOptions{}) }},
			{Call: func(o *Given, x *T) *T { return millrace.Conv3d(o.volume, x, millrace.ConvOptions{}) }},
		},
	},
}

var windows = []Op{
	{Name: "Tensor.MaxPool", Example: func(o In) *T { return o.v.MaxPool(millrace.Window{Size: 2, Stride: 2}) },
		Grads: []Grad{
			{"maxpoolover", one(func(x *T) *T { return x.MaxPool(w(3, 2, 1, 1, 1), w(3, 2, 1, 1, 0)).Square() }), over{apart(-1, 1, 2, 2, 5, 6)}},
			{"maxpooltiles", one(func(x *T) *T { return x.MaxPool(w(2, 2, 1, 0, 0), w(2, 2, 1, 0, 0)).Square() }), over{apart(-1, 1, 2, 2, 5, 4)}},
			{"maxpool", one(func(x *T) *T { return x.MaxPool(w(2, 2, 1, 0, 0), w(3, 1, 1, 1, 1)).Square() }), over{apart(-1, 1, 2, 2, 4, 5)}},
			{"rank8pool", one(func(x *T) *T { return x.MaxPool(w(2, 1, 1, 0, 0), w(1, 1, 1, 0, 0), w(2, 1, 1, 0, 0)).Square() }), over{apart(-1, 1, 1, 2, 1, 2, 1, 3, 1, 2)}},
			{"windowsone", one(func(x *T) *T { return x.MaxPool(w(1, 2, 1, 0, 0)).Square() }), a34},
		},
		Points: []Point{{"MaxPool 2", one(func(x *T) *T { return x.MaxPool(millrace.Window{Size: 2}) })}},
		Bad: []Bad{
			{"maxpool", shape, func(o *Given) (*T, string) { return o.f.MaxPool(millrace.Window{Size: 4}), here() }},
			{"maxpool", shape, func(o *Given) (*T, string) {
				return o.f.MaxPool(millrace.Window{Size: pow2(33), Dilation: pow2(31)}), here()
			}},
			{"maxpool", shape, func(o *Given) (*T, string) {
				return o.f.Slice(millrace.All, millrace.R(0, 0)).MaxPool(millrace.Window{Size: 2}), here()
			}},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return x.MaxPool(millrace.Window{}) }},
			{Op: "maxpool", Call: func(o *Given, x *T) *T { return x.MaxPool(millrace.Window{Size: 2}) }},
		},
	},
	{Name: "Tensor.AvgPool", Example: func(o In) *T { return o.v.AvgPool(millrace.Window{Size: 2, Stride: 2}) },
		Grads: []Grad{
			{"avgpool", one(func(x *T) *T { return x.AvgPool(w(2, 2, 1, 1, 0), w(3, 1, 1, 1, 1)).Square() }), over{in(-1, 1, 2, 4, 5)}},
			{"avgpoolend", one(func(x *T) *T { return x.AvgPool(w(3, 2, 1, 2, 2)).Square() }), a34},
		},
		Bad: []Bad{
			{"avgpool", shape, func(o *Given) (*T, string) { return o.f.AvgPool(millrace.Window{Size: 4}), here() }},
			{"avgpool", shape, func(o *Given) (*T, string) {
				return o.f.Slice(millrace.All, millrace.R(0, 0)).AvgPool(millrace.Window{Size: 2}), here()
			}},
			{"avgpool", shape, func(o *Given) (*T, string) {
				return o.v.AvgPool(millrace.Window{Size: 1}, millrace.Window{Size: 1}), here()
			}},
			{"avgpool", dtype, func(o *Given) (*T, string) { return o.i.AvgPool(millrace.Window{Size: 1}), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return x.AvgPool(millrace.Window{}) }},
			{Op: "avgpool", Call: func(o *Given, x *T) *T { return x.AvgPool(millrace.Window{Size: 2}) }},
		},
	},
	{Name: "Tensor.ReduceWindow", Example: func(o In) *T { return o.v.ReduceWindow(millrace.ReduceSum, millrace.Window{Size: 2, Stride: 2}) },
		Grads: []Grad{
			{"minwindow", one(func(x *T) *T { return x.ReduceWindow(millrace.ReduceMin, w(2, 1, 2, 1, 0), w(2, 2, 1, 0, 0)) }), a34},
			{"prodwindow", one(func(x *T) *T { return x.ReduceWindow(millrace.ReduceProd, w(2, 1, 1, 0, 0), w(2, 2, 1, 1, 0)) }), a34},
			{"sumwindow", one(func(x *T) *T { return x.ReduceWindow(millrace.ReduceSum, w(2, 1, 1, 1, 0), w(2, 2, 1, 0, 0)).Square() }), a34},
		},
		Points: []Point{{"product of windows of 2", one(func(x *T) *T { return x.ReduceWindow(millrace.ReduceProd, millrace.Window{Size: 2}) })}},
		Bad: []Bad{
			{"reducewindow", shape, func(o *Given) (*T, string) { return o.f.ReduceWindow(9, millrace.Window{Size: 1}), here() }},
			{"reducewindow", dtype, func(o *Given) (*T, string) {
				return o.b.ReduceWindow(millrace.ReduceSum, millrace.Window{Size: 1}), here()
			}},
			{"reducewindow", shape, func(o *Given) (*T, string) {
				return o.v.ReduceWindow(millrace.ReduceSum, millrace.Window{Size: 1}, millrace.Window{Size: 1}), here()
			}},
			{"reducewindow", shape, func(o *Given) (*T, string) {
				return o.f.Slice(millrace.R(0, 0)).ReduceWindow(millrace.ReduceSum, millrace.Window{Size: 2}, millrace.Window{Size: 1}), here()
			}},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.ReduceWindow(9) }}},
	},
}
