package optable

import (
	"math"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

var sorts = []Op{
	{Name: "Tensor.Sort", Example: func(o In) *T { return o.v.Sort(0) },
		Alongs: []Along{
			{Name: "sort", DTypes: numbers, Call: (*T).Sort, Of: sorted(false)},
			{Name: "sort of NaN", DTypes: floats, Call: (*T).Sort, Of: sorted(false), Values: WithNaN},
		},
		Grads:  []Grad{{"sort", one(func(x *T) *T { return x.Sort(1).Square() }), a34}},
		Points: []Point{{"Sort", one(func(x *T) *T { return x.Sort(0) })}},
		Bad:    []Bad{{"sort", shape, func(o *Given) (*T, string) { return o.f.Sort(-3), here() }}},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Sort(9) }}, {Op: "sort", Call: func(o *Given, x *T) *T { return x.Sort(0) }}},
	},
	{Name: "Tensor.SortDescending", Example: func(o In) *T { return o.v.SortDescending(0) },
		Alongs: []Along{
			{Name: "sort descending", DTypes: numbers, Call: (*T).SortDescending, Of: sorted(true)},
			{Name: "sort descending of NaN", DTypes: floats, Call: (*T).SortDescending, Of: sorted(true), Values: WithNaN},
		},
		Grads: []Grad{{"sortdescending", one(func(x *T) *T { return x.SortDescending(0).Square() }), a34}},
		Bad:   []Bad{{"sort", dtype, func(o *Given) (*T, string) { return o.b.SortDescending(0), here() }}},
	},
	{Name: "Tensor.ArgSort", Example: func(o In) *T { return o.v.ArgSort(0) },
		Alongs: []Along{
			{Name: "argsort", DTypes: numbers, Result: ir.Int64, Call: (*T).ArgSort, Of: orderOf(false)},
			{Name: "argsort of NaN", DTypes: floats, Result: ir.Int64, Call: (*T).ArgSort, Of: orderOf(false), Values: WithNaN},
		},
		Bad:    []Bad{{"argsort", shape, func(o *Given) (*T, string) { return o.f.ArgSort(2), here() }}},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.ArgSort(9) }}},
	},
	{Name: "Tensor.ArgSortDescending", Example: func(o In) *T { return o.v.ArgSortDescending(0) },
		Alongs: []Along{
			{Name: "argsort descending", DTypes: numbers, Result: ir.Int64, Call: (*T).ArgSortDescending, Of: orderOf(true)},
			{Name: "argsort descending of NaN", DTypes: floats, Result: ir.Int64, Call: (*T).ArgSortDescending, Of: orderOf(true), Values: WithNaN},
		},
	},
	{Name: "Tensor.ArgSortAs", Example: func(o In) *T { return o.v.ArgSortAs(millrace.Int32, 0, true) },
		Alongs: []Along{
			{Name: "argsort32", DTypes: numbers, Result: ir.Int32, Call: func(t *T, a int) *T { return t.ArgSortAs(millrace.Int32, a, true) }, Of: orderOf(true)},
		},
		Bad: []Bad{{"argsort", dtype, func(o *Given) (*T, string) { return o.f.ArgSortAs(f32, 0, true), here() }}},
	},
	{Name: "TopK", Func: millrace.TopK, Example: func(o In) (*T, *T) { return millrace.TopK(o.v, 2, 0) },
		Grads: []Grad{
			{"topk", one(func(x *T) *T { v, _ := millrace.TopK(x, 2, 1); return v.Square() }), a34},
			{"topklow", one(func(x *T) *T { v, _ := millrace.TopK(x, 2, 0); return v.Square() }), a34},
		},
		Points: []Point{{"TopK 2", one(func(x *T) *T { v, _ := millrace.TopK(x, 2, 0); return v })}},
		Bad: []Bad{
			{"topk", shape, func(o *Given) (*T, string) { return first(millrace.TopK(o.f, 4, 1)), here() }},
			{"topk", shape, func(o *Given) (*T, string) { return first(millrace.TopK(o.f, -1, 1)), here() }},
			{"topk", shape, func(o *Given) (*T, string) { return first(millrace.TopK(o.f, 1, 2)), here() }},
			{"topk", dtype, func(o *Given) (*T, string) { return first(millrace.TopK(o.b, 1, 1)), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return first(millrace.TopK(x, 1, 0)) }},
			{Call: func(o *Given, x *T) *T { return second(millrace.TopK(x, 1, 0)) }},
			{Op: "topk", Call: func(o *Given, x *T) *T { return first(millrace.TopK(x, 1, 0)) }},
		},
		Several: []Several{{"topk", func(x *T) []*T { return list(millrace.TopK(x, 9, 7)) }}},
		Late: []Late{
			{"topk", func(late func() *T) []*T {
				v, at := millrace.TopK(late().Reshape(-1, 1), 1, 1)
				return []*T{v, at.Cast(millrace.Int32)}
			}},
		},
	},
	{Name: "SearchSorted", Func: millrace.SearchSorted, Example: func(o In) *T { return millrace.SearchSorted(millrace.Int64, o.v.Sort(0), o.v) },
		Peers: []Peer{
			{Name: "searchsorted", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.SearchSorted(c.Out[0].Type(), x[0], x[1], millrace.Side(c.N("right"))))
			}},
		},
		Kernels: []Kernel{
			{"searchsorted", 1, func(_ millrace.Place, x, v Maker) *T {
				return millrace.SearchSorted(millrace.Int32, v(), x())
			}},
		},
		Bad: []Bad{
			{"searchsorted", shape, func(o *Given) (*T, string) { return millrace.SearchSorted(i32, o.f, o.v), here() }},
			{"searchsorted", dtype, func(o *Given) (*T, string) { return millrace.SearchSorted(i32, o.v, o.i3), here() }},
			{"searchsorted", dtype, func(o *Given) (*T, string) { return millrace.SearchSorted(f32, o.v, o.v), here() }},
			{"searchsorted", shape, func(o *Given) (*T, string) { return millrace.SearchSorted(i32, o.v, o.v, millrace.Side(2)), here() }},
			{"searchsorted", shape, func(o *Given) (*T, string) {
				return millrace.SearchSorted(i32, o.v, o.v, millrace.SideLeft, millrace.SideLeft), here()
			}},
			{"searchsorted", dtype, func(o *Given) (*T, string) {
				return millrace.SearchSorted(i32, o.i3.Cast(millrace.Bool), o.i3.Cast(millrace.Bool)), here()
			}},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return millrace.SearchSorted(i32, x, o.v) }},
			{Call: func(o *Given, x *T) *T { return millrace.SearchSorted(i32, o.v, x) }},
		},
		Late: []Late{
			{"searchsorted", func(late func() *T) []*T {
				return []*T{millrace.SearchSorted(millrace.Int32, millrace.ZerosOn(late().Stream(), f32, 0), late(), millrace.SideRight)}
			}},
		},
	},
}

var counts = []Op{
	{Name: "NonZero", Func: millrace.NonZero, Example: func(o In) *T { return millrace.NonZero(millrace.Int64, o.v) },
		Peers: []Peer{
			{Name: "nonzero", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.NonZero(c.Out[0].Type(), x[0]))
			}},
		},
		Bad:    []Bad{{"nonzero", dtype, func(o *Given) (*T, string) { return millrace.NonZero(f32, o.f), here() }}},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return millrace.NonZero(i32, x) }}},
		Late:   []Late{{"nonzero", func(late func() *T) []*T { return []*T{millrace.NonZero(millrace.Int32, late())} }}},
	},
	{Name: "MaskedSelect", Func: millrace.MaskedSelect, Example: func(o In) *T { return millrace.MaskedSelect(o.x, o.m) },
		Grads: []Grad{{"maskedselect", one(func(x *T) *T { return millrace.MaskedSelect(x, x.GtScalar(0)).Square() }), a34}},
		Peers: []Peer{
			{Name: "maskedselect", Halves: true, Call: func(_ millrace.Place, _ *Case, x []*T) []*T {
				return list(millrace.MaskedSelect(x[0], x[1]))
			}},
		},
		Bad: []Bad{
			{"maskedselect", shape, func(o *Given) (*T, string) { return millrace.MaskedSelect(o.f, o.v.GtScalar(0)), here() }},
			{"maskedselect", shape, func(o *Given) (*T, string) { return millrace.MaskedSelect(o.v, o.mask), here() }},
			{"maskedselect", dtype, func(o *Given) (*T, string) { return millrace.MaskedSelect(o.f, o.f), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return millrace.MaskedSelect(x, o.mask) }},
			{Call: func(o *Given, x *T) *T { return millrace.MaskedSelect(o.f, x) }},
		},
		Late: []Late{{"maskedselect", func(late func() *T) []*T { return []*T{millrace.MaskedSelect(late(), late().GtScalar(0))} }}},
	},
	{Name: "Unique", Func: millrace.Unique, Example: func(o In) *T { return millrace.Unique(o.v) },
		Peers:  []Peer{{Name: "unique", Halves: true, Call: func(_ millrace.Place, _ *Case, x []*T) []*T { return list(millrace.Unique(x[0])) }}},
		Passes: []Pass{{Call: plain(millrace.Unique)}},
		Late:   []Late{{"unique", func(late func() *T) []*T { return []*T{millrace.Unique(late())} }}},
	},
	{Name: "UniqueAll", Func: millrace.UniqueAll, Example: func(o In) (*T, *T, *T) { return millrace.UniqueAll(millrace.Int64, o.v) },
		Peers: []Peer{
			{Name: "uniqueall", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.UniqueAll(c.Out[1].Type(), x[0]))
			}},
		},
		Bad:     []Bad{{"uniqueall", dtype, func(o *Given) (*T, string) { return third(millrace.UniqueAll(f32, o.f)), here() }}},
		Passes:  []Pass{{Call: func(o *Given, x *T) *T { return third(millrace.UniqueAll(i32, x)) }}},
		Several: []Several{{"uniqueall", func(x *T) []*T { return list(millrace.UniqueAll(millrace.Int8, x)) }}},
		Late: []Late{
			{"uniqueall", func(late func() *T) []*T {
				v, i, c := millrace.UniqueAll(millrace.Int32, late())
				return []*T{v, i, c}
			}},
			{"uniqueall of bools", func(late func() *T) []*T {
				v, i, c := millrace.UniqueAll(millrace.Int32, late().GtScalar(0))
				return []*T{v, i, c}
			}},
		},
	},
	{Name: "BinCount", Func: millrace.BinCount, Example: func(o In) *T { return millrace.BinCount(millrace.Int64, o.v, 4) },
		Peers: []Peer{
			{Name: "bincount", Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.BinCount(c.Out[0].Type(), x[0], c.N("n")))
			}},
		},
		Bad: []Bad{
			{"bincount", dtype, func(o *Given) (*T, string) { return millrace.BinCount(i32, o.f, 0), here() }},
			{"bincount", dtype, func(o *Given) (*T, string) { return millrace.BinCount(millrace.Bool, o.i3, 0), here() }},
			{"bincount", shape, func(o *Given) (*T, string) { return millrace.BinCount(i32, o.i3, -1), here() }},
			{"bincount", millrace.ErrIndex, func(o *Given) (*T, string) { return millrace.BinCount(i32, o.i3.Neg(), 0), here() }},
			{"bincount", millrace.ErrIndex, func(o *Given) (*T, string) {
				return millrace.BinCount(i32, millrace.Full(millrace.Uint64, 1<<63, 2), 0), here()
			}},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return millrace.BinCount(i32, x, 0) }}},
		Late: []Late{
			{"bincount", func(late func() *T) []*T {
				return []*T{millrace.BinCount(millrace.Int32, late().Cast(millrace.Int32), 0)}
			}},
		},
	},
	{Name: "Histogram", Func: millrace.Histogram, Example: func(o In) (*T, *T) { return millrace.Histogram(millrace.Int64, o.v, 3, 0, 3) },
		Peers: []Peer{
			{Name: "histogram", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(millrace.Histogram(c.Out[0].Type(), x[0], c.N("bins"), c.F("lo"), c.F("hi")))
			}},
		},
		Bad: []Bad{
			{"histogram", dtype, func(o *Given) (*T, string) { return first(millrace.Histogram(i32, o.i3, 3, 0, 1)), here() }},
			{"histogram", dtype, func(o *Given) (*T, string) { return first(millrace.Histogram(millrace.Bool, o.f, 3, 0, 1)), here() }},
			{"histogram", shape, func(o *Given) (*T, string) { return first(millrace.Histogram(i32, o.f, 0, 0, 1)), here() }},
			{"histogram", shape, func(o *Given) (*T, string) { return first(millrace.Histogram(i32, o.f, 3, 1, 0)), here() }},
			{"histogram", shape, func(o *Given) (*T, string) { return first(millrace.Histogram(i32, o.f, 3, 0, math.NaN())), here() }},
			{"histogram", shape, func(o *Given) (*T, string) { return first(millrace.Histogram(i32, o.f, 3, 0, 1e300)), here() }},
			{"histogram", shape, func(o *Given) (*T, string) { return first(millrace.Histogram(i32, o.holes, 3, 0, 0)), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return first(millrace.Histogram(i32, x, 3, 0, 0)) }}},
		Several: []Several{
			{"histogram", func(x *T) []*T { return list(millrace.Histogram(millrace.Int32, x, 0, 0, 1)) }},
			{"edges", func(x *T) []*T { return list(millrace.Histogram(millrace.Int32, x, 3, 1, 0)) }},
			{"counts", func(x *T) []*T {
				return list(millrace.Histogram(millrace.Int8, x.Expand(200, 2, 3, 4), 1, 0, 2))
			}},
		},
		Late: []Late{
			{"histogram", func(late func() *T) []*T {
				c, e := millrace.Histogram(millrace.Int32, late(), 2, 0, 0)
				return []*T{c, e}
			}},
			{"counts", func(late func() *T) []*T {
				c, _ := millrace.Histogram(millrace.Int32, late(), 2, 0, 9)
				return []*T{c}
			}},
		},
	},
}
