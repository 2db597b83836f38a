package optable

import (
	"bytes"
	"math"

	"github.com/millrace-go/millrace"
)

var fromGo = []Op{
	{Name: "FromSlice", Func: millrace.FromSlice[float32], Documented: "all",
		Example: func(o In) *T { return millrace.FromSlice([]float32{1, 2, 3, 4}, 2, 2) },
		Bad: []Bad{
			{"fromslice", shape, func(o *Given) (*T, string) { return millrace.FromSlice([]float32{1, 2, 3}, 2, 2), here() }},
			{"fromslice", shape, func(o *Given) (*T, string) { return millrace.FromSlice([]float32{1, 2, 3}, -3), here() }},
			{"fromslice", shape, func(o *Given) (*T, string) {
				return millrace.FromSlice([]float32{1}, 1, 1, 1, 1, 1, 1, 1, 1, 1), here()
			}},
		},
	},
	{Name: "FromSliceOn", Func: millrace.FromSliceOn[float32], Documented: "all",
		Example: func(o In) *T { return millrace.FromSliceOn(o.device, []float32{1, 2}) },
		Bad:     []Bad{{"fromslice", nil, func(o *Given) (*T, string) { return millrace.FromSliceOn(nil, []float32{1}), here() }}},
	},
	{Name: "Scalar", Func: millrace.Scalar[float32], Documented: "all", Example: func(o In) *T { return millrace.Scalar(int32(7)) }},
	{Name: "ScalarOn", Func: millrace.ScalarOn[float32], Documented: "all", Example: func(o In) *T { return millrace.ScalarOn(o.device, int32(7)) }},
	{Name: "FromReader", Func: millrace.FromReader, Documented: "all",
		Example: func(o In) (*T, error) { return millrace.FromReader(bytes.NewReader([]byte{1, 2}), millrace.Uint8, 2) },
	},
	{Name: "FromReaderOn", Func: millrace.FromReaderOn, Documented: "all",
		Example: func(o In) (*T, error) {
			return millrace.FromReaderOn(o.device, bytes.NewReader([]byte{1, 2}), millrace.Uint8, 2)
		},
	},
}

var filled = []Op{
	{Name: "Zeros", Func: millrace.Zeros, Example: func(o In) *T { return millrace.Zeros(o.dt, 2, 2) },
		Bad: []Bad{
			{"zeros", dtype, func(o *Given) (*T, string) { return millrace.Zeros(100, 2), here() }},
			{"zeros", shape, func(o *Given) (*T, string) { return millrace.Zeros(millrace.Float32, -1), here() }},
		},
	},
	{Name: "ZerosOn", Func: millrace.ZerosOn, Example: func(o In) *T { return millrace.ZerosOn(o.device, o.dt, 2) },
		Bad: []Bad{
			{"zeros", nil, func(o *Given) (*T, string) {
				return millrace.ZerosOn((*millrace.Device)(nil), millrace.Float32, 1), here()
			}},
			{"zeros", nil, func(o *Given) (*T, string) {
				return millrace.ZerosOn((*millrace.Stream)(nil), millrace.Float32, 1), here()
			}},
			{"zeros", nil, func(o *Given) (*T, string) {
				return millrace.ZerosOn((*millrace.Scope)(nil), millrace.Float32, 1), here()
			}},
		},
	},
	{Name: "Ones", Func: millrace.Ones, Example: func(o In) *T { return millrace.Ones(o.dt, 2, 2) },
		Bad: []Bad{
			{"ones", shape, func(o *Given) (*T, string) {
				return millrace.Ones(millrace.Uint8, pow2(31), pow2(31), pow2(31)), here()
			}},
			{"ones", shape, func(o *Given) (*T, string) { return millrace.Ones(millrace.Bool, 1, 1, 1, 1, 1, 1, 1, 1, 1), here() }},
		},
	},
	{Name: "OnesOn", Func: millrace.OnesOn, Example: func(o In) *T { return millrace.OnesOn(o.device, o.dt, 2) }},
	{Name: "Full", Func: millrace.Full, Example: func(o In) *T { return millrace.Full(o.dt, 1, 2, 2) },
		Bad: []Bad{
			{"full", dtype, func(o *Given) (*T, string) { return millrace.Full(millrace.Int32, 0.5, 2), here() }},
			{"full", dtype, func(o *Given) (*T, string) { return millrace.Full(millrace.Invalid, 1, 2), here() }},
		},
	},
	{Name: "FullOn", Func: millrace.FullOn, Example: func(o In) *T { return millrace.FullOn(o.device, o.dt, 1, 2) }},
	{Name: "Arange", Func: millrace.Arange, Example: func(o In) *T { return millrace.Arange(o.dt, 0, 5, 1) },
		Bad: []Bad{
			{"arange", dtype, func(o *Given) (*T, string) { return millrace.Arange(millrace.Bool, 0, 2, 1), here() }},
			{"arange", shape, func(o *Given) (*T, string) { return millrace.Arange(millrace.Int32, 0, 2, 0), here() }},
			{"arange", shape, func(o *Given) (*T, string) { return millrace.Arange(millrace.Float32, 0, math.NaN(), 1), here() }},
			{"arange", shape, func(o *Given) (*T, string) { return millrace.Arange(millrace.Float32, 0, math.Inf(1), 1), here() }},
			{"arange", shape, func(o *Given) (*T, string) { return millrace.Arange(millrace.Float32, 0, 1e300, 1), here() }},
			{"arange", dtype, func(o *Given) (*T, string) { return millrace.Arange(millrace.Uint8, 0, 300, 1), here() }},
			{"arange", dtype, func(o *Given) (*T, string) { return millrace.Arange(millrace.Int32, 0, 3, 0.5), here() }},
		},
	},
	{Name: "ArangeOn", Func: millrace.ArangeOn, Example: func(o In) *T { return millrace.ArangeOn(o.device, o.dt, 0, 5, 1) }},
	{Name: "Linspace", Func: millrace.Linspace, Example: func(o In) *T { return millrace.Linspace(o.dt, 0, 1, 5) },
		Bad: []Bad{
			{"linspace", dtype, func(o *Given) (*T, string) { return millrace.Linspace(millrace.Int32, 0, 1, 3), here() }},
			{"linspace", dtype, func(o *Given) (*T, string) { return millrace.Linspace(f32, 0, 1e300, 3), here() }},
			{"linspace", shape, func(o *Given) (*T, string) { return millrace.Linspace(f32, 0, 1, -1), here() }},
			{"linspace", shape, func(o *Given) (*T, string) { return millrace.Linspace(f32, 0, math.NaN(), 3), here() }},
			{"linspace", shape, func(o *Given) (*T, string) { return millrace.Linspace(f32, math.Inf(1), 0, 3), here() }},
		},
	},
	{Name: "LinspaceOn", Func: millrace.LinspaceOn, Example: func(o In) *T { return millrace.LinspaceOn(o.device, o.dt, 0, 1, 5) },
		Peers: []Peer{
			{Name: "linspace", Call: func(p millrace.Place, c *Case, _ []*T) []*T {
				return list(millrace.LinspaceOn(p, c.Out[0].Type(), c.F("start"), c.F("stop"), c.N("n")))
			}},
		},
		Kernels: []Kernel{
			{"linspace", 1, func(p millrace.Place, x, _ Maker) *T {
				return x().Mul(millrace.LinspaceOn(p, millrace.Float32, 0, 1, 64*64).Reshape(64, 64))
			}},
		},
		Bad: []Bad{{"linspace", nil, func(o *Given) (*T, string) { return millrace.LinspaceOn(nil, f32, 0, 1, 3), here() }}},
	},
	{Name: "Eye", Func: millrace.Eye, Example: func(o In) *T { return millrace.Eye(o.dt, 2) },
		Bad: []Bad{
			{"eye", shape, func(o *Given) (*T, string) { return millrace.Eye(f32, -1), here() }},
			{"eye", shape, func(o *Given) (*T, string) { return millrace.Eye(f32, 1, 2, 3), here() }},
			{"eye", shape, func(o *Given) (*T, string) { return millrace.Eye(f32, pow2(40)), here() }},
			{"eye", dtype, func(o *Given) (*T, string) { return millrace.Eye(millrace.Invalid, 2), here() }},
		},
	},
	{Name: "EyeOn", Func: millrace.EyeOn, Example: func(o In) *T { return millrace.EyeOn(o.device, o.dt, 2) },
		Peers: []Peer{
			{Name: "eye", Call: func(p millrace.Place, c *Case, _ []*T) []*T {
				return list(millrace.EyeOn(p, c.Out[0].Type(), c.N("n"), c.N("m")))
			}},
		},
		Kernels: []Kernel{{"eye", 1, func(p millrace.Place, x, _ Maker) *T { return x().Add(millrace.EyeOn(p, millrace.Float32, 64)) }}},
		Bad:     []Bad{{"eye", nil, func(o *Given) (*T, string) { return millrace.EyeOn(nil, f32, 2), here() }}},
	},
}

var random = []Op{
	{Name: "Uniform", Func: millrace.Uniform, Example: func(o In) *T { return millrace.Uniform(o.dt, 1, 3) },
		Bad: []Bad{{"uniform", dtype, func(o *Given) (*T, string) { return millrace.Uniform(millrace.Int32, 1, 2), here() }}},
	},
	{Name: "UniformOn", Func: millrace.UniformOn, Example: func(o In) *T { return millrace.UniformOn(o.device, o.dt, 1, 3) }},
	{Name: "Normal", Func: millrace.Normal, Example: func(o In) *T { return millrace.Normal(o.dt, 1, 3) },
		Bad: []Bad{{"normal", dtype, func(o *Given) (*T, string) { return millrace.Normal(millrace.Bool, 1, 2), here() }}},
	},
	{Name: "NormalOn", Func: millrace.NormalOn, Example: func(o In) *T { return millrace.NormalOn(o.device, o.dt, 1, 3) }},
	{Name: "Integers", Func: millrace.Integers, Example: func(o In) *T { return millrace.Integers(o.dt, 1, 0, 6, 4) },
		Bad: []Bad{
			{"integers", dtype, func(o *Given) (*T, string) { return millrace.Integers(f32, 1, 0, 2, 3), here() }},
			{"integers", dtype, func(o *Given) (*T, string) { return millrace.Integers(millrace.Bool, 1, 0, 2, 3), here() }},
			{"integers", dtype, func(o *Given) (*T, string) { return millrace.Integers(millrace.Uint8, 1, 0, 257, 3), here() }},
			{"integers", dtype, func(o *Given) (*T, string) { return millrace.Integers(millrace.Uint64, 1, -1, 7, 3), here() }},
			{"integers", dtype, func(o *Given) (*T, string) { return millrace.Integers(millrace.Int8, 1, -129, 7, 3), here() }},
			{"integers", shape, func(o *Given) (*T, string) { return millrace.Integers(i32, 1, 3, 3, 3), here() }},
			{"integers", shape, func(o *Given) (*T, string) { return millrace.Integers(i32, 1, 0, 3, -1), here() }},
			{"integers", shape, func(o *Given) (*T, string) { return millrace.Integers(i32, 1, 0, 3, pow2(32)), here() }},
		},
	},
	{Name: "IntegersOn", Func: millrace.IntegersOn, Example: func(o In) *T { return millrace.IntegersOn(o.device, o.dt, 1, 0, 6, 4) },
		Peers: []Peer{
			{Name: "integers", Call: func(p millrace.Place, c *Case, _ []*T) []*T {
				return list(millrace.IntegersOn(p, c.Out[0].Type(), uint64(c.N("seed")), int64(c.N("lo")), int64(c.N("hi")), c.List("shape")...))
			}},
		},
		Kernels: []Kernel{
			{"integers", 1, func(p millrace.Place, x, _ Maker) *T {
				return x().Add(millrace.IntegersOn(p, millrace.Int32, 3, -5, 5, 64, 64).Cast(millrace.Float32))
			}},
		},
		Bad: []Bad{{"integers", nil, func(o *Given) (*T, string) { return millrace.IntegersOn(nil, i32, 1, 0, 3, 1), here() }}},
	},
	{Name: "Permutation", Func: millrace.Permutation, Example: func(o In) *T { return millrace.Permutation(o.dt, 1, 5) },
		Bad: []Bad{
			{"permutation", dtype, func(o *Given) (*T, string) { return millrace.Permutation(f32, 1, 3), here() }},
			{"permutation", shape, func(o *Given) (*T, string) { return millrace.Permutation(i32, 1, -1), here() }},
			{"permutation", shape, func(o *Given) (*T, string) { return millrace.Permutation(i32, 1, pow2(40)), here() }},
		},
	},
	{Name: "PermutationOn", Func: millrace.PermutationOn, Example: func(o In) *T { return millrace.PermutationOn(o.device, o.dt, 1, 5) },
		Peers: []Peer{
			{Name: "permutation", Call: func(p millrace.Place, c *Case, _ []*T) []*T {
				return list(millrace.PermutationOn(p, c.Out[0].Type(), uint64(c.N("seed")), c.N("n")))
			}},
		},
		Bad: []Bad{{"permutation", nil, func(o *Given) (*T, string) { return millrace.PermutationOn(nil, i32, 1, 3), here() }}},
	},
	{Name: "Multinomial", Func: millrace.Multinomial, Example: func(o In) *T { return millrace.Multinomial(millrace.Int64, 1, o.v, 2, false) },
		Bad: []Bad{
			{"multinomial", dtype, func(o *Given) (*T, string) { return millrace.Multinomial(i32, 1, o.f.Cast(i32), 2, true), here() }},
			{"multinomial", dtype, func(o *Given) (*T, string) { return millrace.Multinomial(f32, 1, o.f, 2, true), here() }},
			{"multinomial", shape, func(o *Given) (*T, string) { return millrace.Multinomial(i32, 1, o.f, 4, false), here() }},
			{"multinomial", shape, func(o *Given) (*T, string) { return millrace.Multinomial(i32, 1, o.f, -1, true), here() }},
			{"multinomial", shape, func(o *Given) (*T, string) { return millrace.Multinomial(i32, 1, o.f, math.MaxInt, true), here() }},
			{"multinomial", shape, func(o *Given) (*T, string) {
				return millrace.Multinomial(i32, 1, millrace.Ones(f32, 1<<20, 3), math.MaxInt/8, true), here()
			}},
			{"multinomial", shape, func(o *Given) (*T, string) { return millrace.Multinomial(i32, 1, millrace.Ones(f32), 1, true), here() }},
			{"multinomial", shape, func(o *Given) (*T, string) {
				return millrace.Multinomial(i32, 1, millrace.Ones(f32, 2, 0), 0, true), here()
			}},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return millrace.Multinomial(i32, 1, x, 9, false) }}},
		Late: []Late{
			{"multinomial", func(late func() *T) []*T {
				return []*T{millrace.Multinomial(millrace.Int32, 1, late(), 1, true), millrace.Multinomial(millrace.Int32, 1, late(), 1, false)}
			}},
		},
	},
	{Name: "Tensor.Philox", Example: func(o In) *T { return o.x.Philox(o.x, o.x) },
		Bad: []Bad{
			{"philox", dtype, func(o *Given) (*T, string) { return o.i.Philox(o.i, o.i), here() }},
			{"philox", dtype, func(o *Given) (*T, string) {
				u := millrace.Ones(millrace.Uint32, 2)
				return u.Philox(u, millrace.Ones(millrace.Uint64)), here()
			}},
			{"philox", shape, func(o *Given) (*T, string) {
				u := millrace.Ones(millrace.Uint32, 2)
				return u.Philox(u, millrace.Ones(millrace.Uint32, 3)), here()
			}},
		},
	},
}

var places = []Op{
	{Name: "Tensor.To", Example: func(o In) *T { return o.b.To(o.device) },
		Grads: []Grad{{"tostream", one(func(x *T) *T { return x.To(x.Stream().Device().NewStream()).Square().To(x.Stream()) }), a34}},
		Bad: []Bad{
			{"to", nil, func(o *Given) (*T, string) { return o.f.To(nil), here() }},
			{"to", nil, func(o *Given) (*T, string) { return (*T)(nil).To(nil), here() }},
		},
	},
}
