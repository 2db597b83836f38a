package optable

import (
	"math"

	"github.com/millrace-go/millrace"
)

var views = []Op{
	{Name: "Tensor.Reshape", Example: func(o In) *T { return o.x.Reshape(3, -1) },
		Grads: []Grad{{"reshape", one(func(x *T) *T { return x.Reshape(2, 6).Square() }), a34}},
		Bad: []Bad{
			{"reshape", shape, func(o *Given) (*T, string) { return o.f.Reshape(4), here() }},
			{"reshape", shape, func(o *Given) (*T, string) { return o.f.Reshape(-1, -1), here() }},
			{"reshape", shape, func(o *Given) (*T, string) { return o.f.Reshape(-1, 4), here() }},
			{"reshape", shape, func(o *Given) (*T, string) { return o.none.Reshape(-1, 0), here() }},
			{"reshape", shape, func(o *Given) (*T, string) { return o.f.Reshape(-2, -3), here() }},
			{"reshape", shape, func(o *Given) (*T, string) { return o.f.Reshape(-1, math.MaxInt, math.MaxInt), here() }},
			{"reshape", nil, func(o *Given) (*T, string) { return (*T)(nil).Reshape(1), here() }},
		},
		Passes: []Pass{{Op: "reshape", Call: func(o *Given, x *T) *T { return x.Reshape(4) }}},
	},
	{Name: "Tensor.Flatten", Example: func(o In) *T { return o.x.Flatten(0, -1) },
		Grads: []Grad{{"flatten", one(func(x *T) *T { return x.Flatten(0, 1).Square() }), over{in(-1, 1, 2, 3, 4)}}},
		Peers: []Peer{
			{Name: "flatten", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(x[0].Flatten(c.N("i"), c.N("j")))
			}},
		},
		Bad: []Bad{
			{"flatten", shape, func(o *Given) (*T, string) { return o.f.Flatten(1, 0), here() }},
			{"flatten", shape, func(o *Given) (*T, string) { return o.f.Flatten(0, 2), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Flatten(0, 9) }}},
	},
	{Name: "Tensor.Permute", Example: func(o In) *T { return o.x.Permute(1, 0) },
		Grads: []Grad{{"permute", one(func(x *T) *T { return x.Permute(2, 0, 1).Square() }), over{in(-1, 1, 2, 3, 4)}}},
		Bad: []Bad{
			{"permute", shape, func(o *Given) (*T, string) { return o.f.Permute(0), here() }},
			{"permute", shape, func(o *Given) (*T, string) { return o.f.Permute(0, 0), here() }},
			{"permute", shape, func(o *Given) (*T, string) { return o.f.Permute(-1, 1), here() }},
			{"permute", shape, func(o *Given) (*T, string) { return o.f.Permute(0, 2), here() }},
		},
	},
	{Name: "Tensor.T", Example: func(o In) *T { return o.x.T() },
		Bad: []Bad{{"permute", nil, func(o *Given) (*T, string) { return new(T).T(), here() }}},
	},
	{Name: "Tensor.Transpose", Example: func(o In) *T { return o.x.Transpose(0, 1) },
		Grads: []Grad{{"transpose", one(func(x *T) *T { return x.Transpose(0, 2).Square() }), over{in(-1, 1, 2, 3, 4)}}},
		Peers: []Peer{
			{Name: "transpose", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(x[0].Transpose(c.N("i"), c.N("j")))
			}},
		},
		Kernels: []Kernel{{"transpose", 1, func(_ millrace.Place, x, _ Maker) *T { return x().Transpose(0, 1).Exp() }}},
		Bad: []Bad{
			{"transpose", shape, func(o *Given) (*T, string) { return o.f.Transpose(0, 2), here() }},
			{"transpose", shape, func(o *Given) (*T, string) { return o.f.Transpose(-3, 0), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Transpose(0, 9) }}},
	},
	{Name: "Tensor.MoveAxis", Example: func(o In) *T { return o.x.MoveAxis(0, 1) },
		Grads: []Grad{{"moveaxis", one(func(x *T) *T { return x.MoveAxis(0, 2).Square() }), over{in(-1, 1, 2, 3, 4)}}},
		Peers: []Peer{
			{Name: "moveaxis", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(x[0].MoveAxis(c.N("i"), c.N("j")))
			}},
		},
		Bad: []Bad{
			{"moveaxis", shape, func(o *Given) (*T, string) { return o.f.MoveAxis(2, 0), here() }},
			{"moveaxis", shape, func(o *Given) (*T, string) { return o.zero.MoveAxis(0, 0), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.MoveAxis(0, 9) }}},
	},
	{Name: "Tensor.Squeeze", Example: func(o In) *T { return o.image.Squeeze() },
		Grads: []Grad{{"squeeze", one(func(x *T) *T { return x.Unsqueeze(1).Square().Squeeze() }), a34}},
		Bad: []Bad{
			{"squeeze", shape, func(o *Given) (*T, string) { return o.f.Squeeze(0), here() }},
			{"squeeze", shape, func(o *Given) (*T, string) { return o.f.Squeeze(-3), here() }},
		},
		Passes: []Pass{{Op: "squeeze", Call: func(o *Given, x *T) *T { return x.Squeeze() }}},
	},
	{Name: "Tensor.Unsqueeze", Example: func(o In) *T { return o.b.Unsqueeze(-1) },
		Bad: []Bad{
			{"unsqueeze", shape, func(o *Given) (*T, string) { return o.f.Unsqueeze(3), here() }},
			{"unsqueeze", shape, func(o *Given) (*T, string) { return o.f.Unsqueeze(-4), here() }},
			{"reshape", shape, func(o *Given) (*T, string) { return o.deep.Unsqueeze(0), here() }},
		},
	},
	{Name: "Tensor.Expand", Example: func(o In) *T { return o.b.Expand(2, 2) },
		Grads: []Grad{{"expand", one(func(x *T) *T { return x.Expand(5, 3, 4).Square() }), over{in(-1, 1, 3, 1)}}},
		Bad: []Bad{
			{"expand", shape, func(o *Given) (*T, string) { return o.f.Expand(2, 4), here() }},
			{"expand", shape, func(o *Given) (*T, string) { return o.f.Expand(3), here() }},
			{"expand", shape, func(o *Given) (*T, string) { return o.d3.Expand(-1, 3), here() }},
			{"expand", shape, func(o *Given) (*T, string) { return o.deep.Expand(1, 1, 1, 1, 1, 1, 1, 1, 1), here() }},
			{"expand", shape, func(o *Given) (*T, string) { return o.d3.Expand(math.MaxInt, 3), here() }},
		},
	},
	{Name: "Tensor.Slice", Example: func(o In) *T { return o.x.Slice(millrace.All, millrace.R(0, 2)) },
		Grads: []Grad{
			{"slice", one(func(x *T) *T { return x.Slice(millrace.R(1, 3), millrace.R(0, 4, 2)).Square() }), a34},
			{"sliceback", one(func(x *T) *T { return x.Slice(millrace.R(2, 0, -1), millrace.R(3, 0, -2)).Square() }), a34},
			{"at", one(func(x *T) *T { return x.Slice(millrace.At(1)).Square() }), a34},
			{"parts", one(func(x *T) *T {
				var s *T
				for i := range 3 {
					p := x.Slice(millrace.At(i)).MulScalar(float64(i + 1)).Square()
					if s == nil {
						s = p
					} else {
						s = s.Add(p)
					}
				}
				return s.Add(x.Slice(millrace.At(1)))
			}), a34},
			{"gaps", one(func(x *T) *T {
				return x.Slice(millrace.At(2)).Square().Mul(x.Slice(millrace.At(0)))
			}), a34},
			{"sliceoverlap", one(func(x *T) *T {
				return x.Slice(millrace.R(0, 2)).Square().Add(x.Slice(millrace.R(1, 3))).Mul(x.Slice(millrace.R(0, 3, 2)))
			}), a34},
			{"slicesteps", one(func(x *T) *T {
				return x.Slice(millrace.All, millrace.R(0, 4, 2)).Square().Add(x.Slice(millrace.All, millrace.R(1, 4, 2)))
			}), a34},
		},
		Bad: []Bad{
			{"slice", shape, func(o *Given) (*T, string) { return o.g.Slice(millrace.All, millrace.All), here() }},
			{"slice", shape, func(o *Given) (*T, string) { return o.g.Slice(millrace.R(0, 4, 0)), here() }},
			{"slice", shape, func(o *Given) (*T, string) { return o.g.Slice(millrace.R(0, 4, 1, 2)), here() }},
			{"slice", shape, func(o *Given) (*T, string) { return o.g.Slice(millrace.At(4)), here() }},
			{"slice", shape, func(o *Given) (*T, string) { return o.g.Slice(millrace.At(-5)), here() }},
			{"slice", shape, func(o *Given) (*T, string) { return o.none.Slice(millrace.At(0)), here() }},
			{"slice", nil, func(o *Given) (*T, string) { return (*T)(nil).Slice(millrace.At(0)), here() }},
		},
		Passes: []Pass{{Op: "slice", Call: func(o *Given, x *T) *T { return x.Slice(millrace.At(0)) }}},
	},
	{Name: "Tensor.Flip", Example: func(o In) *T { return o.x.Flip(1) },
		Grads: []Grad{{"flip", one(func(x *T) *T { return x.Flip(1).Square() }), a34}},
		Bad: []Bad{
			{"flip", shape, func(o *Given) (*T, string) { return o.f.Flip(2), here() }},
			{"flip", shape, func(o *Given) (*T, string) { return o.f.Flip(0, -2), here() }},
		},
	},
	{Name: "Tensor.Diag", Example: func(o In) *T { return o.a.Diag(0) },
		Grads: []Grad{
			{"diagvector", one(func(x *T) *T { return x.Diag(-1).Square() }), over{in(-1, 1, 3)}},
			{"diagmatrix", one(func(x *T) *T { return x.Diag(1).Square() }), a34},
		},
		Peers: []Peer{{Name: "diag", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T { return list(x[0].Diag(c.N("k"))) }}},
		Kernels: []Kernel{
			{"diag of a vector", 1, func(_ millrace.Place, x, v Maker) *T { return x().Add(v().Diag(0)) }},
			{"diag of a matrix", 1, func(_ millrace.Place, x, v Maker) *T { return x().Diag(0).Add(v()) }},
		},
		Bad: []Bad{
			{"diag", shape, func(o *Given) (*T, string) { return o.zero.Diag(0), here() }},
			{"diag", shape, func(o *Given) (*T, string) { return o.v.Diag(math.MinInt), here() }},
			{"diag", shape, func(o *Given) (*T, string) { return o.v.Diag(pow2(40)), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Diag(0) }}},
	},
	{Name: "Tensor.Windows", Example: func(o In) *T { return o.v.Windows(0, millrace.Window{Size: 3}, 0) },
		Grads: []Grad{
			{"windows", one(func(x *T) *T { return x.Windows(1, w(2, 2, 1, 1, 0), 0).Square() }), a34},
			{"windowsapart", one(func(x *T) *T { return x.Windows(1, w(2, 3, 1, 1, 2), 0).Square() }), over{in(-1, 1, 2, 7)}},
			{"windowsover", one(func(x *T) *T { return x.Windows(0, w(3, 2, 1, 1, 1), 0).Square() }), over{in(-1, 1, 6, 2)}},
			{"windowsdilated", one(func(x *T) *T { return x.Windows(0, w(3, 2, 3, 4, 1), 0).Square() }), over{in(-1, 1, 7, 2)}},
			{"windowsfar", one(func(x *T) *T { return x.Windows(-1, w(4, 10, 2, 1, 9), 0).Square() }), over{in(-1, 1, 2, 13)}},
			{"windowsgaps", one(func(x *T) *T { return x.Windows(-1, w(3, 4, 2, 0, 0), 0).Square() }), over{in(-1, 1, 2, 9)}},
			{"windowsgap", one(func(x *T) *T { return x.Windows(-1, w(2, 3, 1, 0, 0), 0).Square() }), a34},
			{"windowsdilated", one(func(x *T) *T { return x.ReduceWindow(millrace.ReduceMax, w(2, 3, 2, 1, 2), w(2, 3, 1, 1, 1)).Square() }), over{apart(-1, 1, 2, 4, 5)}},
		},
		Bad: []Bad{
			{"windows", shape, func(o *Given) (*T, string) { return o.f.Windows(2, millrace.Window{Size: 1}, 0), here() }},
			{"windows", shape, func(o *Given) (*T, string) { return o.f.Windows(0, millrace.Window{}, 0), here() }},
			{"windows", shape, func(o *Given) (*T, string) { return o.f.Windows(0, millrace.Window{Size: 1, Stride: -1}, 0), here() }},
			{"windows", shape, func(o *Given) (*T, string) { return o.f.Windows(0, millrace.Window{Size: 1, Before: -1}, 0), here() }},
			{"windows", shape, func(o *Given) (*T, string) {
				return o.f.Windows(0, millrace.Window{Size: 1, Before: math.MaxInt, After: math.MaxInt}, 0), here()
			}},
			{"windows", shape, func(o *Given) (*T, string) {
				return o.f.Windows(0, millrace.Window{Size: 1, Before: math.MaxInt / 2}, 0), here()
			}},
			{"windows", shape, func(o *Given) (*T, string) { return o.deep.Windows(0, millrace.Window{Size: 1}, 0), here() }},
			{"window", dtype, func(o *Given) (*T, string) { return o.i.Windows(0, millrace.Window{Size: 1}, 0.5), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Windows(9, millrace.Window{}, 0) }}},
	},
	{Name: "Split", Func: millrace.Split, Example: func(o In) []*T { return millrace.Split(o.v, 0, 2, 3) },
		Grads: []Grad{{"split", one(func(x *T) *T { s := millrace.Split(x, 1, 1, 3); return s[0].Square().Mul(s[1]) }), a34}},
		Peers: []Peer{
			{Name: "split", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return millrace.Split(x[0], c.N("axis"), c.List("sizes")...)
			}},
		},
		Bad: []Bad{
			{"split", shape, func(o *Given) (*T, string) { return lastOf(millrace.Split(o.f, 1, 1, 1)), here() }},
			{"split", shape, func(o *Given) (*T, string) { return firstOf(millrace.Split(o.f, 1, 4, -1)), here() }},
			{"split", shape, func(o *Given) (*T, string) { return firstOf(millrace.Split(o.f, 1)), here() }},
			{"split", shape, func(o *Given) (*T, string) {
				return firstOf(millrace.Split(o.f, 1, math.MaxInt, math.MaxInt, 5)), here()
			}},
			{"split", shape, func(o *Given) (*T, string) { return firstOf(millrace.Split(o.f, 2, 3)), here() }},
		},
		Passes:  []Pass{{Call: func(o *Given, x *T) *T { return lastOf(millrace.Split(x, 9, 1, 2)) }}},
		Several: []Several{{"split", func(x *T) []*T { return millrace.Split(x, 7, 1, 1, 1) }}},
	},
	{Name: "Chunk", Func: millrace.Chunk, Example: func(o In) []*T { return millrace.Chunk(o.v, 2, 0) },
		Grads: []Grad{{"chunk", one(func(x *T) *T { s := millrace.Chunk(x, 2, -1); return s[0].Square().Mul(s[1]) }), a34}},
		Peers: []Peer{
			{Name: "chunk", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return millrace.Chunk(x[0], c.N("n"), c.N("axis"))
			}},
		},
		Bad: []Bad{
			{"chunk", shape, func(o *Given) (*T, string) { return firstOf(millrace.Chunk(o.f, 0, 1)), here() }},
			{"chunk", shape, func(o *Given) (*T, string) { return firstOf(millrace.Chunk(o.f, 2, -3)), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return lastOf(millrace.Chunk(x, 0, 9)) }}},
	},
}
