package optable

import (
	"math"

	"github.com/millrace-go/millrace"
)

var joining = []Op{
	{Name: "Concat", Func: millrace.Concat, Example: func(o In) *T { return millrace.Concat(0, o.x, o.y) },
		Grads: []Grad{
			{"concat", two(func(x, y *T) *T { return millrace.Concat(1, x, y, x).Square() }), over{in(-1, 1, 3, 2), in(-1, 1, 3, 4)}},
			{"concatmany", func(in []*T) *T { return millrace.Concat(-1, in[0], in[1], in[0], in[2], in[1]).Square() }, over{in(-1, 1, 3, 2), in(-1, 1, 3, 1), in(-1, 1, 3, 4)}},
		},
		Bad: []Bad{
			{"concat", shape, func(o *Given) (*T, string) { return millrace.Concat(0), here() }},
			{"concat", shape, func(o *Given) (*T, string) { return millrace.Concat(2, o.f, o.f), here() }},
			{"concat", shape, func(o *Given) (*T, string) { return millrace.Concat(0, o.f, o.v), here() }},
			{"concat", shape, func(o *Given) (*T, string) {
				return millrace.Concat(0, o.f, o.f, o.f, millrace.Ones(f32, 2, 4)), here()
			}},
			{"concat", dtype, func(o *Given) (*T, string) { return millrace.Concat(0, o.f, o.i), here() }},
			{"concat", shape, func(o *Given) (*T, string) { return millrace.Concat(0, o.zero), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return millrace.Concat(9, o.f, x) }},
			{Op: "concat", Call: func(o *Given, x *T) *T { return millrace.Concat(0, o.two, x) }},
		},
	},
	{Name: "Stack", Func: millrace.Stack, Example: func(o In) *T { return millrace.Stack(1, o.b, o.b) },
		Grads: []Grad{
			{"stack", two(func(x, y *T) *T { return millrace.Stack(1, x, y).Square() }), over{in(-1, 1, 3, 2), in(-1, 1, 3, 2)}},
			{"stacklast", two(func(x, y *T) *T { return millrace.Stack(-1, x, y, x).Square() }), over{in(-1, 1, 3, 2), in(-1, 1, 3, 2)}},
		},
		Bad: []Bad{
			{"stack", shape, func(o *Given) (*T, string) { return millrace.Stack(0), here() }},
			{"stack", shape, func(o *Given) (*T, string) { return millrace.Stack(3, o.f), here() }},
			{"stack", shape, func(o *Given) (*T, string) { return millrace.Stack(-4, o.f), here() }},
			{"stack", shape, func(o *Given) (*T, string) { return millrace.Stack(0, o.f, o.v), here() }},
			{"stack", dtype, func(o *Given) (*T, string) { return millrace.Stack(0, o.f, o.b), here() }},
			{"stack", shape, func(o *Given) (*T, string) { return millrace.Stack(0, o.deep), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return millrace.Stack(9, o.f, x) }},
			{Op: "stack", Call: func(o *Given, x *T) *T { return millrace.Stack(0, x, o.two) }},
		},
	},
	{Name: "Tensor.Tile", Example: func(o In) *T { return o.b.Tile(2) },
		Grads: []Grad{
			{"tile", one(func(x *T) *T { return x.Tile(2, 3).Square() }), a34},
			{"tilemore", one(func(x *T) *T { return x.Tile(2, 1, 3).Square() }), a34},
		},
		Bad: []Bad{
			{"tile", shape, func(o *Given) (*T, string) { return o.f.Tile(2, -1), here() }},
			{"tile", shape, func(o *Given) (*T, string) { return o.f.Tile(pow2(40), pow2(40)), here() }},
			{"tile", shape, func(o *Given) (*T, string) { return o.f.Tile(math.MaxInt, 1), here() }},
			{"tile", shape, func(o *Given) (*T, string) { return o.v.Tile(1, 1, 1, 1, 1, 1, 1, 1, 2), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Tile(-1) }}, {Op: "tile", Call: func(o *Given, x *T) *T { return x.Tile(2) }}},
	},
	{Name: "Tensor.Repeat", Example: func(o In) *T { return o.b.Repeat(2, 0) },
		Grads: []Grad{
			{"repeat", one(func(x *T) *T { return x.Repeat(3, 1).Square() }), a34},
			{"repeatfirst", one(func(x *T) *T { return x.Repeat(3, 0).Square() }), a34},
		},
		Bad: []Bad{
			{"repeat", shape, func(o *Given) (*T, string) { return o.f.Repeat(-1, 0), here() }},
			{"repeat", shape, func(o *Given) (*T, string) { return o.f.Repeat(1, 2), here() }},
			{"repeat", shape, func(o *Given) (*T, string) { return o.f.Repeat(math.MaxInt, 0), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Repeat(2, 9) }}, {Op: "repeat", Call: func(o *Given, x *T) *T { return x.Repeat(2, 0) }}},
	},
	{Name: "Tensor.Pad", Example: func(o In) *T { return o.b.Pad(0, millrace.Padding{Before: 1, After: 2}) },
		Grads: []Grad{
			{"pad", one(func(x *T) *T {
				return x.Pad(2, millrace.Padding{Before: 1, After: 2, Between: 1}, millrace.Padding{Before: -1, After: 1}).Square()
			}), a34},
		},
		Bad: []Bad{
			{"pad", shape, func(o *Given) (*T, string) {
				return o.f.Pad(0, millrace.Padding{}, millrace.Padding{}, millrace.Padding{}), here()
			}},
			{"pad", shape, func(o *Given) (*T, string) { return o.f.Pad(0, millrace.Padding{Between: -1}), here() }},
			{"pad", shape, func(o *Given) (*T, string) { return o.f.Pad(0, millrace.Padding{Before: -2, After: -2}), here() }},
			{"pad", shape, func(o *Given) (*T, string) { return o.f.Pad(0, millrace.Padding{Before: math.MaxInt}), here() }},
			{"pad", shape, func(o *Given) (*T, string) { return o.f.Pad(0, millrace.Padding{Between: math.MaxInt}), here() }},
			{"pad", shape, func(o *Given) (*T, string) { return o.f.Pad(0, millrace.Padding{Between: pow2(62)}), here() }},
			{"pad", shape, func(o *Given) (*T, string) {
				return o.f.Pad(0, millrace.Padding{Before: math.MinInt, After: math.MaxInt}), here()
			}},
			{"pad", dtype, func(o *Given) (*T, string) { return o.i.Pad(0.5, millrace.Padding{Before: 1}), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return x.Pad(0, millrace.Padding{Before: 1}) }},
			{Op: "pad", Call: func(o *Given, x *T) *T { return x.Pad(0, millrace.Padding{Before: 1}) }},
		},
	},
	{Name: "Tensor.Roll", Example: func(o In) *T { return o.v.Roll(1, 0) },
		Grads:  []Grad{{"roll", one(func(x *T) *T { return x.Roll(1, 1).Square() }), a34}},
		Bad:    []Bad{{"roll", shape, func(o *Given) (*T, string) { return o.f.Roll(1, 2), here() }}},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Roll(1, 9) }}, {Op: "roll", Call: func(o *Given, x *T) *T { return x.Roll(1, 0) }}},
	},
	{Name: "Tensor.Tril", Example: func(o In) *T { return o.a.Tril(0) },
		Grads:  []Grad{{"tril", one(func(x *T) *T { return x.Tril(0).Square() }), a34}},
		Bad:    []Bad{{"tril", shape, func(o *Given) (*T, string) { return o.zero.Tril(0), here() }}},
		Passes: []Pass{{Op: "tril", Call: func(o *Given, x *T) *T { return x.Tril(0) }}},
	},
	{Name: "Tensor.Triu", Example: func(o In) *T { return o.a.Triu(0) },
		Grads:  []Grad{{"triu", one(func(x *T) *T { return x.Triu(1).Square() }), a34}},
		Bad:    []Bad{{"triu", shape, func(o *Given) (*T, string) { return o.v.Triu(0), here() }}},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Triu(0) }}, {Op: "triu", Call: func(o *Given, x *T) *T { return x.Triu(0) }}},
	},
	{Name: "Tensor.Assign", Example: func(o In) *T { return o.x.Assign(o.y, millrace.All) },
		Grads: []Grad{
			{"assign", two(func(x, y *T) *T { return x.Assign(y, millrace.R(1, 3), millrace.R(0, 4, 2)).Square() }), over{in(-1, 1, 3, 4), in(-1, 1, 2)}},
			{"assignbackwards", two(func(x, y *T) *T { return x.Assign(y, millrace.R(2, 0, -1)).Square() }), over{in(-1, 1, 3, 4), in(-1, 1, 1)}},
			{"assignturned", two(func(x, y *T) *T { return x.Assign(y, millrace.R(2, 0, -1), millrace.R(3, 0, -2)).Square() }), over{in(-1, 1, 3, 4), in(-1, 1, 2, 2)}},
			{"assignat", two(func(x, y *T) *T { return x.Assign(y, millrace.At(-1)).Square() }), over{in(-1, 1, 3, 4), in(-1, 1, 4)}},
		},
		Bad: []Bad{
			{"assign", shape, func(o *Given) (*T, string) { return o.f.Assign(o.v, millrace.All, millrace.R(0, 2)), here() }},
			{"assign", shape, func(o *Given) (*T, string) { return o.f.Assign(o.v, millrace.At(2)), here() }},
			{"assign", shape, func(o *Given) (*T, string) { return o.v.Assign(o.v, millrace.All, millrace.All), here() }},
			{"assign", dtype, func(o *Given) (*T, string) { return o.f.Assign(o.i), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return x.Assign(o.f) }},
			{Call: func(o *Given, x *T) *T { return o.f.Assign(x) }},
			{Op: "assign", Call: func(o *Given, x *T) *T { return o.two.Assign(x) }},
		},
	},
	{Name: "Tensor.AssignScalar", Example: func(o In) *T { return o.x.AssignScalar(0, millrace.At(0)) },
		Grads: []Grad{{"assignscalar", one(func(x *T) *T { return x.AssignScalar(3, millrace.R(1, 3), millrace.R(0, 4, 2)).Square() }), a34}},
		Bad: []Bad{
			{"assign", dtype, func(o *Given) (*T, string) { return o.i.AssignScalar(0.5), here() }},
			{"assign", shape, func(o *Given) (*T, string) { return o.i.AssignScalar(1, millrace.R(0, 1, 0)), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.AssignScalar(0.5) }}},
	},
}
