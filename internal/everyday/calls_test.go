package everyday

import "github.com/millrace-go/millrace"

// call runs a case's op on its operands; creation ops make their result in p.
type call func(p millrace.Place, c *given, x []*tensor) []*tensor

func list(ts ...*tensor) []*tensor { return ts }

// calls has all ops of testdata/numpy.json.
var calls = map[string]call{
	"eye": func(p millrace.Place, c *given, _ []*tensor) []*tensor {
		return list(millrace.EyeOn(p, c.Out[0].dtype(), c.n("n"), c.n("m")))
	},
	"linspace": func(p millrace.Place, c *given, _ []*tensor) []*tensor {
		return list(millrace.LinspaceOn(p, c.Out[0].dtype(), c.f("start"), c.f("stop"), c.n("n")))
	},
	"split": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return millrace.Split(x[0], c.n("axis"), c.list("sizes")...)
	},
	"chunk": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return millrace.Chunk(x[0], c.n("n"), c.n("axis"))
	},
	"transpose": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(x[0].Transpose(c.n("i"), c.n("j")))
	},
	"moveaxis": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(x[0].MoveAxis(c.n("i"), c.n("j")))
	},
	"flatten": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(x[0].Flatten(c.n("i"), c.n("j")))
	},
	"log10": func(_ millrace.Place, _ *given, x []*tensor) []*tensor { return list(x[0].Log10()) },
	"asinh": func(_ millrace.Place, _ *given, x []*tensor) []*tensor { return list(x[0].Asinh()) },
	"acosh": func(_ millrace.Place, _ *given, x []*tensor) []*tensor { return list(x[0].Acosh()) },
	"atanh": func(_ millrace.Place, _ *given, x []*tensor) []*tensor { return list(x[0].Atanh()) },
	"diag":  func(_ millrace.Place, c *given, x []*tensor) []*tensor { return list(x[0].Diag(c.n("k"))) },
	"trace": func(_ millrace.Place, _ *given, x []*tensor) []*tensor { return list(x[0].Trace()) },
	"outer": func(_ millrace.Place, _ *given, x []*tensor) []*tensor { return list(millrace.Outer(x[0], x[1])) },
	"integers": func(p millrace.Place, c *given, _ []*tensor) []*tensor {
		return list(millrace.IntegersOn(p, c.Out[0].dtype(), uint64(c.n("seed")), int64(c.n("lo")), int64(c.n("hi")), c.list("shape")...))
	},
	"permutation": func(p millrace.Place, c *given, _ []*tensor) []*tensor {
		return list(millrace.PermutationOn(p, c.Out[0].dtype(), uint64(c.n("seed")), c.n("n")))
	},
	"fft": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.FFT(x[0], x[1], c.n("axis")))
	},
	"ifft": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.IFFT(x[0], x[1], c.n("axis")))
	},
	"rfft": func(_ millrace.Place, c *given, x []*tensor) []*tensor { return list(millrace.RFFT(x[0], c.n("axis"))) },
	"irfft": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.IRFFT(x[0], x[1], c.n("n"), c.n("axis")))
	},
	"fftn": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.FFTN(x[0], x[1], c.list("axes")...))
	},
	"ifftn": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.IFFTN(x[0], x[1], c.list("axes")...))
	},
	"rfftn": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.RFFTN(x[0], c.list("axes")...))
	},
	"irfftn": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.IRFFTN(x[0], x[1], c.n("n"), c.list("axes")...))
	},
	"einsum": func(_ millrace.Place, c *given, x []*tensor) []*tensor { return list(millrace.Einsum(c.Spec, x...)) },
	"conv1d": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.Conv1d(x[0], x[1], convolved(c)))
	},
	"conv2d": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.Conv2d(x[0], x[1], convolved(c)))
	},
	"conv3d": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.Conv3d(x[0], x[1], convolved(c)))
	},
	"resize": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		opt := millrace.ResizeOptions{Mode: millrace.ResizeMode(c.n("mode")), AlignCorners: c.n("align") == 1, Antialias: len(c.list("antialias")) > 0}
		return list(millrace.Resize(x[0], opt, c.list("size")...))
	},
	"nonzero": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.NonZero(c.Out[0].dtype(), x[0]))
	},
	"maskedselect": func(_ millrace.Place, _ *given, x []*tensor) []*tensor {
		return list(millrace.MaskedSelect(x[0], x[1]))
	},
	"unique": func(_ millrace.Place, _ *given, x []*tensor) []*tensor { return list(millrace.Unique(x[0])) },
	"uniqueall": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.UniqueAll(c.Out[1].dtype(), x[0]))
	},
	"searchsorted": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.SearchSorted(c.Out[0].dtype(), x[0], x[1], millrace.Side(c.n("right"))))
	},
	"bincount": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.BinCount(c.Out[0].dtype(), x[0], c.n("n")))
	},
	"histogram": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(millrace.Histogram(c.Out[0].dtype(), x[0], c.n("bins"), c.f("lo"), c.f("hi")))
	},
	"median": func(_ millrace.Place, c *given, x []*tensor) []*tensor { return list(x[0].Median(c.list("axes")...)) },
	"quantile": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(x[0].Quantile(c.f("q"), c.list("axes")...))
	},
	"mediankeep": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(x[0].MedianKeep(c.list("axes")...))
	},
	"quantilekeep": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(x[0].QuantileKeep(c.f("q"), c.list("axes")...))
	},
	"sumas": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(x[0].SumAs(c.Out[0].dtype(), c.list("axes")...))
	},
	"takefromend": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(x[0].Take(x[1], c.n("axis"), millrace.IndexFromEnd))
	},
	"takealongfromend": func(_ millrace.Place, c *given, x []*tensor) []*tensor {
		return list(x[0].TakeAlong(x[1], c.n("axis"), millrace.IndexFromEnd))
	},
	"addfromend": func(_ millrace.Place, _ *given, x []*tensor) []*tensor {
		return list(x[0].ScatterAdd(x[1], x[2], 0, millrace.IndexFromEnd))
	},
}

func convolved(c *given) millrace.ConvOptions {
	o := millrace.ConvOptions{Stride: c.list("stride"), Dilation: c.list("dilation"), Groups: c.n("groups")}
	for _, n := range c.list("pad") {
		o.Padding = append(o.Padding, [2]int{n, n})
	}
	return o
}
