package optable

import (
	"math"

	"github.com/millrace-go/millrace"
)

var statistics = []Op{
	{Name: "Tensor.Mean", Example: func(o In) *T { return o.x.Mean(1) },
		Reductions: []Reduction{{Name: "mean", DTypes: floats, Drop: (*T).Mean, Keep: (*T).MeanKeep, Of: mean, Rounds: true, Values: Real}},
		Grads:      []Grad{{"mean", one(func(x *T) *T { return x.Square().Mean(1) }), a34}},
		Points:     []Point{{"Mean", one(func(x *T) *T { return x.Mean() })}},
		Bad: []Bad{
			{"mean", dtype, func(o *Given) (*T, string) { return o.i.Mean(), here() }},
			{"mean", shape, func(o *Given) (*T, string) { return o.f.Mean(-3), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Mean(9) }}, {Op: "mean", Call: func(o *Given, x *T) *T { return x.Mean() }}},
	},
	{Name: "Tensor.MeanKeep", Example: func(o In) *T { return o.x.MeanKeep(1) }},
	{Name: "Tensor.Var", Example: func(o In) *T { return o.x.Var(0, 1) },
		Reductions: []Reduction{
			{Name: "var0", DTypes: floats, Drop: func(t *T, axes ...int) *T { return t.Var(0, axes...) }, Keep: func(t *T, axes ...int) *T { return t.VarKeep(0, axes...) }, Of: variance(0), Rounds: true, Values: Real},
			{Name: "var1", DTypes: floats, Drop: func(t *T, axes ...int) *T { return t.Var(1, axes...) }, Keep: func(t *T, axes ...int) *T { return t.VarKeep(1, axes...) }, Of: variance(1), Rounds: true, Values: Real},
		},
		Grads: []Grad{
			{"var", one(func(x *T) *T { return x.Var(1, 0) }), a34},
			{"vardims", one(func(x *T) *T { return x.Var(1, 0, 2) }), over{in(-1, 1, 2, 3, 4)}},
		},
		Points: []Point{{"Var 0", one(func(x *T) *T { return x.Var(0) })}},
		Bad:    []Bad{{"var", dtype, func(o *Given) (*T, string) { return o.i.Var(0), here() }}},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Var(0, 9) }}, {Op: "var", Call: func(o *Given, x *T) *T { return x.Var(0) }}},
	},
	{Name: "Tensor.VarKeep", Example: func(o In) *T { return o.x.VarKeep(0, 1) }},
	{Name: "Tensor.Std", Example: func(o In) *T { return o.x.Std(0, 1) },
		Reductions: []Reduction{
			{Name: "std", DTypes: floats, Drop: func(t *T, axes ...int) *T { return t.Std(1, axes...) }, Keep: func(t *T, axes ...int) *T { return t.StdKeep(1, axes...) }, Of: func(r []float64) float64 { return math.Sqrt(variance(1)(r)) }, Rounds: true, Values: Real},
		},
		Grads:  []Grad{{"std", one(func(x *T) *T { return x.Std(0, 1) }), a34}},
		Points: []Point{{"Std 0", one(func(x *T) *T { return x.Std(0) })}, {"Std 1", one(func(x *T) *T { return x.Std(1) })}},
		Edges: []Edge{
			{"std", func(x *T) *T { return x.Std(0) }, []float32{0.1, 0.1, 0.1}, []float64{0, 0, 0}},
			{"std of two", func(x *T) *T { return x.Std(0) }, []float32{1e20, -1e20}, []float64{0.5, -0.5}},
		},
		Bad: []Bad{{"std", shape, func(o *Given) (*T, string) { return o.f.Std(0, 1, 1), here() }}},
	},
	{Name: "Tensor.StdKeep", Example: func(o In) *T { return o.x.StdKeep(0, 1) },
		Grads: []Grad{{"stdkeep", one(func(x *T) *T { return x.StdKeep(0, -1) }), a34}},
	},
	{Name: "Tensor.Median", Example: func(o In) *T { return o.x.Median(1) },
		Grads:   []Grad{{"medianeven", one(func(x *T) *T { return x.Median(1).Square() }), a34}, {"median", one(func(x *T) *T { return x.Median(0) }), a34}},
		Points:  []Point{{"Median", one(func(x *T) *T { return x.Median() })}},
		Peers:   []Peer{{Name: "median", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T { return list(x[0].Median(c.List("axes")...)) }}},
		Kernels: []Kernel{{"median", 2, func(_ millrace.Place, x, _ Maker) *T { return x().Median(1) }}},
		Bad: []Bad{
			{"median", dtype, func(o *Given) (*T, string) { return o.i3.Median(), here() }},
			{"median", shape, func(o *Given) (*T, string) { return o.f.Median(2), here() }},
			{"median", shape, func(o *Given) (*T, string) { return millrace.Zeros(f32, 0, 3).Median(0), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Median() }}},
	},
	{Name: "Tensor.MedianKeep", Example: func(o In) *T { return o.x.MedianKeep(1) },
		Grads: []Grad{{"mediankeep", one(func(x *T) *T { return x.Sub(x.MedianKeep(1)).Square() }), a34}},
		Peers: []Peer{
			{Name: "mediankeep", Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(x[0].MedianKeep(c.List("axes")...))
			}},
		},
		Kernels: []Kernel{{"median that keeps", 3, func(_ millrace.Place, x, _ Maker) *T { return x().Sub(x().MedianKeep(1)) }}},
		Bad:     []Bad{{"median", shape, func(o *Given) (*T, string) { return o.f.MedianKeep(2), here() }}},
	},
	{Name: "Tensor.Quantile", Example: func(o In) *T { return o.x.Quantile(0.25, 1) },
		Grads: []Grad{{"quantile", one(func(x *T) *T { return x.Quantile(0.3).Square() }), a34}},
		Points: []Point{
			{"Quantile 0.22236856212514483", one(func(x *T) *T { return x.Quantile(0.22236856212514483) })},
			{"Quantile 0.5", one(func(x *T) *T { return x.Quantile(0.5) })},
		},
		Peers: []Peer{
			{Name: "quantile", Halves: true, Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(x[0].Quantile(c.F("q"), c.List("axes")...))
			}},
		},
		Kernels: []Kernel{{"quantile", 2, func(_ millrace.Place, x, _ Maker) *T { return x().Quantile(0.3, 1) }}},
		Bad: []Bad{
			{"quantile", shape, func(o *Given) (*T, string) { return o.f.Quantile(1.5), here() }},
			{"quantile", shape, func(o *Given) (*T, string) { return o.f.Quantile(math.NaN(), 0), here() }},
			{"quantile", shape, func(o *Given) (*T, string) { return o.f.Quantile(0.5, 0, 0), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Quantile(0.5) }}},
	},
	{Name: "Tensor.QuantileKeep", Example: func(o In) *T { return o.x.QuantileKeep(0.25, 1) },
		Grads: []Grad{{"quantilekeep", one(func(x *T) *T { return x.Mul(x.QuantileKeep(0.3, 0)) }), a34}},
		Peers: []Peer{
			{Name: "quantilekeep", Call: func(_ millrace.Place, c *Case, x []*T) []*T {
				return list(x[0].QuantileKeep(c.F("q"), c.List("axes")...))
			}},
		},
		Bad: []Bad{{"quantile", dtype, func(o *Given) (*T, string) { return o.i3.QuantileKeep(0.5), here() }}},
	},
	{Name: "Tensor.Norm1", Example: func(o In) *T { return o.x.Norm1(1) },
		Reductions: []Reduction{
			{Name: "norm1", DTypes: floats, Drop: (*T).Norm1, Keep: (*T).Norm1Keep, Of: FoldBy(0, func(a, b float64) float64 { return a + math.Abs(b) }), Rounds: true, Values: Real},
		},
		Grads:  []Grad{{"norm1", one(func(x *T) *T { return x.Norm1(1) }), a34}},
		Points: []Point{{"Norm1", one(func(x *T) *T { return x.Norm1() })}},
		Bad:    []Bad{{"norm1", dtype, func(o *Given) (*T, string) { return o.i.Norm1(), here() }}},
	},
	{Name: "Tensor.Norm1Keep", Example: func(o In) *T { return o.x.Norm1Keep(1) }},
	{Name: "Tensor.Norm2", Example: func(o In) *T { return o.x.Norm2(1) },
		Reductions: []Reduction{
			{Name: "norm2", DTypes: floats, Drop: (*T).Norm2, Keep: (*T).Norm2Keep, Of: func(r []float64) float64 {
				return math.Sqrt(FoldBy(0, func(a, b float64) float64 { return a + b*b })(r))
			}, Rounds: true, Values: Real},
		},
		Grads:  []Grad{{"norm2", one(func(x *T) *T { return x.Norm2(1) }), a34}},
		Points: []Point{{"Norm2", one(func(x *T) *T { return x.Norm2() })}},
		Edges:  []Edge{{"norm2", func(x *T) *T { return x.Unsqueeze(-1).Norm2(-1) }, []float32{0, 1e-25, -1e20}, []float64{0, 1, -1}}},
		Bad:    []Bad{{"norm2", shape, func(o *Given) (*T, string) { return o.f.Norm2(5), here() }}},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Norm2(9) }}, {Op: "norm2", Call: func(o *Given, x *T) *T { return x.Norm2() }}},
	},
	{Name: "Tensor.Norm2Keep", Example: func(o In) *T { return o.x.Norm2Keep(1) },
		Grads: []Grad{{"norm2many", one(func(x *T) *T { return x.Norm2Keep(0, -1) }), over{in(-1, 1, 2, 3, 4)}}},
	},
	{Name: "Tensor.LogSumExp", Example: func(o In) *T { return o.x.LogSumExp(1) },
		Reductions: []Reduction{
			{Name: "logsumexp", DTypes: floats, Full: true, Drop: (*T).LogSumExp, Keep: (*T).LogSumExpKeep, Of: logSumExp, Rounds: true, Values: Real},
		},
		Grads:  []Grad{{"logsumexp", one(func(x *T) *T { return x.LogSumExp(1) }), a34}},
		Points: []Point{{"LogSumExp", one(func(x *T) *T { return x.LogSumExp() })}},
		Bad:    []Bad{{"logsumexp", shape, func(o *Given) (*T, string) { return o.none.LogSumExp(0), here() }}},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.LogSumExp(9) }}, {Op: "logsumexp", Call: func(o *Given, x *T) *T { return x.LogSumExp() }}},
	},
	{Name: "Tensor.LogSumExpKeep", Example: func(o In) *T { return o.x.LogSumExpKeep(1) },
		Grads: []Grad{{"lsemany", one(func(x *T) *T { return x.LogSumExpKeep(-1, 0) }), over{in(-1, 1, 2, 3, 4)}}},
		Bad:   []Bad{{"logsumexp", dtype, func(o *Given) (*T, string) { return o.b.LogSumExpKeep(), here() }}},
	},
}

var normalisation = []Op{
	{Name: "Tensor.Softmax", Example: func(o In) *T { return o.x.Softmax(1) },
		Norms: []Norm{
			{Name: "softmax", Call: (*T).Softmax, Hand: func(t *T, axis int) *T {
				e := t.Sub(t.MaxKeep(axis)).Exp()
				return e.Div(e.SumKeep(axis))
			}, Of: softmax, Full: true},
		},
		Grads:  []Grad{{"softmax", one(func(x *T) *T { return x.Softmax(1).Square() }), a34}},
		Points: []Point{{"Softmax", one(func(x *T) *T { return x.Softmax(0) })}},
		Bad: []Bad{
			{"softmax", shape, func(o *Given) (*T, string) { return o.f.Softmax(2), here() }},
			{"softmax", shape, func(o *Given) (*T, string) { return o.none.Softmax(0), here() }},
			{"softmax", shape, func(o *Given) (*T, string) { return o.zero.Softmax(-1), here() }},
			{"softmax", dtype, func(o *Given) (*T, string) { return o.i.Softmax(0), here() }},
		},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.Softmax(9) }}, {Op: "softmax", Call: func(o *Given, x *T) *T { return x.Softmax(-1) }}},
	},
	{Name: "Tensor.LogSoftmax", Example: func(o In) *T { return o.x.LogSoftmax(1) },
		Norms: []Norm{
			{Name: "logsoftmax", Call: (*T).LogSoftmax, Hand: func(t *T, axis int) *T {
				d := t.Sub(t.MaxKeep(axis))
				return d.Sub(d.Exp().SumKeep(axis).Log())
			}, Of: logSoftmax, Full: true},
		},
		Grads:  []Grad{{"logsoftmax", one(func(x *T) *T { return x.LogSoftmax(0) }), a34}},
		Points: []Point{{"LogSoftmax", one(func(x *T) *T { return x.LogSoftmax(0) })}},
		Bad:    []Bad{{"logsoftmax", shape, func(o *Given) (*T, string) { return o.none.LogSoftmax(0), here() }}},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return x.LogSoftmax(9) }},
			{Op: "logsoftmax", Call: func(o *Given, x *T) *T { return x.LogSoftmax(-1) }},
		},
	},
	{Name: "Tensor.MaskedSoftmax", MayBeNil: true, Example: func(o In) *T { return o.x.MaskedSoftmax(o.m, 1) },
		Norms: []Norm{
			{Name: "maskedsoftmax", Call: func(t *T, axis int) *T { return t.MaskedSoftmax(nil, axis) }, Hand: func(t *T, axis int) *T {
				e := t.Sub(t.MaxKeep(axis)).Exp()
				return e.Div(e.SumKeep(axis))
			}, Of: softmax, Full: true},
		},
		Grads:  []Grad{{"maskedsoftmax", one(func(x *T) *T { return x.MaskedSoftmax(hides(x), 1).AddScalar(1).Square() }), a34}},
		Points: []Point{{"MaskedSoftmax", one(func(x *T) *T { return x.MaskedSoftmax(nil, 0) })}},
		Bad: []Bad{
			{"maskedsoftmax", shape, func(o *Given) (*T, string) { return o.f.MaskedSoftmax(nil, 2), here() }},
			{"maskedsoftmax", shape, func(o *Given) (*T, string) { return o.f.MaskedSoftmax(o.b, 2), here() }},
			{"maskedsoftmax", dtype, func(o *Given) (*T, string) { return o.f.MaskedSoftmax(o.f, 0), here() }},
			{"maskedsoftmax", dtype, func(o *Given) (*T, string) { return o.i.MaskedSoftmax(o.b, 0), here() }},
			{"maskedsoftmax", shape, func(o *Given) (*T, string) { return o.v.MaskedSoftmax(o.b, 0), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return x.MaskedSoftmax(nil, 9) }},
			{NilOK: true, Call: func(o *Given, x *T) *T { return o.f.MaskedSoftmax(x, 0) }},
			{Op: "maskedsoftmax", NilOK: true, Call: func(o *Given, x *T) *T { return o.two.MaskedSoftmax(x, -1) }},
		},
	},
	{Name: "Tensor.MaskedLogSoftmax", MayBeNil: true, Example: func(o In) *T { return o.x.MaskedLogSoftmax(o.m, 1) },
		Grads: []Grad{
			{"maskedlogsoftmax", one(func(x *T) *T {
				m := hides(x)
				return millrace.ScalarWhere(m, 0, x.MaskedLogSoftmax(m, 1)).Square()
			}), a34},
		},
		Points: []Point{{"MaskedLogSoftmax", one(func(x *T) *T { y := x.MaskedLogSoftmax(nil, 0); return millrace.ScalarWhere(y.IsInf(), 0, y) })}},
		Bad:    []Bad{{"maskedlogsoftmax", shape, func(o *Given) (*T, string) { return o.zero.MaskedLogSoftmax(nil, -1), here() }}},
		Passes: []Pass{{Call: func(o *Given, x *T) *T { return x.MaskedLogSoftmax(o.i, 9) }}},
	},
	{Name: "Tensor.LayerNorm", MayBeNil: true, Example: func(o In) *T { return o.x.LayerNorm(nil, nil, 1e-5) },
		Norms: []Norm{
			{Name: "layernorm", Call: func(t *T, axis int) *T { return t.LayerNorm(nil, nil, 1e-3, axis) }, Hand: func(t *T, axis int) *T {
				d := t.Sub(t.MeanKeep(axis))
				return d.Mul(d.Square().MeanKeep(axis).AddScalar(1e-3).Rsqrt())
			}, Of: layerNorm},
		},
		Grads: []Grad{
			{"layernorm", func(in []*T) *T { return in[0].LayerNorm(in[1], in[2], 1e-3) }, over{in(-2, 2, 3, 4), in(0.5, 1.5, 4), in(-1, 1, 4)}},
			{"layernormbare", one(func(x *T) *T { return x.LayerNorm(nil, nil, 1e-3, 0, 1) }), a34},
			{"lnfirst", func(in []*T) *T { return in[0].LayerNorm(in[1], nil, 1e-3, 0) }, over{in(-2, 2, 3, 4), in(0.5, 1.5, 3, 1)}},
			{"lnfull", func(in []*T) *T { return in[0].LayerNorm(in[1], in[2], 1e-3, -1) }, over{in(-2, 2, 3, 4), in(0.5, 1.5, 3, 4), in(-1, 1, 1)}},
		},
		Points: []Point{
			{"LayerNorm 1e-5", one(func(x *T) *T { return x.LayerNorm(nil, nil, 1e-5) })},
			{"LayerNorm 0", one(func(x *T) *T { return x.LayerNorm(nil, nil, 0) })},
		},
		Bad: []Bad{
			{"layernorm", dtype, func(o *Given) (*T, string) { return o.f.LayerNorm(o.d, nil, 0), here() }},
			{"layernorm", shape, func(o *Given) (*T, string) { return o.f.LayerNorm(nil, o.at.Cast(f32), 0), here() }},
			{"layernorm", shape, func(o *Given) (*T, string) { return o.v.LayerNorm(o.f, nil, 0), here() }},
			{"layernorm", dtype, func(o *Given) (*T, string) { return o.i.LayerNorm(nil, nil, 0), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return x.LayerNorm(nil, nil, 0, 9) }},
			{NilOK: true, Call: func(o *Given, x *T) *T { return o.f.LayerNorm(x, nil, 0) }},
			{NilOK: true, Call: func(o *Given, x *T) *T { return o.f.LayerNorm(nil, x, 0) }},
			{Op: "layernorm", NilOK: true, Call: func(o *Given, x *T) *T { return o.two.LayerNorm(x, nil, 0) }},
		},
	},
	{Name: "Tensor.RMSNorm", MayBeNil: true, Example: func(o In) *T { return o.x.RMSNorm(nil, 1e-5) },
		Norms: []Norm{
			{Name: "rmsnorm", Call: func(t *T, axis int) *T { return t.RMSNorm(nil, 1e-3, axis) }, Hand: func(t *T, axis int) *T {
				return t.Mul(t.Square().MeanKeep(axis).AddScalar(1e-3).Rsqrt())
			}, Of: rmsNorm},
		},
		Grads: []Grad{
			{"rmsnorm", two(func(x, w *T) *T { return x.RMSNorm(w, 1e-3) }), over{in(-2, 2, 3, 4), in(0.5, 1.5, 4)}},
			{"rmsbare", one(func(x *T) *T { return x.RMSNorm(nil, 1e-3, 0) }), a34},
		},
		Points: []Point{{"RMSNorm 1e-5", one(func(x *T) *T { return x.RMSNorm(nil, 1e-5) })}, {"RMSNorm 0", one(func(x *T) *T { return x.RMSNorm(nil, 0) })}},
		Bad:    []Bad{{"rmsnorm", shape, func(o *Given) (*T, string) { return o.f.RMSNorm(nil, 0, 2), here() }}},
		Passes: []Pass{
			{NilOK: true, Call: func(o *Given, x *T) *T { return o.f.RMSNorm(x, 0) }},
			{Op: "rmsnorm", Call: func(o *Given, x *T) *T { return x.RMSNorm(nil, 0) }},
		},
	},
	{Name: "CrossEntropy", Func: millrace.CrossEntropy, Example: func(o In) *T { return millrace.CrossEntropy(o.x, o.i) },
		Grads: []Grad{
			{"crossentropy", one(func(x *T) *T { return millrace.CrossEntropy(x, ints(x, []int32{3, 0, 1}, 3)) }), a34},
			{"ce3", one(func(x *T) *T { return millrace.CrossEntropy(x, ints(x, []int32{3, 0, 1, 2, 2, 0}, 2, 3)).Square() }), over{in(-1, 1, 2, 3, 4)}},
		},
		Points: []Point{{"CrossEntropy 0", entropyOf(0)}, {"CrossEntropy 1", entropyOf(1)}, {"CrossEntropy 2", entropyOf(2)}},
		Bad: []Bad{
			{"crossentropy", shape, func(o *Given) (*T, string) { return millrace.CrossEntropy(o.f, o.v), here() }},
			{"crossentropy", dtype, func(o *Given) (*T, string) { return millrace.CrossEntropy(o.f, o.at.Cast(f32)), here() }},
			{"crossentropy", dtype, func(o *Given) (*T, string) { return millrace.CrossEntropy(o.i, o.at), here() }},
			{"crossentropy", shape, func(o *Given) (*T, string) { return millrace.CrossEntropy(o.zero, o.at), here() }},
			{"crossentropy", shape, func(o *Given) (*T, string) { return millrace.CrossEntropy(o.none.T(), millrace.Zeros(i32, 3)), here() }},
		},
		Passes: []Pass{
			{Call: func(o *Given, x *T) *T { return millrace.CrossEntropy(x, o.i) }},
			{Call: func(o *Given, x *T) *T { return millrace.CrossEntropy(o.f, x) }},
			{Op: "crossentropy", Call: func(o *Given, x *T) *T { return millrace.CrossEntropy(x, o.at2) }},
		},
	},
}
