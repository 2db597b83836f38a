package gradcases

import "github.com/millrace-go/millrace"

// everyday are ops composed of others.
var everyday = []Case{
	{"diagvector", one(func(x *T) *T { return x.Diag(-1).Square() }), ops{in(-1, 1, 3)}}, {"diagmatrix", one(func(x *T) *T { return x.Diag(1).Square() }), a34},
	{"trace", one(func(x *T) *T { return x.Square().Trace() }), ops{in(-1, 1, 2, 3, 3)}}, {"outer", two(millrace.Outer), ops{in(-1, 1, 3), in(-1, 1, 4)}},
	{"split", one(func(x *T) *T { s := millrace.Split(x, 1, 1, 3); return s[0].Square().Mul(s[1]) }), a34},
	{"chunk", one(func(x *T) *T { s := millrace.Chunk(x, 2, -1); return s[0].Square().Mul(s[1]) }), a34},
	{"transpose", one(func(x *T) *T { return x.Transpose(0, 2).Square() }), ops{in(-1, 1, 2, 3, 4)}}, {"moveaxis", one(func(x *T) *T { return x.MoveAxis(0, 2).Square() }), ops{in(-1, 1, 2, 3, 4)}},
	{"log10", one((*T).Log10), ops{in(0.5, 12, 5)}}, {"asinh", one((*T).Asinh), a34}, {"acosh", one((*T).Acosh), ops{in(1.2, 5, 5)}}, {"atanh", one((*T).Atanh), ops{in(-0.8, 0.8, 5)}},
	{"maskedselect", one(func(x *T) *T { return millrace.MaskedSelect(x, x.GtScalar(0)).Square() }), a34}, {"medianeven", one(func(x *T) *T { return x.Median(1).Square() }), a34},
	{"median", one(func(x *T) *T { return x.Median(0) }), a34}, {"quantile", one(func(x *T) *T { return x.Quantile(0.3).Square() }), a34},
	{"mediankeep", one(func(x *T) *T { return x.Sub(x.MedianKeep(1)).Square() }), a34},
	{"quantilekeep", one(func(x *T) *T { return x.Mul(x.QuantileKeep(0.3, 0)) }), a34},
	{"sumas", one(func(x *T) *T { return x.Square().SumAs(x.DType(), 0) }), a34},
	{"takefromend", one(func(x *T) *T { return x.Take(ints(x, []int32{-1, 0, -3}, 3), 0, millrace.IndexFromEnd).Square() }), a34},
	{"addfromend", two(func(x, u *T) *T { return x.IndexAdd(ints(x, []int32{-1, 0}, 2), u, 0, millrace.IndexFromEnd).Square() }), ops{in(-1, 1, 3, 4), in(-1, 1, 2, 4)}},
	{"conv3d", two(func(x, k *T) *T {
		return millrace.Conv3d(x, k, millrace.ConvOptions{Stride: []int{2, 1, 1}, Padding: [][2]int{{1, 1}, {0, 1}, {1, 0}}, Groups: 2})
	}), ops{in(-1, 1, 1, 2, 3, 2, 3), in(-1, 1, 2, 1, 2, 2, 2)}},
	{"convtranspose3d", two(func(x, k *T) *T {
		return x.ConvTranspose(k, millrace.ConvOptions{Stride: []int{2, 1, 2}, Padding: [][2]int{{1, 0}, {0, 1}, {1, 1}}, OutputPadding: []int{0, 0, 1}, Groups: 2})
	}), ops{in(-1, 1, 1, 2, 3, 2, 2), in(-1, 1, 2, 1, 3, 2, 2)}},
	{"resizenearest", one(func(x *T) *T { return millrace.Resize(x, millrace.ResizeOptions{}, 2, 7).Square() }), a34},
	{"resizelinear", one(func(x *T) *T {
		return millrace.Resize(x, millrace.ResizeOptions{Mode: millrace.ResizeLinear}, 5, 3).Square()
	}), a34},
	{"resizecubic", one(func(x *T) *T {
		return millrace.Resize(x, millrace.ResizeOptions{Mode: millrace.ResizeCubic, AlignCorners: true}, 5, 3).Square()
	}), a34},
	{"resizefilter", one(func(x *T) *T {
		return millrace.Resize(x, millrace.ResizeOptions{Mode: millrace.ResizeCubic, Antialias: true}, 2, 3).Square()
	}), ops{in(-1, 1, 5, 7)}},
	{"fftn", two(func(x, y *T) *T { re, im := millrace.FFTN(x, y); return re.Square().Mul(im) }), ops{in(-1, 1, 2, 3), in(-1, 1, 2, 3)}},
	{"irfftn", two(func(x, y *T) *T { return millrace.IRFFTN(x, y, 4, 0, 1).Square() }), ops{in(-1, 1, 2, 3), in(-1, 1, 2, 3)}},
	{"rfftn", one(func(x *T) *T { re, im := millrace.RFFTN(x, 1, 0); return re.Mul(im) }), a34},
	{"fft", two(func(x, y *T) *T { re, im := millrace.FFT(x, y, 1); return re.Square().Mul(im) }), ops{in(-1, 1, 2, 6), in(-1, 1, 2, 6)}},
	{"fftsteps", one(func(x *T) *T { re, im := millrace.RFFT(x, 0); return re.Mul(im) }), ops{in(-1, 1, 66)}},
	{"irfft", two(func(x, y *T) *T { return millrace.IRFFT(x, y, 6, 0).Square() }), ops{in(-1, 1, 4, 2), in(-1, 1, 4, 2)}},
	{"einsummany", func(in []*T) *T { return millrace.Einsum("ij,jk,ik,k->i", in[0], in[1], in[2], in[3]).Square() }, ops{in(-1, 1, 2, 3), in(-1, 1, 3, 4), in(-1, 1, 2, 4), in(-1, 1, 4)}},
	{"flatten", one(func(x *T) *T { return x.Flatten(0, 1).Square() }), ops{in(-1, 1, 2, 3, 4)}},
}
