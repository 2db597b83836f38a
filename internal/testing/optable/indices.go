package optable

import (
	"github.com/millrace-go/millrace"
)

var indices = []Op{
	{Name: "Tensor.Take", Example: func(o In) *T { return o.x.Take(o.i, 1) },
		Grads: []Grad{
			{"take", one(func(x *T) *T { return x.Take(ints(x, []int32{2, 0, 2, 1}, 2, 2), 0).Square() }), a34},
			{"takedeep", one(func(x *T) *T { return x.Take(ints(x, []int32{2, 0, 2, 1, 1, 0, 2, 2}, 2, 2, 2), 1).Square() }), over{in(-1, 1, 2, 3, 4)}},
			{"takedrop", one(func(x *T) *T { return x.Take(ints(x, []int32{2, 7, -1}, 3), 0, millrace.IndexDrop).Square() }), a34},
			{"takeclamp", one(func(x *T) *T { return x.Take(ints(x, []int32{2, 7, -1}, 3), 0, millrace.IndexClamp).Square() }), a34},
			{"takefromend", one(func(x *T) *T { return x.Take(ints(x, []int32{-1, 0, -3}, 3), 0, millrace.IndexFromEnd).Square() }), a34},
		},
		Peers: []Peer{
			{Name: "takefromend", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(x[0].Take(x[1], c.N("axis"), millrace.IndexFromEnd))
			}},
		},
		Bad: []Bad{
			{"take", shape, func(o *Given) (*T, string) { return o.f.Take(o.at, 2), here() }},
			{"take", shape, func(o *Given) (*T, string) { return o.zero.Take(o.at, 0), here() }},
			{"take", shape, func(o *Given) (*T, string) { return o.deep.Take(o.i, 0), here() }},
			{"gather", dtype, func(o *Given) (*T, string) { return o.f.Take(o.v, 0), here() }},
			{"gather", shape, func(o *Given) (*T, string) { return o.f.Take(o.at, 0, 7), here() }},
			{"gather", shape, func(o *Given) (*T, string) { return o.f.Take(o.at, 0, millrace.IndexClamp, millrace.IndexDrop), here() }},
			{"gather", shape, func(o *Given) (*T, string) { return o.none.Take(o.at, 0, millrace.IndexClamp), here() }},
			{"gather", dtype, func(o *Given) (*T, string) { return o.v.Take(o.v, 0), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return o.v.Take(x, 0, millrace.IndexFromEnd) }},
			{Op: "take", Call: func(o *Given, x *T) *T { return x.Take(o.at2, 0) }},
		},
	},
	{Name: "Tensor.TakeAlong", Example: func(o In) *T { return o.x.TakeAlong(o.i.Unsqueeze(1), 1) },
		Grads: []Grad{
			{"takealongrepeated", one(func(x *T) *T {
				return x.TakeAlong(ints(x, []int32{2, 0, 2, 1, 1, 0, 2, 2}, 1, 4, 2), 2).Square()
			}), over{in(-1, 1, 3, 1, 4)}},
			{"takealong", one(func(x *T) *T { return x.TakeAlong(ints(x, []int32{2, 0, 2, 1, 1, 1}, 3, 2), 1).Square() }), a34},
		},
		Peers: []Peer{
			{Name: "takealongfromend", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(x[0].TakeAlong(x[1], c.N("axis"), millrace.IndexFromEnd))
			}},
		},
		Bad: []Bad{
			{"takealong", shape, func(o *Given) (*T, string) { return o.f.TakeAlong(o.i, -3), here() }},
			{"gather", shape, func(o *Given) (*T, string) { return o.f.TakeAlong(o.at, 0), here() }},
			{"gather", shape, func(o *Given) (*T, string) { return o.f.TakeAlong(millrace.Ones(i32, 5, 2), 0), here() }},
			{"gather", dtype, func(o *Given) (*T, string) { return o.f.TakeAlong(o.f, 0), here() }},
			{"gather", dtype, func(o *Given) (*T, string) { return o.v.TakeAlong(o.v.GtScalar(0), 0), here() }},
		},
		Passes: []Pass{{Op: "takealong", Call: func(o *Given, x *T) *T { return o.two.TakeAlong(x, 0) }}},
	},
	{Name: "Tensor.Put", Example: func(o In) *T { return o.x.Put(o.i, o.a, 1, millrace.CombineSet) },
		Grads: []Grad{
			{"putadd", two(func(x, u *T) *T { return x.Put(ints(x, []int32{2, 0, 2}, 3), u, 0, millrace.CombineAdd).Square() }), over{in(-1, 1, 3, 4), in(-1, 1, 3, 4)}},
			{"putset", two(func(x, u *T) *T {
				return x.Put(ints(x, []int32{2, 9, 2}, 3), u, 0, millrace.CombineSet, millrace.IndexDrop).Square()
			}), over{in(-1, 1, 3, 4), in(-1, 1, 3, 4)}},
			{"putmax", two(func(x, u *T) *T {
				return x.Put(ints(x, []int32{1, 9, 1}, 3), u, 1, millrace.CombineMax, millrace.IndexClamp).Square()
			}), over{apart(-1, 1, 3, 4), apart(-1.01, 0.99, 3, 3)}},
			{"putmul", one(func(x *T) *T {
				return x.Put(ints(x, []int32{1, 3, 1}, 3), millrace.OnesOn(x.Stream(), x.DType(), 3, 3).MulScalar(1.5), 1, millrace.CombineMul).Square()
			}), a34},
		},
		Bad: []Bad{
			{"put", shape, func(o *Given) (*T, string) {
				return o.f.Put(o.at, millrace.Ones(f32, 3, 3), 0, millrace.CombineAdd), here()
			}},
			{"put", shape, func(o *Given) (*T, string) { return o.deep.Put(o.i, o.zero, 0, millrace.CombineAdd), here() }},
			{"put", shape, func(o *Given) (*T, string) {
				return o.f.Put(o.at, o.f, 0, millrace.CombineAdd, millrace.IndexClamp, millrace.IndexDrop), here()
			}},
			{"put", dtype, func(o *Given) (*T, string) { return o.v.Put(o.v, o.v, 0, millrace.CombineAdd), here() }},
		},
	},
	{Name: "Tensor.IndexSet", Example: func(o In) *T { return o.x.IndexSet(o.i, o.a, 1) },
		Grads: []Grad{
			{"indexset", two(func(x, u *T) *T { return x.IndexSet(ints(x, []int32{2, 0}, 2), u, 0).Square() }), over{in(-1, 1, 3, 4), in(-1, 1, 2, 4)}},
			{"indexsetlast", two(func(x, u *T) *T { return x.IndexSet(ints(x, []int32{3, 0, 3}, 3), u, -1).Square() }), over{in(-1, 1, 3, 4), in(-1, 1, 3, 3)}},
		},
		Bad: []Bad{
			{"indexset", dtype, func(o *Given) (*T, string) { return o.f.IndexSet(o.v, o.f, 0), here() }},
			{"indexset", shape, func(o *Given) (*T, string) { return o.f.IndexSet(o.at, o.f, -3), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return o.f.IndexSet(x, o.f, 0) }},
			{Call: func(o *Given, x *T) *T { return o.f.IndexSet(o.i, x, 0) }},
			{Op: "indexset", Call: func(o *Given, x *T) *T { return o.two.IndexSet(x, o.two, 0) }},
		},
	},
	{Name: "Tensor.IndexAdd", Example: func(o In) *T { return o.x.IndexAdd(o.i, o.a, 1) },
		Grads: []Grad{
			{"indexadd", two(func(x, u *T) *T { return x.IndexAdd(ints(x, []int32{2, 0}, 2), u, 0).Square() }), over{in(-1, 1, 3, 4), in(-1, 1, 2, 4)}},
			{"addfromend", two(func(x, u *T) *T { return x.IndexAdd(ints(x, []int32{-1, 0}, 2), u, 0, millrace.IndexFromEnd).Square() }), over{in(-1, 1, 3, 4), in(-1, 1, 2, 4)}},
		},
		Bad: []Bad{
			{"indexadd", dtype, func(o *Given) (*T, string) { return o.f.IndexAdd(o.at, o.i, 0), here() }},
			{"indexadd", dtype, func(o *Given) (*T, string) { return o.b.IndexAdd(o.at, o.b, 0), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.IndexAdd(o.i, o.f, 9) }}},
	},
	{Name: "Tensor.Scatter", Example: func(o In) *T { return o.v.Scatter(o.i, o.b, 0, millrace.CombineMax) },
		Grads: []Grad{
			{"scatterlast", two(func(x, u *T) *T { return x.ScatterAdd(ints(x, []int32{3, 0, 3, 1, 1, 1}, 3, 2), u, -1).Square() }), over{in(-1, 1, 3, 4), in(-1, 1, 3, 2)}},
		},
		Bad: []Bad{
			{"scatter", shape, func(o *Given) (*T, string) { return o.f.Scatter(o.i, o.f, 0, 99), here() }},
			{"scatter", shape, func(o *Given) (*T, string) { return o.f.Scatter(o.i, o.f, 0, millrace.CombineSet, 7), here() }},
			{"scatter", shape, func(o *Given) (*T, string) {
				return o.none.Scatter(millrace.Zeros(i32, 2, 3), o.f, 0, millrace.CombineSet, millrace.IndexClamp), here()
			}},
		},
	},
	{Name: "Tensor.ScatterSet", Example: func(o In) *T { return o.v.ScatterSet(o.i, o.b, 0) },
		Grads: []Grad{
			{"scatterset", two(func(x, u *T) *T { return x.Square().ScatterSet(ints(x, []int32{2, 0, 2}, 3, 1), u.Square(), 0) }), over{in(-1, 1, 3, 4), in(-1, 1, 3, 4)}},
		},
		Bad: []Bad{
			{"scatterset", shape, func(o *Given) (*T, string) { return o.f.ScatterSet(o.at, o.f, 0), here() }},
			{"scatterset", shape, func(o *Given) (*T, string) { return o.f.ScatterSet(millrace.Ones(i32, 5, 2), o.f, 0), here() }},
			{"scatterset", shape, func(o *Given) (*T, string) { return o.f.ScatterSet(o.i, millrace.Ones(f32, 3, 3), 0), here() }},
			{"scatterset", shape, func(o *Given) (*T, string) { return o.zero.ScatterSet(millrace.Zeros(i32), o.zero, 0), here() }},
		},
	},
	{Name: "Tensor.ScatterAdd", Example: func(o In) *T { return o.v.ScatterAdd(o.i, o.b, 0) },
		Grads: []Grad{
			{"scatteradd", two(func(x, u *T) *T { return x.Square().ScatterAdd(ints(x, []int32{2, 0, 2}, 3, 1), u.Square(), 0) }), over{in(-1, 1, 3, 4), in(-1, 1, 3, 4)}},
		},
		Peers: []Peer{
			{Name: "addfromend", Call: func(_ millrace.Place, _ *Case, x []*T) []*T {
				return list(x[0].ScatterAdd(x[1], x[2], 0, millrace.IndexFromEnd))
			}},
		},
		Bad: []Bad{{"scatteradd", dtype, func(o *Given) (*T, string) { return o.f.ScatterAdd(o.f, o.f, 0), here() }}},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return x.ScatterAdd(o.i, o.f, 9) }},
			{Call: func(o *Given, x *T) *T { return o.f.ScatterAdd(o.i, x, 0) }},
			{Call: func(o *Given, x *T) *T { return o.f.ScatterAdd(x, o.f, 0) }},
			{Op: "scatteradd", Call: func(o *Given, x *T) *T { return x.ScatterAdd(o.at2, o.two, 0) }},
		},
	},
	{Name: "Tensor.ScatterMax", Example: func(o In) *T { return o.v.ScatterMax(o.i, o.b, 0) },
		Grads: []Grad{
			{"scattermax", two(func(x, u *T) *T { return x.ScatterMax(ints(x, []int32{2, 0, 2}, 3, 1), u, 0).Square() }), over{apart(-1, 1, 3, 4), apart(-1.01, 0.99, 3, 4)}},
		},
		Points: []Point{{"ScatterMax 2 2", into(millrace.CombineMax, 2, 2)}},
		Bad:    []Bad{{"scattermax", dtype, func(o *Given) (*T, string) { return o.f.ScatterMax(o.i, o.i, 0), here() }}},
		Passes: []Pass{{Op: "scattermax", Call: func(o *Given, x *T) *T { return o.two.ScatterMax(o.at2, x, 0) }}},
	},
	{Name: "Tensor.ScatterMin", Example: func(o In) *T { return o.v.ScatterMin(o.i, o.b, 0) },
		Grads: []Grad{
			{"scattermin", two(func(x, u *T) *T { return x.ScatterMin(ints(x, []int32{2, 0, 2}, 3, 1), u, 0).Square() }), over{apart(-1, 1, 3, 4), apart(-1.01, 0.99, 3, 4)}},
		},
		Bad: []Bad{{"scattermin", dtype, func(o *Given) (*T, string) { return o.b.ScatterMin(o.i, o.b, 0), here() }}},
	},
	{Name: "Tensor.ScatterMul", Example: func(o In) *T { return o.v.ScatterMul(o.i, o.b, 0) },
		Grads: []Grad{
			{"scattermul", one(func(x *T) *T {
				return x.ScatterMul(ints(x, []int32{2, 0, 2}, 3, 1), millrace.OnesOn(x.Stream(), x.DType(), 3, 4).MulScalar(1.5), 0)
			}), over{in(-1, 1, 3, 4)}},
		},
		Points: []Point{{"ScatterMul 2 0", into(millrace.CombineMul, 2, 0)}},
		Bad:    []Bad{{"scattermul", shape, func(o *Given) (*T, string) { return o.f.ScatterMul(o.i, o.f, 2), here() }}},
	},
	{Name: "Tensor.DynamicSlice", Example: func(o In) *T { return o.x.DynamicSlice(o.at, 2, 2) },
		Grads: []Grad{
			{"dynamicslice", one(func(x *T) *T { return x.DynamicSlice(ints(x, []int32{1, 2}, 2), 2, 2).Square() }), a34},
			{"dynamicsliceclamped", one(func(x *T) *T { return x.DynamicSlice(ints(x, []int32{9, 1}, 2), 2, 2).Square() }), a34},
		},
		Bad: []Bad{
			{"dynamicslice", shape, func(o *Given) (*T, string) { return o.f.DynamicSlice(o.at, 3, 1), here() }},
			{"dynamicslice", shape, func(o *Given) (*T, string) { return o.f.DynamicSlice(o.at, 1), here() }},
			{"dynamicslice", shape, func(o *Given) (*T, string) { return o.f.DynamicSlice(o.at, -1, 1), here() }},
			{"dynamicslice", shape, func(o *Given) (*T, string) { return o.f.DynamicSlice(o.i, 1, 1), here() }},
			{"dynamicslice", dtype, func(o *Given) (*T, string) { return o.f.DynamicSlice(o.at.Cast(f32), 1, 1), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return x.DynamicSlice(o.i, 1) }},
			{Call: func(o *Given, x *T) *T { return o.f.DynamicSlice(x, 1, 1) }},
			{Op: "dynamicslice", Call: func(o *Given, x *T) *T { return x.DynamicSlice(o.at2, 1, 1) }},
		},
	},
	{Name: "Tensor.DynamicUpdate", Example: func(o In) *T { return o.x.DynamicUpdate(o.a, o.at) },
		Grads: []Grad{
			{"dynamicupdate", two(func(x, u *T) *T { return x.DynamicUpdate(u, ints(x, []int32{1, 2}, 2)).Square() }), over{in(-1, 1, 3, 4), in(-1, 1, 2, 2)}},
			{"dynamicclamped", two(func(x, u *T) *T { return x.DynamicUpdate(u, ints(x, []int32{9, -3}, 2)).Square() }), over{in(-1, 1, 3, 4), in(-1, 1, 2, 2)}},
		},
		Bad: []Bad{
			{"dynamicupdate", shape, func(o *Given) (*T, string) { return o.f.DynamicUpdate(o.v, o.at), here() }},
			{"dynamicupdate", dtype, func(o *Given) (*T, string) { return o.f.DynamicUpdate(o.i, o.at), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return o.f.DynamicUpdate(x, o.i) }},
			{Op: "dynamicupdate", Call: func(o *Given, x *T) *T { return o.two.DynamicUpdate(x, o.at2) }},
		},
	},
	{Name: "Tensor.OneHot", Documented: "integers → dt", Example: func(o In) *T { return o.i.OneHot(o.dt, 3) },
		Bad: []Bad{
			{"onehot", dtype, func(o *Given) (*T, string) { return o.f.OneHot(f32, 3), here() }},
			{"onehot", shape, func(o *Given) (*T, string) { return o.i.OneHot(f32, -1), here() }},
			{"onehot", dtype, func(o *Given) (*T, string) { return o.i.OneHot(millrace.Invalid, 3), here() }},
			{"onehot", shape, func(o *Given) (*T, string) { return o.deep.Cast(i32).OneHot(f32, 3), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return x.OneHot(millrace.Float32, 3) }},
			{Op: "onehot", Call: func(o *Given, x *T) *T { return x.OneHot(millrace.Float32, 2) }},
		},
	},
}
