package main

import (
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/linalg"
)

// contractions are the operations that add products, and what is made of them.
var contractions = []group{
	{"Matmul", "One kernel with the bias, activation and residual after it.", []row{
		op("Tensor.MatMul", func(o in) t { return o.a.MatMul(o.b) }),
		op("Tensor.DotGeneral", func(o in) t { return o.a.DotGeneral(o.b, nil, nil, []int{1}, []int{0}) }),
		op("Einsum", func(o in) t { return millrace.Einsum("ij,kj->ik", o.x, o.y) }),
		op("Outer", func(o in) t { return millrace.Outer(o.b, o.b) }),
		op("Tensor.Trace", func(o in) t { return o.a.Trace() }),
	}},
	{"Convolutions", "", []row{
		op("Tensor.Conv", func(o in) t { return o.image.Conv(o.kernel, millrace.ConvOptions{}) }),
		op("Tensor.ConvTranspose", func(o in) t { return o.image.ConvTranspose(o.kernel, millrace.ConvOptions{Stride: []int{2, 2}}) }).silent(),
		op("Conv1d", func(o in) t {
			return millrace.Conv1d(o.signal, o.taps, millrace.ConvOptions{})
		}),
		op("Conv2d", func(o in) t { return millrace.Conv2d(o.image, o.kernel, millrace.ConvOptions{}) }),
		op("Conv3d", func(o in) t {
			return millrace.Conv3d(o.volume, o.block, millrace.ConvOptions{})
		}),
	}},
	{"Windows", "", []row{
		op("Tensor.MaxPool", func(o in) t { return o.v.MaxPool(millrace.Window{Size: 2, Stride: 2}) }),
		op("Tensor.AvgPool", func(o in) t { return o.v.AvgPool(millrace.Window{Size: 2, Stride: 2}) }),
		op("Tensor.ReduceWindow", func(o in) t { return o.v.ReduceWindow(millrace.ReduceSum, millrace.Window{Size: 2, Stride: 2}) }),
	}},
	{"Transforms", "Complex numbers are pairs of tensors.", []row{
		op("FFT", func(o in) (t, t) { return millrace.FFT(o.v, o.v, 0) }),
		op("IFFT", func(o in) (t, t) { return millrace.IFFT(o.v, o.v, 0) }),
		op("RFFT", func(o in) (t, t) { return millrace.RFFT(o.v, 0) }),
		op("IRFFT", func(o in) t { return millrace.IRFFT(o.b, o.b, 3, 0) }),
		op("FFTN", func(o in) (t, t) { return millrace.FFTN(o.a, o.a) }),
		op("IFFTN", func(o in) (t, t) { return millrace.IFFTN(o.a, o.a) }),
		op("RFFTN", func(o in) (t, t) { return millrace.RFFTN(o.a) }),
		op("IRFFTN", func(o in) t { return millrace.IRFFTN(o.a, o.a, 3) }),
		op("Resize", func(o in) t { return millrace.Resize(o.b, millrace.ResizeOptions{Mode: millrace.ResizeLinear}, 4) }),
	}},
	{"Linear algebra", "Package linalg computes these on the host in float64, of one matrix or a stack of them; they do not fuse.", []row{
		op("linalg.Solve", func(o in) t { return linalg.Solve(o.a, o.b) }),
		op("linalg.LeastSquares", func(o in) t { return linalg.LeastSquares(o.a, o.b) }),
		op("linalg.Inverse", func(o in) t { return linalg.Inverse(o.a) }),
		op("linalg.PseudoInverse", func(o in) t { return linalg.PseudoInverse(o.x) }),
		op("linalg.Det", func(o in) t { return linalg.Det(o.a) }),
		op("linalg.SlogDet", func(o in) (t, t) { return linalg.SlogDet(o.a) }),
		op("linalg.Cholesky", func(o in) t { return linalg.Cholesky(o.a) }),
		op("linalg.QR", func(o in) (t, t) { return linalg.QR(o.a) }),
		op("linalg.SVD", func(o in) (t, t, t) { return linalg.SVD(o.a) }),
		op("linalg.SingularValues", func(o in) t { return linalg.SingularValues(o.a) }),
		op("linalg.Eigh", func(o in) (t, t) { return linalg.Eigh(o.a) }),
		op("linalg.Eigvalsh", func(o in) t { return linalg.Eigvalsh(o.a) }),
	}},
}
