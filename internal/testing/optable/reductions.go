package optable

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

var reductions = []Op{
	{Name: "Tensor.Sum", IR: ir.Sum, Example: func(o In) *T { return o.x.Sum(1) },
		Reductions: []Reduction{
			{Name: "sum", DTypes: numbers, Drop: (*T).Sum, Keep: (*T).SumKeep, Of: FoldBy(0, func(a, b float64) float64 { return a + b })},
		},
		Grads:  []Grad{{"sum", one(func(x *T) *T { return x.Square().Sum(1) }), a34}, {"sumall", one(func(x *T) *T { return x.Square().Sum() }), a34}},
		Points: []Point{{"Sum", one(func(x *T) *T { return x.Sum() })}},
		Bad: []Bad{
			{"sum", dtype, func(o *Given) (*T, string) { return o.b3.Sum(), here() }},
			{"sum", shape, func(o *Given) (*T, string) { return o.f.Sum(2), here() }},
			{"sum", shape, func(o *Given) (*T, string) { return o.f.Sum(1, -1), here() }},
			{"sum", shape, func(o *Given) (*T, string) { return o.f.Sum().Sum(0), here() }},
			{"sum", nil, func(o *Given) (*T, string) { return (*T)(nil).Sum(), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Sum(9) }}, {Op: "sum", Call: func(o *Given, x *T) *T { return x.Sum() }}},
	},
	{Name: "Tensor.SumKeep", Example: func(o In) *T { return o.x.SumKeep(1) },
		Grads: []Grad{{"sumkeep", one(func(x *T) *T { return x.Square().SumKeep(0) }), a34}},
	},
	{Name: "Tensor.Prod", IR: ir.Prod, Example: func(o In) *T { return o.x.Prod(1) },
		Reductions: []Reduction{
			{Name: "prod", DTypes: numbers, Drop: (*T).Prod, Keep: (*T).ProdKeep, Of: FoldBy(1, func(a, b float64) float64 { return a * b }), Values: Signs},
		},
		Grads: []Grad{
			{"prod", one(func(x *T) *T { return x.Prod(0, 2) }), over{in(-1, 1, 2, 3, 4)}},
			{"prodzero", func(in []*T) *T { return millrace.Concat(1, in...).Prod(1) }, over{in(-1, 1, 3, 2), zero31, in(-1, 1, 3, 2)}},
			{"prodzeros", func(in []*T) *T { return millrace.Concat(1, in[0], in[1], in[2], in[1]).Prod(1) }, over{in(-1, 1, 3, 2), zero31, in(-1, 1, 3, 2)}},
		},
		Points: []Point{{"Prod", one(func(x *T) *T { return x.Prod() })}},
		Bad: []Bad{
			{"prod", shape, func(o *Given) (*T, string) { return o.f.Prod(2), here() }},
			{"prod", dtype, func(o *Given) (*T, string) { return o.b.Prod(), here() }},
		},
	},
	{Name: "Tensor.ProdKeep", Example: func(o In) *T { return o.x.ProdKeep(1) }},
	{Name: "Tensor.Max", IR: ir.Max, Example: func(o In) *T { return o.x.Max(1) },
		Reductions: []Reduction{
			{Name: "max", DTypes: numbers, Full: true, Drop: (*T).Max, Keep: (*T).MaxKeep, Of: func(r []float64) float64 { return slices.Max(r) }},
		},
		Grads:  []Grad{{"max", one(func(x *T) *T { return x.Max(1) }), a34}},
		Points: []Point{{"Max", one(func(x *T) *T { return x.Max() })}},
		Bad: []Bad{
			{"max", shape, func(o *Given) (*T, string) { return o.none.Max(), here() }},
			{"max", shape, func(o *Given) (*T, string) { return o.none.Max(0), here() }},
		},
	},
	{Name: "Tensor.MaxKeep", Example: func(o In) *T { return o.x.MaxKeep(1) }},
	{Name: "Tensor.Min", IR: ir.Min, Example: func(o In) *T { return o.x.Min(1) },
		Reductions: []Reduction{
			{Name: "min", DTypes: numbers, Full: true, Drop: (*T).Min, Keep: (*T).MinKeep, Of: func(r []float64) float64 { return slices.Min(r) }},
		},
		Points: []Point{{"Min", one(func(x *T) *T { return x.Min() })}},
		Bad:    []Bad{{"min", shape, func(o *Given) (*T, string) { return o.none.Min(), here() }}},
	},
	{Name: "Tensor.MinKeep", Example: func(o In) *T { return o.x.MinKeep(1) },
		Grads: []Grad{{"min", one(func(x *T) *T { return x.MinKeep(0, 1).Square() }), a34}},
	},
	{Name: "Tensor.SumAs", Example: func(o In) *T { return o.x.SumAs(millrace.Float64, 1) },
		Grads: []Grad{{"sumas", one(func(x *T) *T { return x.Square().SumAs(x.DType(), 0) }), a34}},
		Peers: []Peer{
			{Name: "sumas", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(x[0].SumAs(c.Out[0].Type(), c.List("axes")...))
			}},
		},
		Kernels: []Kernel{{"sumas", 1, func(_ millrace.Place, x, _ Maker) *T { return x().GtScalar(0).SumAs(millrace.Int32, 1) }}},
		Bad: []Bad{
			{"sumas", dtype, func(o *Given) (*T, string) { return o.f.SumAs(millrace.Bool), here() }},
			{"sumas", shape, func(o *Given) (*T, string) { return o.f.SumAs(i32, 2), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.SumAs(i32) }}},
	},
	{Name: "Tensor.ArgMax", Example: func(o In) *T { return o.x.ArgMax(1) },
		Reductions: []Reduction{
			{Name: "argmax", DTypes: numbers, Full: true, Drop: (*T).ArgMax, Of: position(func(a, b float64) bool { return a > b }), Result: ir.Int64},
		},
		Bad: []Bad{
			{"argmax", shape, func(o *Given) (*T, string) { return o.none.ArgMax(0), here() }},
			{"argmax", dtype, func(o *Given) (*T, string) { return o.b.ArgMax(0), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.ArgMax(9) }}, {Op: "argmax", Call: func(o *Given, x *T) *T { return x.ArgMax() }}},
	},
	{Name: "Tensor.ArgMin", Example: func(o In) *T { return o.x.ArgMin(1) },
		Reductions: []Reduction{
			{Name: "argmin", DTypes: numbers, Full: true, Drop: (*T).ArgMin, Of: position(func(a, b float64) bool { return a < b }), Result: ir.Int64},
		},
		Bad: []Bad{{"argmin", shape, func(o *Given) (*T, string) { return o.f.ArgMin(0, 0), here() }}},
	},
	{Name: "Tensor.ArgMaxAs", IR: ir.ArgMax, Position: (*T).ArgMaxAs, Example: func(o In) *T { return o.x.ArgMaxAs(millrace.Int32, 1) },
		Reductions: []Reduction{
			{Name: "argmax32", DTypes: numbers, Full: true, Drop: func(t *T, axes ...int) *T { return t.ArgMaxAs(millrace.Int32, axes...) }, Of: position(func(a, b float64) bool { return a > b }), Result: ir.Int32},
		},
		Late: []Late{
			{"argmax", func(late func() *T) []*T {
				x := late().Reshape(-1, 1)
				return []*T{x.ArgMaxAs(millrace.Int32, 1), x.ArgSortAs(millrace.Int32, 1, false)}
			}},
		},
	},
	{Name: "Tensor.ArgMinAs", IR: ir.ArgMin, Position: (*T).ArgMinAs, Example: func(o In) *T { return o.x.ArgMinAs(millrace.Int32, 1) },
		Reductions: []Reduction{
			{Name: "argmin32", DTypes: numbers, Full: true, Drop: func(t *T, axes ...int) *T { return t.ArgMinAs(millrace.Int32, axes...) }, Of: position(func(a, b float64) bool { return a < b }), Result: ir.Int32},
		},
		Bad: []Bad{{"argmin", dtype, func(o *Given) (*T, string) { return o.f.ArgMinAs(f32), here() }}},
	},
	{Name: "Tensor.Any", IR: ir.Any, OnMask: true, Example: func(o In) *T { return o.m.Any(1) },
		Reductions: []Reduction{{Name: "any", DTypes: bools, Drop: (*T).Any, Keep: (*T).AnyKeep, Of: FoldBy(0, math.Max), Values: Truths}},
		Bad:        []Bad{{"any", dtype, func(o *Given) (*T, string) { return o.f.Any(), here() }}},
	},
	{Name: "Tensor.AnyKeep", OnMask: true, Example: func(o In) *T { return o.m.AnyKeep(1) }},
	{Name: "Tensor.All", IR: ir.All, OnMask: true, Example: func(o In) *T { return o.m.All(1) },
		Reductions: []Reduction{{Name: "all", DTypes: bools, Drop: (*T).All, Keep: (*T).AllKeep, Of: FoldBy(1, math.Min), Values: Truths}},
	},
	{Name: "Tensor.AllKeep", OnMask: true, Example: func(o In) *T { return o.m.AllKeep(1) },
		Bad: []Bad{{"all", dtype, func(o *Given) (*T, string) { return o.i.AllKeep(1), here() }}},
	},
}

var scans = []Op{
	{Name: "Tensor.CumSum", IR: ir.CumSum, Example: func(o In) *T { return o.x.CumSum(1) },
		Alongs: []Along{{Name: "cumsum", DTypes: numbers, Call: (*T).CumSum, Of: running(func(a, b float64) float64 { return a + b })}},
		Grads: []Grad{
			{"cumsum", one(func(x *T) *T { return x.CumSum(1).Square() }), a34},
			{"rank8", one(func(x *T) *T { return x.Permute(7, 6, 5, 4, 3, 2, 1, 0).CumSum(3).Softmax(7).Prod(4).Max(2) }), over{apart(-1, 1, 1, 2, 1, 2, 1, 2, 1, 2)}},
		},
		Bad:    []Bad{{"cumsum", shape, func(o *Given) (*T, string) { return o.f.CumSum(2), here() }}},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.CumSum(9) }}, {Op: "cumsum", Call: func(o *Given, x *T) *T { return x.CumSum(0) }}},
	},
	{Name: "Tensor.CumProd", IR: ir.CumProd, Example: func(o In) *T { return o.x.CumProd(1) },
		Alongs: []Along{{Name: "cumprod", DTypes: numbers, Call: (*T).CumProd, Of: running(func(a, b float64) float64 { return a * b }), Values: Signs}},
		Grads: []Grad{
			{"cumprod", one(func(x *T) *T { return x.CumProd(1) }), a34},
			{"cumprodzero", func(in []*T) *T { return millrace.Concat(1, in...).CumProd(1) }, over{in(-1, 1, 3, 2), zero31, in(-1, 1, 3, 2)}},
			{"cumprodzeros", func(in []*T) *T { return millrace.Concat(1, in[0], in[1], in[2], in[1]).CumProd(1) }, over{in(-1, 1, 3, 2), zero31, in(-1, 1, 3, 2)}},
			{"cumprodfirst", one(func(x *T) *T { return x.CumProd(0) }), a34},
			{"rank8rows", one(func(x *T) *T { return x.CumProd(1).CumMax(3).Sort(5).LogSumExp(7, 1) }), over{apart(0.5, 1, 1, 2, 1, 2, 1, 2, 1, 2)}},
		},
		Points: []Point{{"CumProd", one(func(x *T) *T { return x.CumProd(0) })}},
		Bad:    []Bad{{"cumprod", dtype, func(o *Given) (*T, string) { return o.b.CumProd(0), here() }}},
	},
	{Name: "Tensor.CumMax", IR: ir.CumMax, Example: func(o In) *T { return o.x.CumMax(1) },
		Alongs: []Along{
			{Name: "cummax", DTypes: numbers, Call: (*T).CumMax, Of: running(Larger)},
			{Name: "cummax of NaN", DTypes: floats, Call: (*T).CumMax, Of: running(Larger), Values: WithNaN},
		},
		Grads: []Grad{
			{"cummax", one(func(x *T) *T { return x.CumMax(1).Square() }), a34},
			{"cummaxone", one(func(x *T) *T { return x.Slice(millrace.R(0, 1)).CumMax(0).Square() }), a34},
		},
		Points: []Point{{"CumMax", one(func(x *T) *T { return x.CumMax(0) })}},
		Bad:    []Bad{{"cummax", shape, func(o *Given) (*T, string) { return o.zero.CumMax(0), here() }}},
	},
	{Name: "Tensor.CumMin", IR: ir.CumMin, Example: func(o In) *T { return o.x.CumMin(1) },
		Alongs: []Along{{Name: "cummin", DTypes: numbers, Call: (*T).CumMin, Of: running(Smaller)}},
		Grads:  []Grad{{"cummin", one(func(x *T) *T { return x.CumMin(0).Square() }), a34}},
		Points: []Point{{"CumMin", one(func(x *T) *T { return x.CumMin(0) })}},
	},
}
