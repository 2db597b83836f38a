package autodiff

import (
	"math"
	"reflect"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/ir"
)

// rule says how to compute an op's derivative. A rule uses public ops, so derivatives of
// derivatives need no extra code. For 16-bit tensors it runs in the dtype that they are computed
// in.
type rule struct {
	keeps keeps         // what back needs; the node keeps nothing else alive
	back  func(s *step) // gives each wanted operand its derivative, from s.d
	none  string        // instead of back: why there is no derivative
	moves bool          // back only moves elements, so 16-bit tensors are not cast
	asked [3]keeps      // asked[k]: the operands whose derivatives need operand k; 0 for all

	some func(a *ir.Attr) keeps // if not nil: the part of keeps that one call needs

	of reflect.Type // the composite's type, nil for an op of ir
}

// keeps is a set of operands and the result.
type keeps uint8

const (
	operand0 keeps = 1 << iota
	operand1
	operand2
	result
)

// keepsOf is the set that back needs of one call.
func (r *rule) keepsOf(a *ir.Attr) keeps {
	if r.some != nil {
		return r.some(a)
	}
	return r.keeps
}

// wanted reports that operand k is needed for the derivative of a followed operand. A factor of a
// product is needed only for the other factor's derivative.
func (r *rule) wanted(n *node, k int) bool {
	if r.asked[k] == 0 {
		return true
	}
	for i := range n.in {
		if r.asked[k]&(operand0<<i) != 0 && n.in[i].node != nil {
			return true
		}
	}
	return false
}

// ruleOf is the rule of an op or a composite; nil if it has none.
func ruleOf(c *adhook.Call[tensor]) *rule {
	if c.Op != ir.OpInvalid {
		return rules[c.Op]
	}
	return composites[reflect.TypeOf(c.With)]
}

const (
	onMask  = "its result is a bool, which has no gradient"
	onInt   = "integers have no gradient"
	isStep  = "its gradient is 0 wherever it has one"
	isLeaf  = "it has no operand"
	byOther = "it is recorded as part of composites that have rules of their own"
)

// rules has a row per op of ir. Grad returns an error for an op without a row.
var rules map[ir.Op]*rule

func init() { // in init, because rules call ops whose hooks use rules
	rules = map[ir.Op]*rule{
		ir.Full: {none: isLeaf}, ir.Iota: {none: isLeaf}, ir.Uniform: {none: isLeaf}, ir.Normal: {none: isLeaf},

		ir.Neg:      unary(0, func(s *step, d *tensor) *tensor { return d.Neg() }),
		ir.Abs:      unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.x().Sign()) }),
		ir.Sqrt:     unary(result, func(s *step, d *tensor) *tensor { return d.MulScalar(0.5).Div(s.out()) }),
		ir.Rsqrt:    unary(operand0|result, func(s *step, d *tensor) *tensor { return d.MulScalar(-0.5).Mul(s.out().Div(s.x())) }),
		ir.Recip:    unary(result, func(s *step, d *tensor) *tensor { return d.Neg().Mul(s.out()).Mul(s.out()) }),
		ir.Square:   unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.x()).MulScalar(2) }),
		ir.Exp:      unary(result, func(s *step, d *tensor) *tensor { return d.Mul(s.out()) }),
		ir.Exp2:     unary(result, func(s *step, d *tensor) *tensor { return d.Mul(s.out().MulScalar(math.Ln2)) }),
		ir.Expm1:    unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.x().Exp()) }),
		ir.Log:      unary(operand0, func(s *step, d *tensor) *tensor { return d.Div(s.x()) }),
		ir.Log2:     unary(operand0, func(s *step, d *tensor) *tensor { return d.MulScalar(1 / math.Ln2).Div(s.x()) }),
		ir.Log1p:    unary(operand0, func(s *step, d *tensor) *tensor { return d.Div(s.x().AddScalar(1)) }),
		ir.Sin:      unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.x().Cos()) }),
		ir.Cos:      unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.x().Sin().Neg()) }),
		ir.Tan:      unary(result, func(s *step, d *tensor) *tensor { return d.Mul(s.out().Square().AddScalar(1)) }),
		ir.Tanh:     unary(result, func(s *step, d *tensor) *tensor { return d.Mul(s.out().Square().ScalarSub(1)) }),
		ir.Sinh:     unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.x().Cosh()) }),
		ir.Cosh:     unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.x().Sinh()) }),
		ir.Asin:     unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.oneMinusSquare().Rsqrt()) }),
		ir.Acos:     unary(operand0, func(s *step, d *tensor) *tensor { return d.Neg().Mul(s.oneMinusSquare().Rsqrt()) }),
		ir.Atan:     unary(operand0, atanBack),
		ir.Sigmoid:  unary(result, func(s *step, d *tensor) *tensor { y := s.out(); return d.Mul(y.Mul(y.ScalarSub(1))) }),
		ir.Erf:      unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.gauss(s.x(), 1).MulScalar(2 / math.SqrtPi)) }),
		ir.Relu:     unary(result, func(s *step, d *tensor) *tensor { return millrace.WhereScalar(s.out().GtScalar(0), d, 0) }),
		ir.Gelu:     unary(operand0, geluBack),
		ir.GeluTanh: unary(operand0, geluTanhBack),
		ir.Silu:     unary(operand0, siluBack),
		ir.Softplus: unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.x().Sigmoid()) }),
		ir.Cast:     {back: func(s *step) { s.give(0, s.d) }, moves: true},

		ir.Sign: {none: isStep}, ir.Floor: {none: isStep}, ir.Ceil: {none: isStep}, ir.Round: {none: isStep}, ir.Trunc: {none: isStep}, ir.FloorDiv: {none: isStep},
		ir.Not: {none: onInt}, ir.IsNaN: {none: onMask}, ir.IsInf: {none: onMask}, ir.IsFinite: {none: onMask},
		ir.Reinterpret: {none: "bits have no gradient"},
		ir.And:         {none: onInt}, ir.Or: {none: onInt}, ir.Xor: {none: onInt}, ir.Shl: {none: onInt}, ir.Shr: {none: onInt}, ir.MulHigh: {none: onInt},
		ir.Philox: {none: onInt},
		ir.Eq:     {none: onMask}, ir.Ne: {none: onMask}, ir.Lt: {none: onMask}, ir.Le: {none: onMask}, ir.Gt: {none: onMask}, ir.Ge: {none: onMask},
		ir.Any: {none: onMask}, ir.All: {none: onMask}, ir.ArgMax: {none: onInt}, ir.ArgMin: {none: onInt}, ir.ArgSort: {none: onInt},
		ir.Release: {none: isLeaf}, ir.Keep: {none: isLeaf},

		ir.Add: {back: func(s *step) { s.give(0, s.d); s.give(1, s.d) }},
		ir.Sub: {back: func(s *step) { s.give(0, s.d); s.give(1, s.neg(1, s.d)) }},
		ir.Mul: {keeps: operand0 | operand1, asked: others, back: func(s *step) {
			s.each(0, func() *tensor { return s.times(s.d, 1) })
			s.each(1, func() *tensor { return s.times(s.d, 0) })
		}},
		ir.Div:     {keeps: operand1 | result, asked: [3]keeps{1: operand0 | operand1}, back: divBack},
		ir.Rem:     {keeps: operand0 | operand1, asked: [3]keeps{0: operand1, 1: operand1}, back: remBack},
		ir.Pow:     {keeps: operand0 | operand1, back: powBack},
		ir.Maximum: {keeps: operand0 | operand1, back: func(s *step) { chosen(s, (*tensor).Lt, (*tensor).LtScalar) }},
		ir.Minimum: {keeps: operand0 | operand1, back: func(s *step) { chosen(s, (*tensor).Gt, (*tensor).GtScalar) }},
		ir.Atan2:   {keeps: operand0 | operand1, back: atan2Back},
		ir.Where:   {keeps: operand0, back: whereBack},
		ir.Clamp:   {keeps: operand0 | operand1 | operand2, back: clampBack},

		ir.Reshape: {moves: true, back: func(s *step) { s.give(0, s.d.Reshape(s.kinds[0].shape...)) }},
		ir.Permute: {moves: true, back: permuteBack},
		ir.Slice:   {moves: true, back: sliceBack},
		ir.Expand:  {back: func(s *step) { s.give(0, s.d) }},
		ir.Window:  {none: byOther},
		ir.Pad:     {moves: true, back: padBack},
		ir.Concat:  {moves: true, back: concatBack},
		ir.Assign:  {moves: true, back: assignBack},
		ir.Gather:  {keeps: operand1, back: gatherBack},
		ir.Scatter: {keeps: operand0 | operand1 | operand2 | result, some: scatterKeeps, back: scatterBack},

		ir.Sum:     {back: func(s *step) { s.give(0, s.spread(s.d)) }},
		ir.Prod:    {keeps: operand0, back: prodBack},
		ir.Max:     {keeps: operand0, back: func(s *step) { takenBack(s, (*tensor).ArgMaxAs) }},
		ir.Min:     {keeps: operand0, back: func(s *step) { takenBack(s, (*tensor).ArgMinAs) }},
		ir.Dot:     {keeps: operand0 | operand1, asked: others, back: dotBack},
		ir.CumSum:  {back: func(s *step) { s.give(0, s.cumFromEnd(s.d)) }},
		ir.CumProd: {keeps: operand0 | result, back: cumProdBack},
		ir.CumMax:  {keeps: operand0 | result, back: func(s *step) { cumTakenBack(s, (*tensor).Gt) }},
		ir.CumMin:  {keeps: operand0 | result, back: func(s *step) { cumTakenBack(s, (*tensor).Lt) }},
		ir.Sort:    {keeps: operand0, back: sortBack},
	}
	composites = byType(
		composite(operand0|operand1, contractionBack).asks(others),
		composite(operand0|operand1, convBack).asks(others),
		composite(operand0|operand1, convTransposeBack).asks(others),
		composite(0, windowsBack),
		composite(operand0, reduceWindowBack),
		composite(0, avgPoolBack),
		composite(result, func(s *step, c adhook.Softmax) { softmaxBack(s, c.Axis) }),
		composite(result, func(s *step, c adhook.MaskedSoftmax) { softmaxBack(s, c.Axis) }),
		composite(result, logSoftmaxBack),
		composite(result, maskedLogSoftmaxBack),
		composite(operand0|result, logSumExpBack),
		composite(operand0, norm2Back),
		composite(0, betweenBack),
		composite(operand0, stdBack),
		composite(operand0, varBack),
		composite(operand0|operand1, layerNormBack),
		composite(operand0|operand1, rmsNormBack),
		composite(operand0|operand1|result, crossEntropyBack),
		composite(operand0, func(s *step, _ adhook.Log10) { s.give(0, s.d.MulScalar(1/math.Ln10).Div(s.x())) }),
		composite(operand0, func(s *step, _ adhook.Asinh) { s.give(0, asinhBack(s, s.d)) }),
		composite(operand0, func(s *step, _ adhook.Acosh) { s.give(0, acoshBack(s, s.d)) }),
		composite(operand0, func(s *step, _ adhook.Atanh) { s.give(0, s.d.Div(s.oneMinusSquare())) }),
		composite(operand0, toBack).moving(),
	)
}

// composites has the rules of the ops of package millrace that consist of other ops but have a rule
// of their own, the usual one of a textbook, by their types in package adhook. Other such ops are
// followed op by op.
var composites map[reflect.Type]*rule

// composite is the rule of a composite of type C.
func composite[C adhook.Composite](k keeps, back func(s *step, c C)) *rule {
	return &rule{keeps: k, of: reflect.TypeFor[C](), back: func(s *step) { back(s, s.call.With.(C)) }}
}

func (r *rule) asks(of [3]keeps) *rule {
	r.asked = of
	return r
}

func (r *rule) moving() *rule {
	r.moves = true
	return r
}

func byType(rules ...*rule) map[reflect.Type]*rule {
	m := make(map[reflect.Type]*rule, len(rules))
	for _, r := range rules {
		m[r.of] = r
	}
	return m
}

// others: each of two factors is kept for the derivative of the other.
var others = [3]keeps{operand1, operand0}

// unary is the rule of an op on one operand.
func unary(k keeps, f func(s *step, d *tensor) *tensor) *rule {
	return &rule{keeps: k, back: func(s *step) { s.give(0, f(s, s.d)) }}
}
