// Package gradcases has a function for every rule of package autodiff, for tests on any device.
package gradcases

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/millrace-go/millrace"
)

// T is an abbreviation.
type T = millrace.Tensor

// Case is a function of tensors that has derivatives within the operands' ranges.
type Case struct {
	Name string
	F    func(in []*T) *T
	Ops  []Operand
}

// Operand is an input of a case: its shape, and the range of its elements.
type Operand struct {
	Shape  []int
	Lo, Hi float64
	Apart  bool // all elements differ by more than a step of central differences
}

// Values are random elements.
func (o Operand) Values(r *rand.Rand) []float64 {
	n := 1
	for _, d := range o.Shape {
		n *= d
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = o.Lo + float64((o.Hi-o.Lo)*r.Float64())
	}
	if o.Apart {
		for i, k := range r.Perm(n) {
			v[i] = o.Lo + float64((o.Hi-o.Lo)*(float64(k)+0.5)/float64(n))
		}
	}
	return v
}

// Weigh makes one number of a result, with a different weight for each element.
func Weigh(y *T) *T {
	w := make([]float32, y.Len())
	for i := range w {
		w[i] = float32(math.Sin(float64(i)*1.3 + 0.7))
	}
	return y.Mul(millrace.FromSliceOn(y.Stream(), w, y.Shape()...).Cast(y.DType())).Sum()
}

func in(lo, hi float64, shape ...int) Operand {
	return Operand{append([]int{}, shape...), lo, hi, false}
}
func apart(lo, hi float64, shape ...int) Operand {
	return Operand{append([]int{}, shape...), lo, hi, true}
}

func one(f func(x *T) *T) func(in []*T) *T    { return func(in []*T) *T { return f(in[0]) } }
func two(f func(x, y *T) *T) func(in []*T) *T { return func(in []*T) *T { return f(in[0], in[1]) } }

func w(size, stride, dilation, before, after int) millrace.Window {
	return millrace.Window{Size: size, Stride: stride, Dilation: dilation, Before: before, After: after}
}

// ints makes indices on x's stream.
func ints(x *T, v []int32, shape ...int) *T { return millrace.FromSliceOn(x.Stream(), v, shape...) }

type ops = []Operand

var a34 = ops{apart(-2, 2, 3, 4)}

// Cases are one or several for each rule.
var Cases = slices.Concat(plain, more, everyday)

// plain are ops in their usual calls.
var plain = []Case{
	{"neg", one((*T).Neg), a34}, {"abs", one((*T).Abs), a34}, {"square", one((*T).Square), a34},
	{"sqrt", one((*T).Sqrt), ops{in(0.5, 2, 5)}}, {"rsqrt", one((*T).Rsqrt), ops{in(0.5, 2, 5)}}, {"recip", one((*T).Recip), ops{in(0.5, 2, 5)}},
	{"exp", one((*T).Exp), a34}, {"exp2", one((*T).Exp2), a34}, {"expm1", one((*T).Expm1), a34},
	{"log", one((*T).Log), ops{in(0.5, 2, 5)}}, {"log2", one((*T).Log2), ops{in(0.5, 2, 5)}}, {"log1p", one((*T).Log1p), ops{in(0.5, 2, 5)}},
	{"sin", one((*T).Sin), a34}, {"cos", one((*T).Cos), a34}, {"tan", one((*T).Tan), ops{in(-1, 1, 5)}}, {"tanh", one((*T).Tanh), a34},
	{"sinh", one((*T).Sinh), a34}, {"cosh", one((*T).Cosh), a34},
	{"asin", one((*T).Asin), ops{in(-0.8, 0.8, 5)}}, {"acos", one((*T).Acos), ops{in(-0.8, 0.8, 5)}}, {"atan", one((*T).Atan), a34},
	{"sigmoid", one((*T).Sigmoid), a34}, {"erf", one((*T).Erf), a34}, {"relu", one((*T).Relu), a34}, {"gelu", one((*T).Gelu), a34},
	{"gelutanh", one((*T).GeluTanh), a34}, {"silu", one((*T).Silu), a34}, {"softplus", one((*T).Softplus), a34},
	{"add", two((*T).Add), ops{in(-2, 2, 3, 4), in(-2, 2, 4)}}, {"sub", two((*T).Sub), ops{in(-2, 2, 3, 1), in(-2, 2, 4)}},
	{"mul", two((*T).Mul), ops{in(-2, 2, 2, 3, 4), in(-2, 2, 3, 1)}}, {"div", two((*T).Div), ops{in(-2, 2, 3, 4), in(1, 2, 1, 4)}},
	{"mulself", one(func(x *T) *T { return x.Mul(x) }), a34}, {"addself", one(func(x *T) *T { return x.Add(x) }), a34}, {"divself", one(func(x *T) *T { return x.Div(x.AddScalar(3)) }), a34},
	{"rem", two((*T).Rem), ops{in(5.1, 5.9, 3), in(1.8, 1.9, 3)}}, {"pow", two((*T).Pow), ops{in(0.5, 2, 3, 4), in(-2, 2, 4)}},
	{"scalars", one(func(x *T) *T { return x.AddScalar(1).ScalarSub(3).MulScalar(2).DivScalar(3).SubScalar(1) }), a34},
	{"scalardiv", one(func(x *T) *T { return x.ScalarDiv(3) }), ops{in(0.5, 2, 5)}}, {"powscalar", one(func(x *T) *T { return x.PowScalar(2.5) }), ops{in(0.5, 2, 5)}},
	{"scalarpow", one(func(x *T) *T { return x.ScalarPow(2.5) }), ops{in(0.5, 2, 5)}}, {"powint", one(func(x *T) *T { return x.PowInt(5).Add(x.PowInt(-2)) }), ops{in(0.5, 2, 5)}},
	{"scalarrem", one(func(x *T) *T { return x.ScalarRem(7) }), ops{in(2.1, 2.2, 3)}},
	{"maximum", two((*T).Maximum), ops{apart(-2, 2, 3, 4), apart(-2.01, 1.99, 3, 4)}}, {"minimum", two((*T).Minimum), ops{apart(-2, 2, 3, 4), apart(-2.01, 1.99, 4)}},
	{"maximumscalar", one(func(x *T) *T { return x.MaximumScalar(0.1).MinimumScalar(1) }), a34},
	{"atan2", two((*T).Atan2), ops{in(0.5, 2, 3), in(-2, -0.5, 3)}}, {"atan2scalar", one(func(x *T) *T { return x.Atan2Scalar(1.5).Add(x.ScalarAtan2(1.5)) }), ops{in(0.5, 2, 3)}},
	{"where", two(func(x, y *T) *T { return millrace.Where(x.Gt(y), x.Square(), y.MulScalar(3)) }), ops{apart(-2, 2, 3, 4), apart(-2.01, 1.99, 4)}},
	{"wherescalar", one(func(x *T) *T { return millrace.WhereScalar(x.GtScalar(0), x.Square(), 3) }), a34},
	{"clamp", func(in []*T) *T { return in[0].Clamp(in[1], in[2]) }, ops{apart(-2, 2, 3, 4), apart(-1.01, -0.51, 4), apart(0.51, 1.01, 3, 1)}},
	{"clampscalar", one(func(x *T) *T { return x.ClampScalar(-1, 1) }), a34},
	{"cast", one(func(x *T) *T { return x.Cast(millrace.Float64).Square() }), a34},
	{"reshape", one(func(x *T) *T { return x.Reshape(2, 6).Square() }), a34}, {"permute", one(func(x *T) *T { return x.Permute(2, 0, 1).Square() }), ops{in(-1, 1, 2, 3, 4)}},
	{"slice", one(func(x *T) *T { return x.Slice(millrace.R(1, 3), millrace.R(0, 4, 2)).Square() }), a34},
	{"sliceback", one(func(x *T) *T { return x.Slice(millrace.R(2, 0, -1), millrace.R(3, 0, -2)).Square() }), a34},
	{"at", one(func(x *T) *T { return x.Slice(millrace.At(1)).Square() }), a34}, {"flip", one(func(x *T) *T { return x.Flip(1).Square() }), a34},
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
	{"expand", one(func(x *T) *T { return x.Expand(5, 3, 4).Square() }), ops{in(-1, 1, 3, 1)}}, {"squeeze", one(func(x *T) *T { return x.Unsqueeze(1).Square().Squeeze() }), a34},
	{"pad", one(func(x *T) *T {
		return x.Pad(2, millrace.Padding{Before: 1, After: 2, Between: 1}, millrace.Padding{Before: -1, After: 1}).Square()
	}), a34},
	{"concat", two(func(x, y *T) *T { return millrace.Concat(1, x, y, x).Square() }), ops{in(-1, 1, 3, 2), in(-1, 1, 3, 4)}},
	{"stack", two(func(x, y *T) *T { return millrace.Stack(1, x, y).Square() }), ops{in(-1, 1, 3, 2), in(-1, 1, 3, 2)}},
	{"assign", two(func(x, y *T) *T { return x.Assign(y, millrace.R(1, 3), millrace.R(0, 4, 2)).Square() }), ops{in(-1, 1, 3, 4), in(-1, 1, 2)}},
	{"tile", one(func(x *T) *T { return x.Tile(2, 3).Square() }), a34}, {"repeat", one(func(x *T) *T { return x.Repeat(3, 1).Square() }), a34}, {"roll", one(func(x *T) *T { return x.Roll(1, 1).Square() }), a34},
	{"tril", one(func(x *T) *T { return x.Tril(0).Square() }), a34}, {"maskedfill", one(func(x *T) *T { return x.MaskedFill(x.GtScalar(1), 3).Square() }), a34},
	{"take", one(func(x *T) *T { return x.Take(ints(x, []int32{2, 0, 2, 1}, 2, 2), 0).Square() }), a34},
	{"takedeep", one(func(x *T) *T { return x.Take(ints(x, []int32{2, 0, 2, 1, 1, 0, 2, 2}, 2, 2, 2), 1).Square() }), ops{in(-1, 1, 2, 3, 4)}},
	{"takealongrepeated", one(func(x *T) *T {
		return x.TakeAlong(ints(x, []int32{2, 0, 2, 1, 1, 0, 2, 2}, 1, 4, 2), 2).Square()
	}), ops{in(-1, 1, 3, 1, 4)}},
	{"takealong", one(func(x *T) *T { return x.TakeAlong(ints(x, []int32{2, 0, 2, 1, 1, 1}, 3, 2), 1).Square() }), a34},
	{"takedrop", one(func(x *T) *T { return x.Take(ints(x, []int32{2, 7, -1}, 3), 0, millrace.IndexDrop).Square() }), a34},
	{"takeclamp", one(func(x *T) *T { return x.Take(ints(x, []int32{2, 7, -1}, 3), 0, millrace.IndexClamp).Square() }), a34},
	{"scatteradd", two(func(x, u *T) *T { return x.Square().ScatterAdd(ints(x, []int32{2, 0, 2}, 3, 1), u.Square(), 0) }), ops{in(-1, 1, 3, 4), in(-1, 1, 3, 4)}},
	{"scatterset", two(func(x, u *T) *T { return x.Square().ScatterSet(ints(x, []int32{2, 0, 2}, 3, 1), u.Square(), 0) }), ops{in(-1, 1, 3, 4), in(-1, 1, 3, 4)}},
	{"scattermax", two(func(x, u *T) *T { return x.ScatterMax(ints(x, []int32{2, 0, 2}, 3, 1), u, 0).Square() }), ops{apart(-1, 1, 3, 4), apart(-1.01, 0.99, 3, 4)}},
	{"scattermin", two(func(x, u *T) *T { return x.ScatterMin(ints(x, []int32{2, 0, 2}, 3, 1), u, 0).Square() }), ops{apart(-1, 1, 3, 4), apart(-1.01, 0.99, 3, 4)}},
	{"scattermul", one(func(x *T) *T {
		return x.ScatterMul(ints(x, []int32{2, 0, 2}, 3, 1), millrace.OnesOn(x.Stream(), x.DType(), 3, 4).MulScalar(1.5), 0)
	}), ops{in(-1, 1, 3, 4)}},
	{"indexadd", two(func(x, u *T) *T { return x.IndexAdd(ints(x, []int32{2, 0}, 2), u, 0).Square() }), ops{in(-1, 1, 3, 4), in(-1, 1, 2, 4)}},
	{"dynamicslice", one(func(x *T) *T { return x.DynamicSlice(ints(x, []int32{1, 2}, 2), 2, 2).Square() }), a34},
	{"dynamicupdate", two(func(x, u *T) *T { return x.DynamicUpdate(u, ints(x, []int32{1, 2}, 2)).Square() }), ops{in(-1, 1, 3, 4), in(-1, 1, 2, 2)}},
	{"sum", one(func(x *T) *T { return x.Square().Sum(1) }), a34}, {"sumkeep", one(func(x *T) *T { return x.Square().SumKeep(0) }), a34}, {"sumall", one(func(x *T) *T { return x.Square().Sum() }), a34},
	{"prod", one(func(x *T) *T { return x.Prod(0, 2) }), ops{in(-1, 1, 2, 3, 4)}}, {"max", one(func(x *T) *T { return x.Max(1) }), a34}, {"min", one(func(x *T) *T { return x.MinKeep(0, 1).Square() }), a34},
	{"mean", one(func(x *T) *T { return x.Square().Mean(1) }), a34}, {"var", one(func(x *T) *T { return x.Var(1, 0) }), a34}, {"std", one(func(x *T) *T { return x.Std(0, 1) }), a34},
	{"logsumexp", one(func(x *T) *T { return x.LogSumExp(1) }), a34}, {"norm1", one(func(x *T) *T { return x.Norm1(1) }), a34}, {"norm2", one(func(x *T) *T { return x.Norm2(1) }), a34},
	{"cumsum", one(func(x *T) *T { return x.CumSum(1).Square() }), a34}, {"cumprod", one(func(x *T) *T { return x.CumProd(1) }), a34},
	{"cummax", one(func(x *T) *T { return x.CumMax(1).Square() }), a34}, {"cummin", one(func(x *T) *T { return x.CumMin(0).Square() }), a34},
	{"sort", one(func(x *T) *T { return x.Sort(1).Square() }), a34}, {"sortdescending", one(func(x *T) *T { return x.SortDescending(0).Square() }), a34},
	{"topk", one(func(x *T) *T { v, _ := millrace.TopK(x, 2, 1); return v.Square() }), a34},
	{"softmax", one(func(x *T) *T { return x.Softmax(1).Square() }), a34}, {"logsoftmax", one(func(x *T) *T { return x.LogSoftmax(0) }), a34},
	{"layernorm", func(in []*T) *T { return in[0].LayerNorm(in[1], in[2], 1e-3) }, ops{in(-2, 2, 3, 4), in(0.5, 1.5, 4), in(-1, 1, 4)}},
	{"layernormbare", one(func(x *T) *T { return x.LayerNorm(nil, nil, 1e-3, 0, 1) }), a34},
	{"rmsnorm", two(func(x, w *T) *T { return x.RMSNorm(w, 1e-3) }), ops{in(-2, 2, 3, 4), in(0.5, 1.5, 4)}},
	{"crossentropy", one(func(x *T) *T { return millrace.CrossEntropy(x, ints(x, []int32{3, 0, 1}, 3)) }), a34},
	{"matmul", two((*T).MatMul), ops{in(-1, 1, 2, 3, 4), in(-1, 1, 4, 5)}}, {"matvec", two((*T).MatMul), ops{in(-1, 1, 3, 4), in(-1, 1, 4)}}, {"dotvec", two((*T).MatMul), ops{in(-1, 1, 4), in(-1, 1, 4)}},
	{"matmulone", two((*T).MatMul), ops{in(-1, 1, 1, 3, 4), in(-1, 1, 2, 4, 5)}}, {"matmulself", one(func(x *T) *T { return x.MatMul(x.T()) }), a34},
	{"dotgeneral", two(func(x, y *T) *T { return x.DotGeneral(y, []int{0}, []int{1}, []int{2}, []int{0}) }), ops{in(-1, 1, 2, 3, 4), in(-1, 1, 4, 2, 5)}},
	{"einsum", two(func(x, y *T) *T { return millrace.Einsum("abc,cd->dab", x, y) }), ops{in(-1, 1, 2, 3, 4), in(-1, 1, 4, 2)}}, {"einsumsum", two(func(x, y *T) *T { return millrace.Einsum("ab,cb->a", x, y) }), ops{in(-1, 1, 2, 3), in(-1, 1, 4, 3)}},
	{"outer", two(func(x, y *T) *T { return millrace.Einsum("a,b->ba", x, y) }), ops{in(-1, 1, 3), in(-1, 1, 4)}}, {"diagonal", one(func(x *T) *T { return millrace.Einsum("aa->a", x).Square() }), ops{in(-1, 1, 3, 3)}},
	{"conv", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{}) }), ops{in(-1, 1, 2, 3, 5, 4), in(-1, 1, 2, 3, 3, 2)}},
	{"convopts", two(func(x, k *T) *T {
		return x.Conv(k, millrace.ConvOptions{Stride: []int{2, 3}, Dilation: []int{2, 1}, Padding: [][2]int{{1, 2}, {0, 1}}, Groups: 2})
	}), ops{in(-1, 1, 2, 4, 7, 8), in(-1, 1, 6, 2, 3, 2)}},
	{"conv1d", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Stride: []int{2}}) }), ops{in(-1, 1, 2, 3, 8), in(-1, 1, 4, 3, 3)}},
	{"convtranspose", two(func(x, k *T) *T {
		return x.ConvTranspose(k, millrace.ConvOptions{Stride: []int{2, 1}, Padding: [][2]int{{1, 0}, {0, 1}}, OutputPadding: []int{1, 0}})
	}), ops{in(-1, 1, 2, 3, 3, 4), in(-1, 1, 3, 2, 3, 2)}},
	{"convtransposegroups", two(func(x, k *T) *T { return x.ConvTranspose(k, millrace.ConvOptions{Stride: []int{2}, Groups: 2}) }), ops{in(-1, 1, 2, 4, 3), in(-1, 1, 4, 3, 3)}},
	{"convrest", two(func(x, k *T) *T { // elements that no kernel reaches
		return x.Conv(k, millrace.ConvOptions{Stride: []int{2, 3}, Padding: [][2]int{{1, 1}, {0, 1}}})
	}), ops{in(-1, 1, 2, 2, 6, 7), in(-1, 1, 3, 2, 3, 2)}},
	{"convgroups", two(func(x, k *T) *T {
		return x.Conv(k, millrace.ConvOptions{Stride: []int{2, 2}, Dilation: []int{2, 3}, Padding: [][2]int{{2, 1}, {3, 0}}, Groups: 2})
	}), ops{in(-1, 1, 2, 4, 6, 7), in(-1, 1, 6, 2, 2, 2)}},
	{"convplaces", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Stride: []int{3, 2}}) }), ops{in(-1, 1, 2, 2, 6, 6), in(-1, 1, 3, 2, 1, 1)}},
	{"convnone", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Stride: []int{2}}) }), ops{in(-1, 1, 0, 2, 6), in(-1, 1, 3, 2, 3)}},
	{"convpadding", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Padding: [][2]int{{2, 1}}}) }), ops{in(-1, 1, 2, 2, 0), in(-1, 1, 3, 2, 2)}},
	{"convdepth", two(func(x, k *T) *T { return x.Conv(k, millrace.ConvOptions{Groups: 3, Padding: [][2]int{{1, 1}, {1, 1}}}) }), ops{in(-1, 1, 2, 3, 4, 4), in(-1, 1, 3, 1, 3, 3)}},
	{"convtransposejoint", two(func(x, k *T) *T {
		return x.ConvTranspose(k, millrace.ConvOptions{Stride: []int{2, 2}, Padding: [][2]int{{1, 1}, {0, 2}}})
	}), ops{in(-1, 1, 2, 2, 3, 2), in(-1, 1, 2, 2, 4, 4)}},
	{"convtransposebehind", two(func(x, k *T) *T { // output padding of more than a stride
		return x.ConvTranspose(k, millrace.ConvOptions{Stride: []int{2}, Dilation: []int{2}, OutputPadding: []int{3}})
	}), ops{in(-1, 1, 2, 2, 3), in(-1, 1, 2, 3, 2)}},
	{"windows", one(func(x *T) *T { return x.Windows(1, w(2, 2, 1, 1, 0), 0).Square() }), a34},
	{"windowsapart", one(func(x *T) *T { return x.Windows(1, w(2, 3, 1, 1, 2), 0).Square() }), ops{in(-1, 1, 2, 7)}},
	{"windowsover", one(func(x *T) *T { return x.Windows(0, w(3, 2, 1, 1, 1), 0).Square() }), ops{in(-1, 1, 6, 2)}},
	{"windowsdilated", one(func(x *T) *T { return x.Windows(0, w(3, 2, 3, 4, 1), 0).Square() }), ops{in(-1, 1, 7, 2)}},
	{"windowsfar", one(func(x *T) *T { return x.Windows(-1, w(4, 10, 2, 1, 9), 0).Square() }), ops{in(-1, 1, 2, 13)}},
	{"windowsgaps", one(func(x *T) *T { return x.Windows(-1, w(3, 4, 2, 0, 0), 0).Square() }), ops{in(-1, 1, 2, 9)}},
	{"maxpoolover", one(func(x *T) *T { return x.MaxPool(w(3, 2, 1, 1, 1), w(3, 2, 1, 1, 0)).Square() }), ops{apart(-1, 1, 2, 2, 5, 6)}},
	{"maxpooltiles", one(func(x *T) *T { return x.MaxPool(w(2, 2, 1, 0, 0), w(2, 2, 1, 0, 0)).Square() }), ops{apart(-1, 1, 2, 2, 5, 4)}},
	{"maxpool", one(func(x *T) *T { return x.MaxPool(w(2, 2, 1, 0, 0), w(3, 1, 1, 1, 1)).Square() }), ops{apart(-1, 1, 2, 2, 4, 5)}},
	{"minwindow", one(func(x *T) *T { return x.ReduceWindow(millrace.ReduceMin, w(2, 1, 2, 1, 0), w(2, 2, 1, 0, 0)) }), a34},
	{"prodwindow", one(func(x *T) *T { return x.ReduceWindow(millrace.ReduceProd, w(2, 1, 1, 0, 0), w(2, 2, 1, 1, 0)) }), a34},
	{"sumwindow", one(func(x *T) *T { return x.ReduceWindow(millrace.ReduceSum, w(2, 1, 1, 1, 0), w(2, 2, 1, 0, 0)).Square() }), a34},
	{"avgpool", one(func(x *T) *T { return x.AvgPool(w(2, 2, 1, 1, 0), w(3, 1, 1, 1, 1)).Square() }), ops{in(-1, 1, 2, 4, 5)}},
	{"loop", one(func(x *T) *T {
		y := x
		for range 6 {
			y = y.Mul(x).Tanh().Add(y)
		}
		return y
	}), a34},
}
