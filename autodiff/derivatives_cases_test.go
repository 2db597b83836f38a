package autodiff_test

import (
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/linalg"
	"github.com/millrace-go/millrace/nn"
)

func singly(f func(x *T) *T) func(in []*T) *T { return func(in []*T) *T { return f(in[0]) } }

func module(m nn.Module) func(in []*T) *T {
	return func(in []*T) *T { return m.Forward(nn.Eval(), in[0]) }
}

func loss(f func(x, y *T, opts ...nn.LossOption) *T) func(in []*T) *T {
	return func(in []*T) *T { return f(in[0], in[1], nn.Summed()) }
}

func pairwise(f func(x, y *T) *T) func(in []*T) *T {
	return func(in []*T) *T { return f(in[0], in[1]) }
}

func onlyWhere(x *T, f func(x *T) *T) *T { return millrace.WhereScalar(x.GtScalar(0), f(x), 0) }

func entropyOf(k int32) func(in []*T) *T {
	return singly(func(x *T) *T {
		return millrace.CrossEntropy(x.Unsqueeze(0), millrace.FromSliceOn(x.Stream(), []int32{k}))
	})
}

func into(how millrace.Combine, updates ...float64) func(in []*T) *T {
	return singly(func(x *T) *T {
		at := millrace.FromSliceOn(x.Stream(), make([]int32, len(updates)))
		return x.Scatter(at, millrace.FromSliceOn(x.Stream(), updates).Cast(x.DType()), 0, how)
	})
}

// singularFunctions are the functions of testdata/derivatives.json.
var singularFunctions = map[string]func(in []*T) *T{
	"Abs": singly((*T).Abs), "Sqrt": singly((*T).Sqrt), "Rsqrt": singly((*T).Rsqrt), "Recip": singly((*T).Recip), "Square": singly((*T).Square),
	"Exp": singly((*T).Exp), "Exp2": singly((*T).Exp2), "Expm1": singly((*T).Expm1), "Log": singly((*T).Log), "Log2": singly((*T).Log2),
	"Log10": singly((*T).Log10), "Log1p": singly((*T).Log1p), "Sin": singly((*T).Sin), "Cos": singly((*T).Cos), "Tan": singly((*T).Tan),
	"Sinh": singly((*T).Sinh), "Cosh": singly((*T).Cosh), "Tanh": singly((*T).Tanh), "Sigmoid": singly((*T).Sigmoid), "Erf": singly((*T).Erf),
	"Asin": singly((*T).Asin), "Acos": singly((*T).Acos), "Atan": singly((*T).Atan), "Asinh": singly((*T).Asinh), "Acosh": singly((*T).Acosh),
	"Atanh": singly((*T).Atanh), "Relu": singly((*T).Relu), "Gelu": singly((*T).Gelu), "GeluTanh": singly((*T).GeluTanh), "Silu": singly((*T).Silu),
	"Softplus": singly((*T).Softplus), "nn.LeakyReLU": module(nn.LeakyReLU{}), "nn.ELU": module(nn.ELU{}),

	"PowScalar 0": singly(func(x *T) *T { return x.PowScalar(0) }), "PowScalar 0.5": singly(func(x *T) *T { return x.PowScalar(0.5) }),
	"PowScalar 1": singly(func(x *T) *T { return x.PowScalar(1) }), "PowScalar 1.5": singly(func(x *T) *T { return x.PowScalar(1.5) }),
	"PowScalar 2": singly(func(x *T) *T { return x.PowScalar(2) }), "PowScalar 3": singly(func(x *T) *T { return x.PowScalar(3) }),
	"PowScalar -1": singly(func(x *T) *T { return x.PowScalar(-1) }), "PowScalar -0.5": singly(func(x *T) *T { return x.PowScalar(-0.5) }),
	"PowInt 0": singly(func(x *T) *T { return x.PowInt(0) }), "PowInt 1": singly(func(x *T) *T { return x.PowInt(1) }),
	"PowInt 3": singly(func(x *T) *T { return x.PowInt(3) }), "PowInt -1": singly(func(x *T) *T { return x.PowInt(-1) }),
	"ScalarPow 0": singly(func(x *T) *T { return x.ScalarPow(0) }), "ScalarPow 1": singly(func(x *T) *T { return x.ScalarPow(1) }),
	"ScalarPow 2": singly(func(x *T) *T { return x.ScalarPow(2) }), "ScalarPow -2": singly(func(x *T) *T { return x.ScalarPow(-2) }),
	"ScalarDiv 1":                  singly(func(x *T) *T { return x.ScalarDiv(1) }),
	"MaximumScalar 0":              singly(func(x *T) *T { return x.MaximumScalar(0) }),
	"MinimumScalar 0":              singly(func(x *T) *T { return x.MinimumScalar(0) }),
	"ClampScalar -1 1":             singly(func(x *T) *T { return x.ClampScalar(-1, 1) }),
	"RemScalar 2":                  singly(func(x *T) *T { return x.RemScalar(2) }),
	"where x > 0: sqrt(x), else 0": singly(func(x *T) *T { return onlyWhere(x, (*T).Sqrt) }),
	"where x > 0: sqrt(where x > 0: x, else 1), else 0": singly(func(x *T) *T {
		return onlyWhere(x, func(x *T) *T { return millrace.WhereScalar(x.GtScalar(0), x, 1).Sqrt() })
	}),

	"Mul": pairwise((*T).Mul), "Div": pairwise((*T).Div), "Rem": pairwise((*T).Rem), "Pow": pairwise((*T).Pow), "Maximum": pairwise((*T).Maximum),
	"Minimum": pairwise((*T).Minimum), "Atan2": pairwise((*T).Atan2), "Clamp": func(in []*T) *T { return in[0].Clamp(in[1], in[2]) },
	"sqrt(x² + y²)": pairwise(func(x, y *T) *T { return x.Square().Add(y.Square()).Sqrt() }),

	"Sum": singly(func(x *T) *T { return x.Sum() }), "Mean": singly(func(x *T) *T { return x.Mean() }), "Prod": singly(func(x *T) *T { return x.Prod() }),
	"Max": singly(func(x *T) *T { return x.Max() }), "Min": singly(func(x *T) *T { return x.Min() }), "CumProd": singly(func(x *T) *T { return x.CumProd(0) }),
	"CumMax": singly(func(x *T) *T { return x.CumMax(0) }), "CumMin": singly(func(x *T) *T { return x.CumMin(0) }), "Sort": singly(func(x *T) *T { return x.Sort(0) }),
	"TopK 2": singly(func(x *T) *T { v, _ := millrace.TopK(x, 2, 0); return v }), "Median": singly(func(x *T) *T { return x.Median() }),
	"Quantile 0.22236856212514483": singly(func(x *T) *T { return x.Quantile(0.22236856212514483) }),
	"Quantile 0.5":                 singly(func(x *T) *T { return x.Quantile(0.5) }),
	"Softmax":                      singly(func(x *T) *T { return x.Softmax(0) }), "LogSoftmax": singly(func(x *T) *T { return x.LogSoftmax(0) }),
	"MaskedSoftmax":    singly(func(x *T) *T { return x.MaskedSoftmax(nil, 0) }),
	"MaskedLogSoftmax": singly(func(x *T) *T { y := x.MaskedLogSoftmax(nil, 0); return millrace.ScalarWhere(y.IsInf(), 0, y) }),
	"LogSumExp":        singly(func(x *T) *T { return x.LogSumExp() }), "Norm1": singly(func(x *T) *T { return x.Norm1() }), "Norm2": singly(func(x *T) *T { return x.Norm2() }),
	"Std 0": singly(func(x *T) *T { return x.Std(0) }), "Std 1": singly(func(x *T) *T { return x.Std(1) }), "Var 0": singly(func(x *T) *T { return x.Var(0) }),
	"LayerNorm 1e-5": singly(func(x *T) *T { return x.LayerNorm(nil, nil, 1e-5) }), "LayerNorm 0": singly(func(x *T) *T { return x.LayerNorm(nil, nil, 0) }),
	"RMSNorm 1e-5": singly(func(x *T) *T { return x.RMSNorm(nil, 1e-5) }), "RMSNorm 0": singly(func(x *T) *T { return x.RMSNorm(nil, 0) }),
	"CrossEntropy 0": entropyOf(0), "CrossEntropy 1": entropyOf(1), "CrossEntropy 2": entropyOf(2),
	"MaxPool 2":               singly(func(x *T) *T { return x.MaxPool(millrace.Window{Size: 2}) }),
	"product of windows of 2": singly(func(x *T) *T { return x.ReduceWindow(millrace.ReduceProd, millrace.Window{Size: 2}) }),
	"ScatterMax 2 2":          into(millrace.CombineMax, 2, 2), "ScatterMul 2 0": into(millrace.CombineMul, 2, 0),

	"nn.L1": loss(nn.L1), "nn.MSE": loss(nn.MSE), "nn.Huber": loss(nn.Huber), "nn.BCEWithLogits": loss(nn.BCEWithLogits), "nn.KLDiv": loss(nn.KLDiv),

	"linalg.Det":            singly(linalg.Det),
	"linalg.SlogDet":        singly(func(x *T) *T { _, l := linalg.SlogDet(x); return l }),
	"linalg.Inverse":        singly(linalg.Inverse),
	"linalg.SingularValues": singly(linalg.SingularValues),
	"linalg.SVD values":     singly(func(x *T) *T { _, s, _ := linalg.SVD(x); return s }),
	"linalg.Eigvalsh":       singly(linalg.Eigvalsh),
	"linalg.Eigh values":    singly(func(x *T) *T { w, _ := linalg.Eigh(x); return w }),
	"linalg.Eigh vectors":   singly(func(x *T) *T { _, v := linalg.Eigh(x); return v }),
	"linalg.Cholesky":       singly(linalg.Cholesky),
	"linalg.QR r":           singly(func(x *T) *T { _, r := linalg.QR(x); return r }),
	"linalg.PseudoInverse":  singly(linalg.PseudoInverse),
}

// linear lists rules of ops that move elements, add them or multiply them with other operands.
// Their derivatives are moved, added or multiplied by the other factor, so they have no singular
// points.
var linear = map[string]bool{
	"add": true, "neg": true, "sub": true, "cast": true, "to": true,
	"reshape": true, "permute": true, "slice": true, "expand": true, "pad": true, "concat": true, "assign": true, "gather": true,
	"cumsum": true, "avgpool": true, "windows": true,
	"dot": true, "contraction": true, "conv": true, "convtranspose": true,
}

const (
	first     = "of equal elements the first gets all, as ArgMax names it, and the first NaN"
	firstOf   = "of equal operands the first gets all, also where one is NaN"
	outside   = "the function is NaN there"
	asValue   = "a square overflows, as it does in the value"
	noInverse = "ErrSingular"
	infinite  = "inf - inf, as PyTorch and JAX"
)

// singularReasons say why a derivative is not the exact one, or, if there is no exact one, why it
// is neither PyTorch's nor JAX's.
var singularReasons = map[string]string{
	"Acosh":           outside,
	"MaximumScalar 0": firstOf, "MinimumScalar 0": firstOf, "ClampScalar -1 1": firstOf,
	"Maximum by x": firstOf, "Maximum by y": firstOf, "Minimum by x": firstOf, "Minimum by y": firstOf,
	"Clamp by x": firstOf, "Clamp by y": firstOf, "Clamp by z": firstOf,
	"where x > 0: sqrt(x), else 0": "what was not chosen gets 0, and sqrt multiplies it by inf: choose the operand first, as in the next row",
	"sqrt(x² + y²) by x":           "squares vanish and overflow: Norm2 of the two does not",
	"Max":                          first, "Min": first, "CumMax": first, "CumMin": first,
	"CumProd at huge, huge, tiny":      "the second product overflows, and derivatives are quotients of products",
	"LogSumExp at -inf, -inf, -inf":    "no element has a share: rows in which all is hidden do no harm",
	"LogSumExp at inf, 0, 1":           infinite,
	"Norm2 at inf, -inf":               "infinities count as the largest numbers",
	"Std 0":                            "0, as Norm2 has at 0: equal elements have no direction",
	"LayerNorm 1e-5 at huge, 0, -huge": asValue, "RMSNorm 1e-5 at huge, 0, -huge": asValue,
	"CrossEntropy 1 at inf, 0, 0": "the loss is inf; at the target it is exp(-loss) - 1",
	"ScatterMax 2 2":              "what was there gets all, else the first of equal updates",
	"nn.L1 by x":                  "inf - inf is NaN, and so is its sign",
	"nn.KLDiv by y":               "where y is 0 so is y·log(y), as a constant: no share of it is infinite",
	"linalg.SlogDet":              noInverse, "linalg.QR r": noInverse,
}
