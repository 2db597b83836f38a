package optable

import (
	"github.com/millrace-go/millrace"
)

var transforms = []Op{
	{Name: "FFT", Func: millrace.FFT, MayBeNil: true, Example: func(o In) (*T, *T) { return millrace.FFT(o.v, o.v, 0) },
		Grads: []Grad{
			{"fft", two(func(x, y *T) *T { re, im := millrace.FFT(x, y, 1); return re.Square().Mul(im) }), over{in(-1, 1, 2, 6), in(-1, 1, 2, 6)}},
			{"fftsteps", one(func(x *T) *T { re, im := millrace.RFFT(x, 0); return re.Mul(im) }), over{in(-1, 1, 66)}},
		},
		Peers: []Peer{
			{Name: "fft", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.FFT(x[0], x[1], c.N("axis")))
			}},
		},
		Bad: []Bad{
			{"fft", dtype, func(o *Given) (*T, string) { return first(millrace.FFT(o.i, o.i, 0)), here() }},
			{"fft", dtype, func(o *Given) (*T, string) { return second(millrace.FFT(o.f, o.f.Cast(millrace.Float64), 0)), here() }},
			{"fft", shape, func(o *Given) (*T, string) { return second(millrace.FFT(o.f, o.f.T(), 0)), here() }},
			{"fft", shape, func(o *Given) (*T, string) { return first(millrace.FFT(o.f, nil, 2)), here() }},
			{"fft", shape, func(o *Given) (*T, string) {
				return first(millrace.FFT(o.pair.Slice(millrace.At(0)).Expand(1<<28+1), nil, 0)), here()
			}},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return second(millrace.FFT(x, o.pair, 0)) }},
			{Call: func(o *Given, x *T) *T {
				if x == nil {
					return first(millrace.FFT(x, x, 0))
				}
				return first(millrace.FFT(o.pair, x, 0))
			}},
		},
		Several: []Several{{"fft", func(x *T) []*T { return list(millrace.FFT(x, x, 7)) }}},
	},
	{Name: "IFFT", Func: millrace.IFFT, MayBeNil: true, Example: func(o In) (*T, *T) { return millrace.IFFT(o.v, o.v, 0) },
		Peers: []Peer{
			{Name: "ifft", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.IFFT(x[0], x[1], c.N("axis")))
			}},
		},
		Bad:     []Bad{{"ifft", shape, func(o *Given) (*T, string) { return first(millrace.IFFT(o.hollow, o.hollow, 1)), here() }}},
		Several: []Several{{"ifft", func(x *T) []*T { return list(millrace.IFFT(x, nil, 7)) }}},
	},
	{Name: "RFFT", Func: millrace.RFFT, Example: func(o In) (*T, *T) { return millrace.RFFT(o.v, 0) },
		Peers: []Peer{{Name: "rfft", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T { return list(millrace.RFFT(x[0], c.N("axis"))) }}},
		Kernels: []Kernel{
			{"fft of 64", 2, func(_ millrace.Place, x, _ Maker) *T {
				re, im := millrace.RFFT(x(), 1)
				return re.Square().Add(im.Square())
			}},
		},
		Bad: []Bad{
			{"rfft", shape, func(o *Given) (*T, string) { return first(millrace.RFFT(o.f, -3)), here() }},
			{"rfft", dtype, func(o *Given) (*T, string) { return first(millrace.RFFT(o.i, 0)), here() }},
		},
		Passes:  []Pass{{Call: func(o *Given, x *T) *T { return first(millrace.RFFT(x, 0)) }}},
		Several: []Several{{"rfft", func(x *T) []*T { return list(millrace.RFFT(x, 7)) }}},
	},
	{Name: "IRFFT", Func: millrace.IRFFT, Example: func(o In) *T { return millrace.IRFFT(o.b, o.b, 3, 0) },
		Grads: []Grad{{"irfft", two(func(x, y *T) *T { return millrace.IRFFT(x, y, 6, 0).Square() }), over{in(-1, 1, 4, 2), in(-1, 1, 4, 2)}}},
		Peers: []Peer{
			{Name: "irfft", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.IRFFT(x[0], x[1], c.N("n"), c.N("axis")))
			}},
		},
		Bad: []Bad{
			{"irfft", shape, func(o *Given) (*T, string) {
				x := o.pair.Slice(millrace.At(0)).Expand(pow2(40))
				return millrace.IRFFT(x, x, pow2(41)-2, 0), here()
			}},
			{"irfft", shape, func(o *Given) (*T, string) { return millrace.IRFFT(o.f, o.f, 3, 1), here() }},
			{"irfft", shape, func(o *Given) (*T, string) { return millrace.IRFFT(o.f, o.f, -1, 1), here() }},
			{"irfft", nil, func(o *Given) (*T, string) { return millrace.IRFFT(o.f, nil, 4, 1), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return millrace.IRFFT(o.pair, x, 2, 0) }}},
	},
	{Name: "FFTN", Func: millrace.FFTN, MayBeNil: true, Example: func(o In) (*T, *T) { return millrace.FFTN(o.a, o.a) },
		Grads: []Grad{{"fftn", two(func(x, y *T) *T { re, im := millrace.FFTN(x, y); return re.Square().Mul(im) }), over{in(-1, 1, 2, 3), in(-1, 1, 2, 3)}}},
		Peers: []Peer{
			{Name: "fftn", Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.FFTN(x[0], x[1], c.List("axes")...))
			}},
		},
		Bad: []Bad{
			{"fftn", shape, func(o *Given) (*T, string) { return first(millrace.FFTN(o.f, o.f, 0, -2)), here() }},
			{"fftn", dtype, func(o *Given) (*T, string) { return second(millrace.FFTN(o.f, o.i, 0)), here() }},
			{"fftn", shape, func(o *Given) (*T, string) { return second(millrace.FFTN(o.hollow, nil)), here() }},
		},
		Passes:  []Pass{{Call: func(o *Given, x *T) *T { return second(millrace.FFTN(x, o.pair)) }}},
		Several: []Several{{"fftn", func(x *T) []*T { return list(millrace.FFTN(x, x, 7)) }}},
	},
	{Name: "IFFTN", Func: millrace.IFFTN, MayBeNil: true, Example: func(o In) (*T, *T) { return millrace.IFFTN(o.a, o.a) },
		Peers: []Peer{
			{Name: "ifftn", Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.IFFTN(x[0], x[1], c.List("axes")...))
			}},
		},
		Bad:     []Bad{{"ifftn", shape, func(o *Given) (*T, string) { return first(millrace.IFFTN(o.f, o.f, 2)), here() }}},
		Several: []Several{{"ifftn", func(x *T) []*T { return list(millrace.IFFTN(x, x, 7)) }}},
	},
	{Name: "RFFTN", Func: millrace.RFFTN, Example: func(o In) (*T, *T) { return millrace.RFFTN(o.a) },
		Grads: []Grad{{"rfftn", one(func(x *T) *T { re, im := millrace.RFFTN(x, 1, 0); return re.Mul(im) }), a34}},
		Peers: []Peer{
			{Name: "rfftn", Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.RFFTN(x[0], c.List("axes")...))
			}},
		},
		Bad:     []Bad{{"rfftn", shape, func(o *Given) (*T, string) { return first(millrace.RFFTN(o.f.Sum())), here() }}},
		Several: []Several{{"rfftn", func(x *T) []*T { return list(millrace.RFFTN(x, 7)) }}},
	},
	{Name: "IRFFTN", Func: millrace.IRFFTN, Example: func(o In) *T { return millrace.IRFFTN(o.a, o.a, 3) },
		Grads: []Grad{{"irfftn", two(func(x, y *T) *T { return millrace.IRFFTN(x, y, 4, 0, 1).Square() }), over{in(-1, 1, 2, 3), in(-1, 1, 2, 3)}}},
		Peers: []Peer{
			{Name: "irfftn", Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.IRFFTN(x[0], x[1], c.N("n"), c.List("axes")...))
			}},
		},
		Bad: []Bad{
			{"irfftn", shape, func(o *Given) (*T, string) { return millrace.IRFFTN(o.f, o.f, 3, 0, 1), here() }},
			{"irfftn", shape, func(o *Given) (*T, string) { return millrace.IRFFTN(o.f.Sum(), o.f.Sum(), 1), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return millrace.IRFFTN(x, o.pair, 2) }}},
	},
	{Name: "Resize", Func: millrace.Resize, Example: func(o In) *T { return millrace.Resize(o.b, millrace.ResizeOptions{Mode: millrace.ResizeLinear}, 4) },
		Grads: []Grad{
			{"resizenearest", one(func(x *T) *T { return millrace.Resize(x, millrace.ResizeOptions{}, 2, 7).Square() }), a34},
			{"resizelinear", one(func(x *T) *T {
				return millrace.Resize(x, millrace.ResizeOptions{Mode: millrace.ResizeLinear}, 5, 3).Square()
			}), a34},
			{"resizecubic", one(func(x *T) *T {
				return millrace.Resize(x, millrace.ResizeOptions{Mode: millrace.ResizeCubic, AlignCorners: true}, 5, 3).Square()
			}), a34},
			{"resizefilter", one(func(x *T) *T {
				return millrace.Resize(x, millrace.ResizeOptions{Mode: millrace.ResizeCubic, Antialias: true}, 2, 3).Square()
			}), over{in(-1, 1, 5, 7)}},
		},
		Peers: []Peer{
			{Name: "resize", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				opt := millrace.ResizeOptions{Mode: millrace.ResizeMode(c.N("mode")), AlignCorners: c.N("align") == 1, Antialias: len(c.List("antialias")) > 0}
				return list(millrace.Resize(x[0], opt, c.List("size")...))
			}},
		},
		Kernels: []Kernel{
			{"resize", 3, func(_ millrace.Place, x, _ Maker) *T {
				return millrace.Resize(x(), millrace.ResizeOptions{Mode: millrace.ResizeLinear}, 32, 48)
			}},
			{"resize with a filter", 3, func(_ millrace.Place, x, _ Maker) *T {
				return millrace.Resize(x(), millrace.ResizeOptions{Mode: millrace.ResizeCubic, Antialias: true}, 20, 48)
			}},
		},
		Bad: []Bad{
			{"resize", shape, func(o *Given) (*T, string) { return millrace.Resize(o.f, millrace.ResizeOptions{}, 1<<28+1), here() }},
			{"resize", shape, func(o *Given) (*T, string) {
				return millrace.Resize(millrace.Ones(f32, 1, 1, 1), millrace.ResizeOptions{}, 1<<28, 1<<28, 1<<28), here()
			}},
			{"resize", shape, func(o *Given) (*T, string) { return millrace.Resize(o.f, millrace.ResizeOptions{}), here() }},
			{"resize", shape, func(o *Given) (*T, string) { return millrace.Resize(o.f, millrace.ResizeOptions{}, 1, 2, 3), here() }},
			{"resize", shape, func(o *Given) (*T, string) { return millrace.Resize(o.f, millrace.ResizeOptions{}, 0), here() }},
			{"resize", shape, func(o *Given) (*T, string) { return millrace.Resize(o.hollow, millrace.ResizeOptions{}, 3), here() }},
			{"resize", shape, func(o *Given) (*T, string) {
				return millrace.Resize(o.f, millrace.ResizeOptions{AlignCorners: true}, 3), here()
			}},
			{"resize", shape, func(o *Given) (*T, string) { return millrace.Resize(o.f, millrace.ResizeOptions{Mode: 3}, 3), here() }},
			{"resize", shape, func(o *Given) (*T, string) {
				return millrace.Resize(o.f, millrace.ResizeOptions{Antialias: true}, 3), here()
			}},
			{"resize", shape, func(o *Given) (*T, string) {
				return millrace.Resize(o.f, millrace.ResizeOptions{Mode: millrace.ResizeCubic, Antialias: true, AlignCorners: true}, 3), here()
			}},
			{"resize", shape, func(o *Given) (*T, string) {
				return millrace.Resize(o.pair.Slice(millrace.At(0)).Expand(pow2(40)), millrace.ResizeOptions{Mode: millrace.ResizeLinear, Antialias: true}, 3), here()
			}},
			{"resize", dtype, func(o *Given) (*T, string) {
				return millrace.Resize(o.i, millrace.ResizeOptions{Mode: millrace.ResizeLinear}, 3), here()
			}},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return millrace.Resize(x, millrace.ResizeOptions{}, 3) }}},
	},
}
