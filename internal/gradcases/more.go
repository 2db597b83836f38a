package gradcases

import "github.com/millrace-go/millrace"

var zero31 = in(0, 0, 3, 1)

// hides is a mask over rows of four: part of the first row, all of the second, nothing of the last.
func hides(x *T) *T {
	return millrace.FromSliceOn(x.Stream(), []bool{true, false, false, true, true, true, true, true, false, false, false, false}, 3, 4)
}

// more are other calls of ops: options, axes counted from the end, backward slices, all
// combinations, zeros.
var more = []Case{
	{"concatmany", func(in []*T) *T { return millrace.Concat(-1, in[0], in[1], in[0], in[2], in[1]).Square() }, ops{in(-1, 1, 3, 2), in(-1, 1, 3, 1), in(-1, 1, 3, 4)}},
	{"stacklast", two(func(x, y *T) *T { return millrace.Stack(-1, x, y, x).Square() }), ops{in(-1, 1, 3, 2), in(-1, 1, 3, 2)}},
	{"repeatfirst", one(func(x *T) *T { return x.Repeat(3, 0).Square() }), a34}, {"tilemore", one(func(x *T) *T { return x.Tile(2, 1, 3).Square() }), a34},
	{"remscalar", one(func(x *T) *T { return x.RemScalar(0.7).Square() }), ops{in(0.8, 1.3, 5)}}, {"triu", one(func(x *T) *T { return x.Triu(1).Square() }), a34},
	{"vardims", one(func(x *T) *T { return x.Var(1, 0, 2) }), ops{in(-1, 1, 2, 3, 4)}}, {"stdkeep", one(func(x *T) *T { return x.StdKeep(0, -1) }), a34},
	{"powints", one(func(x *T) *T { return x.PowInt(-3).Add(x.PowInt(1)).Add(x.PowInt(0)).Add(x.PowInt(2)) }), ops{in(0.5, 2, 5)}},
	{"pownegative", one(func(x *T) *T { return x.PowScalar(3).Add(x.PowScalar(2)).Add(x.PowScalar(1)) }), ops{apart(-2, 2, 6)}},
	{"powzero", two(func(x, z *T) *T { return x.Mul(z.PowScalar(3)).Add(z.PowScalar(2)).Add(z.PowScalar(1)) }), ops{in(-2, 2, 3, 1), zero31}},
	{"indexset", two(func(x, u *T) *T { return x.IndexSet(ints(x, []int32{2, 0}, 2), u, 0).Square() }), ops{in(-1, 1, 3, 4), in(-1, 1, 2, 4)}},
	{"indexsetlast", two(func(x, u *T) *T { return x.IndexSet(ints(x, []int32{3, 0, 3}, 3), u, -1).Square() }), ops{in(-1, 1, 3, 4), in(-1, 1, 3, 3)}},
	{"putadd", two(func(x, u *T) *T { return x.Put(ints(x, []int32{2, 0, 2}, 3), u, 0, millrace.CombineAdd).Square() }), ops{in(-1, 1, 3, 4), in(-1, 1, 3, 4)}},
	{"putset", two(func(x, u *T) *T {
		return x.Put(ints(x, []int32{2, 9, 2}, 3), u, 0, millrace.CombineSet, millrace.IndexDrop).Square()
	}), ops{in(-1, 1, 3, 4), in(-1, 1, 3, 4)}},
	{"putmax", two(func(x, u *T) *T {
		return x.Put(ints(x, []int32{1, 9, 1}, 3), u, 1, millrace.CombineMax, millrace.IndexClamp).Square()
	}), ops{apart(-1, 1, 3, 4), apart(-1.01, 0.99, 3, 3)}},
	{"putmul", one(func(x *T) *T {
		return x.Put(ints(x, []int32{1, 3, 1}, 3), millrace.OnesOn(x.Stream(), x.DType(), 3, 3).MulScalar(1.5), 1, millrace.CombineMul).Square()
	}), a34},
	{"scatterlast", two(func(x, u *T) *T { return x.ScatterAdd(ints(x, []int32{3, 0, 3, 1, 1, 1}, 3, 2), u, -1).Square() }), ops{in(-1, 1, 3, 4), in(-1, 1, 3, 2)}},
	{"einsumone", one(func(x *T) *T { return millrace.Einsum("abc->cb", x).Square() }), ops{in(-1, 1, 2, 3, 4)}},
	{"einsumtrace", two(func(x, y *T) *T { return millrace.Einsum("aab,bc->c", x, y) }), ops{in(-1, 1, 3, 3, 2), in(-1, 1, 2, 4)}},
	{"matmulvecleft", two((*T).MatMul), ops{in(-1, 1, 3), in(-1, 1, 2, 3, 4)}}, {"matmulbroad", two((*T).MatMul), ops{in(-1, 1, 2, 1, 3, 4), in(-1, 1, 5, 4, 2)}},
	{"dotgeneralbatches", two(func(x, y *T) *T { return x.DotGeneral(y, []int{1, 0}, []int{0, 2}, []int{3}, []int{3}) }), ops{in(-1, 1, 2, 3, 4, 5), in(-1, 1, 3, 2, 2, 5)}},
	{"assignscalar", one(func(x *T) *T { return x.AssignScalar(3, millrace.R(1, 3), millrace.R(0, 4, 2)).Square() }), a34},
	{"assignbackwards", two(func(x, y *T) *T { return x.Assign(y, millrace.R(2, 0, -1)).Square() }), ops{in(-1, 1, 3, 4), in(-1, 1, 1)}},
	{"assignturned", two(func(x, y *T) *T { return x.Assign(y, millrace.R(2, 0, -1), millrace.R(3, 0, -2)).Square() }), ops{in(-1, 1, 3, 4), in(-1, 1, 2, 2)}},
	{"assignat", two(func(x, y *T) *T { return x.Assign(y, millrace.At(-1)).Square() }), ops{in(-1, 1, 3, 4), in(-1, 1, 4)}},
	{"dynamicclamped", two(func(x, u *T) *T { return x.DynamicUpdate(u, ints(x, []int32{9, -3}, 2)).Square() }), ops{in(-1, 1, 3, 4), in(-1, 1, 2, 2)}},
	{"dynamicsliceclamped", one(func(x *T) *T { return x.DynamicSlice(ints(x, []int32{9, 1}, 2), 2, 2).Square() }), a34},
	{"topklow", one(func(x *T) *T { v, _ := millrace.TopK(x, 2, 0); return v.Square() }), a34},
	{"norm2many", one(func(x *T) *T { return x.Norm2Keep(0, -1) }), ops{in(-1, 1, 2, 3, 4)}}, {"lsemany", one(func(x *T) *T { return x.LogSumExpKeep(-1, 0) }), ops{in(-1, 1, 2, 3, 4)}},
	{"lnfirst", func(in []*T) *T { return in[0].LayerNorm(in[1], nil, 1e-3, 0) }, ops{in(-2, 2, 3, 4), in(0.5, 1.5, 3, 1)}},
	{"lnfull", func(in []*T) *T { return in[0].LayerNorm(in[1], in[2], 1e-3, -1) }, ops{in(-2, 2, 3, 4), in(0.5, 1.5, 3, 4), in(-1, 1, 1)}},
	{"maskedsoftmax", one(func(x *T) *T { return x.MaskedSoftmax(hides(x), 1).AddScalar(1).Square() }), a34},
	{"maskedlogsoftmax", one(func(x *T) *T {
		m := hides(x)
		return millrace.ScalarWhere(m, 0, x.MaskedLogSoftmax(m, 1)).Square()
	}), a34},
	{"rmsbare", one(func(x *T) *T { return x.RMSNorm(nil, 1e-3, 0) }), a34},
	{"prodzero", func(in []*T) *T { return millrace.Concat(1, in...).Prod(1) }, ops{in(-1, 1, 3, 2), zero31, in(-1, 1, 3, 2)}},
	{"prodzeros", func(in []*T) *T { return millrace.Concat(1, in[0], in[1], in[2], in[1]).Prod(1) }, ops{in(-1, 1, 3, 2), zero31, in(-1, 1, 3, 2)}},
	{"cumprodzero", func(in []*T) *T { return millrace.Concat(1, in...).CumProd(1) }, ops{in(-1, 1, 3, 2), zero31, in(-1, 1, 3, 2)}},
	{"cumprodzeros", func(in []*T) *T { return millrace.Concat(1, in[0], in[1], in[2], in[1]).CumProd(1) }, ops{in(-1, 1, 3, 2), zero31, in(-1, 1, 3, 2)}},
	{"cumprodfirst", one(func(x *T) *T { return x.CumProd(0) }), a34}, {"cummaxone", one(func(x *T) *T { return x.Slice(millrace.R(0, 1)).CumMax(0).Square() }), a34},
	{"scalarwhere", one(func(x *T) *T { return millrace.ScalarWhere(x.GtScalar(0), 3, x.Square()) }), a34},
	{"wherebroad", two(func(x, y *T) *T { return millrace.Where(y.GtScalar(0), x, y).Square() }), ops{apart(-2, 2, 4), apart(-2, 2, 4, 1)}},
	{"clampone", func(in []*T) *T { return in[0].Clamp(in[1], in[2]).Square() }, ops{apart(-2, 2, 3, 4), in(-0.9, -0.8), in(0.8, 0.9, 1)}},
	{"rank8", one(func(x *T) *T { return x.Permute(7, 6, 5, 4, 3, 2, 1, 0).CumSum(3).Softmax(7).Prod(4).Max(2) }), ops{apart(-1, 1, 1, 2, 1, 2, 1, 2, 1, 2)}},
	{"rank8rows", one(func(x *T) *T { return x.CumProd(1).CumMax(3).Sort(5).LogSumExp(7, 1) }), ops{apart(0.5, 1, 1, 2, 1, 2, 1, 2, 1, 2)}},
	{"rank8pool", one(func(x *T) *T { return x.MaxPool(w(2, 1, 1, 0, 0), w(1, 1, 1, 0, 0), w(2, 1, 1, 0, 0)).Square() }), ops{apart(-1, 1, 1, 2, 1, 2, 1, 3, 1, 2)}},
	{"windowsgap", one(func(x *T) *T { return x.Windows(-1, w(2, 3, 1, 0, 0), 0).Square() }), a34}, {"windowsone", one(func(x *T) *T { return x.MaxPool(w(1, 2, 1, 0, 0)).Square() }), a34},
	{"windowsdilated", one(func(x *T) *T { return x.ReduceWindow(millrace.ReduceMax, w(2, 3, 2, 1, 2), w(2, 3, 1, 1, 1)).Square() }), ops{apart(-1, 1, 2, 4, 5)}},
	{"avgpoolend", one(func(x *T) *T { return x.AvgPool(w(3, 2, 1, 2, 2)).Square() }), a34},
	{"convcrop", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Stride: []int{3}, Padding: [][2]int{{3, 3}}}) }), ops{in(-1, 1, 2, 2, 4), in(-1, 1, 3, 2, 2)}},
	{"convdepthwise", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Groups: 3}) }), ops{in(-1, 1, 2, 3, 5), in(-1, 1, 6, 1, 2)}},
	{"convtransposedilated", two(func(x, k *T) *T {
		return x.ConvTranspose(k, millrace.ConvOptions{Stride: []int{2}, Dilation: []int{3}, Padding: [][2]int{{2, 1}}, OutputPadding: []int{1}})
	}), ops{in(-1, 1, 2, 3, 4), in(-1, 1, 3, 2, 3)}},
	{"ce3", one(func(x *T) *T { return millrace.CrossEntropy(x, ints(x, []int32{3, 0, 1, 2, 2, 0}, 2, 3)).Square() }), ops{in(-1, 1, 2, 3, 4)}},
	{"sliceoverlap", one(func(x *T) *T {
		return x.Slice(millrace.R(0, 2)).Square().Add(x.Slice(millrace.R(1, 3))).Mul(x.Slice(millrace.R(0, 3, 2)))
	}), a34},
	{"slicesteps", one(func(x *T) *T {
		return x.Slice(millrace.All, millrace.R(0, 4, 2)).Square().Add(x.Slice(millrace.All, millrace.R(1, 4, 2)))
	}), a34},
	{"tostream", one(func(x *T) *T { return x.To(x.Stream().Device().NewStream()).Square().To(x.Stream()) }), a34},
}
