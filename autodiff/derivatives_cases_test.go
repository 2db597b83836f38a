package autodiff_test

import "github.com/millrace-go/millrace/nn"

func module(m nn.Module) func(in []*T) *T {
	return func(in []*T) *T { return m.Forward(nn.Eval(), in[0]) }
}

func loss(f func(x, y *T, opts ...nn.LossOption) *T) func(in []*T) *T {
	return func(in []*T) *T { return f(in[0], in[1], nn.Summed()) }
}

// layers are the functions of testdata/derivatives.json that are not in optable.
var layers = map[string]func(in []*T) *T{
	"nn.LeakyReLU": module(nn.LeakyReLU{}), "nn.ELU": module(nn.ELU{}),
	"nn.L1": loss(nn.L1), "nn.MSE": loss(nn.MSE), "nn.Huber": loss(nn.Huber), "nn.BCEWithLogits": loss(nn.BCEWithLogits), "nn.KLDiv": loss(nn.KLDiv),
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
