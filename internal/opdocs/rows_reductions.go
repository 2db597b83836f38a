package main

import (
	"github.com/millrace-go/millrace"
)

// reductions are the operations on rows: along axes.
var reductions = []group{
	{"Reductions", "", []row{
		op("Tensor.Sum", func(o in) t { return o.x.Sum(1) }),
		op("Tensor.SumKeep", func(o in) t { return o.x.SumKeep(1) }),
		op("Tensor.Prod", func(o in) t { return o.x.Prod(1) }),
		op("Tensor.ProdKeep", func(o in) t { return o.x.ProdKeep(1) }),
		op("Tensor.Max", func(o in) t { return o.x.Max(1) }),
		op("Tensor.MaxKeep", func(o in) t { return o.x.MaxKeep(1) }),
		op("Tensor.Min", func(o in) t { return o.x.Min(1) }),
		op("Tensor.MinKeep", func(o in) t { return o.x.MinKeep(1) }),
		op("Tensor.SumAs", func(o in) t { return o.x.SumAs(millrace.Float64, 1) }),
		op("Tensor.ArgMax", func(o in) t { return o.x.ArgMax(1) }),
		op("Tensor.ArgMin", func(o in) t { return o.x.ArgMin(1) }),
		op("Tensor.ArgMaxAs", func(o in) t { return o.x.ArgMaxAs(millrace.Int32, 1) }),
		op("Tensor.ArgMinAs", func(o in) t { return o.x.ArgMinAs(millrace.Int32, 1) }),
		op("Tensor.Any", func(o in) t { return o.m.Any(1) }).mask(),
		op("Tensor.AnyKeep", func(o in) t { return o.m.AnyKeep(1) }).mask(),
		op("Tensor.All", func(o in) t { return o.m.All(1) }).mask(),
		op("Tensor.AllKeep", func(o in) t { return o.m.AllKeep(1) }).mask(),
	}},
	{"Statistics", "", []row{
		op("Tensor.Mean", func(o in) t { return o.x.Mean(1) }),
		op("Tensor.MeanKeep", func(o in) t { return o.x.MeanKeep(1) }),
		op("Tensor.Var", func(o in) t { return o.x.Var(0, 1) }),
		op("Tensor.VarKeep", func(o in) t { return o.x.VarKeep(0, 1) }),
		op("Tensor.Std", func(o in) t { return o.x.Std(0, 1) }),
		op("Tensor.StdKeep", func(o in) t { return o.x.StdKeep(0, 1) }),
		op("Tensor.Median", func(o in) t { return o.x.Median(1) }),
		op("Tensor.MedianKeep", func(o in) t { return o.x.MedianKeep(1) }),
		op("Tensor.Quantile", func(o in) t { return o.x.Quantile(0.25, 1) }),
		op("Tensor.QuantileKeep", func(o in) t { return o.x.QuantileKeep(0.25, 1) }),
		op("Tensor.Norm1", func(o in) t { return o.x.Norm1(1) }),
		op("Tensor.Norm1Keep", func(o in) t { return o.x.Norm1Keep(1) }),
		op("Tensor.Norm2", func(o in) t { return o.x.Norm2(1) }),
		op("Tensor.Norm2Keep", func(o in) t { return o.x.Norm2Keep(1) }),
		op("Tensor.LogSumExp", func(o in) t { return o.x.LogSumExp(1) }),
		op("Tensor.LogSumExpKeep", func(o in) t { return o.x.LogSumExpKeep(1) }),
	}},
	{"Normalisation", "Compositions of the above, each one kernel with its neighbours.", []row{
		op("Tensor.Softmax", func(o in) t { return o.x.Softmax(1) }),
		op("Tensor.LogSoftmax", func(o in) t { return o.x.LogSoftmax(1) }),
		op("Tensor.MaskedSoftmax", func(o in) t { return o.x.MaskedSoftmax(o.m, 1) }),
		op("Tensor.MaskedLogSoftmax", func(o in) t { return o.x.MaskedLogSoftmax(o.m, 1) }),
		op("Tensor.LayerNorm", func(o in) t { return o.x.LayerNorm(nil, nil, 1e-5) }),
		op("Tensor.RMSNorm", func(o in) t { return o.x.RMSNorm(nil, 1e-5) }),
		op("CrossEntropy", func(o in) t { return millrace.CrossEntropy(o.x, o.i) }),
	}},
	{"Scans", "", []row{
		op("Tensor.CumSum", func(o in) t { return o.x.CumSum(1) }),
		op("Tensor.CumProd", func(o in) t { return o.x.CumProd(1) }),
		op("Tensor.CumMax", func(o in) t { return o.x.CumMax(1) }),
		op("Tensor.CumMin", func(o in) t { return o.x.CumMin(1) }),
	}},
	{"Sorts and selection", "", []row{
		op("Tensor.Sort", func(o in) t { return o.v.Sort(0) }),
		op("Tensor.SortDescending", func(o in) t { return o.v.SortDescending(0) }),
		op("Tensor.ArgSort", func(o in) t { return o.v.ArgSort(0) }),
		op("Tensor.ArgSortDescending", func(o in) t { return o.v.ArgSortDescending(0) }),
		op("Tensor.ArgSortAs", func(o in) t { return o.v.ArgSortAs(millrace.Int32, 0, true) }),
		op("TopK", func(o in) (t, t) { return millrace.TopK(o.v, 2, 0) }),
		op("SearchSorted", func(o in) t { return millrace.SearchSorted(millrace.Int64, o.v.Sort(0), o.v) }),
	}},
	{"Counts and values", "Sizes of some of these results depend on values: what they need runs before they return.", []row{
		op("NonZero", func(o in) t { return millrace.NonZero(millrace.Int64, o.v) }),
		op("MaskedSelect", func(o in) t { return millrace.MaskedSelect(o.x, o.m) }),
		op("Unique", func(o in) t { return millrace.Unique(o.v) }),
		op("UniqueAll", func(o in) (t, t, t) { return millrace.UniqueAll(millrace.Int64, o.v) }),
		op("BinCount", func(o in) t { return millrace.BinCount(millrace.Int64, o.v, 4) }),
		op("Histogram", func(o in) (t, t) { return millrace.Histogram(millrace.Int64, o.v, 3, 0, 3) }),
	}},
}
