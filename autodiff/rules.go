package autodiff

import (
	"math"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/follow"
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
func ruleOf(c *follow.Call[tensor]) *rule {
	if c.Op != ir.OpInvalid {
		return rules[c.Op]
	}
	return composites[c.Rule]
}

const (
	onMask  = "its result is no number with a gradient"
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
		ir.Abs:      unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.do(s.x().Sign())) }),
		ir.Sqrt:     unary(result, func(s *step, d *tensor) *tensor { return s.do(d.MulScalar(0.5)).Div(s.out()) }),
		ir.Rsqrt:    unary(operand0|result, func(s *step, d *tensor) *tensor { return s.do(d.MulScalar(-0.5)).Mul(s.do(s.out().Div(s.x()))) }),
		ir.Recip:    unary(result, func(s *step, d *tensor) *tensor { return s.do(s.do(d.Neg()).Mul(s.out())).Mul(s.out()) }),
		ir.Square:   unary(operand0, func(s *step, d *tensor) *tensor { return s.do(d.Mul(s.x())).MulScalar(2) }),
		ir.Exp:      unary(result, func(s *step, d *tensor) *tensor { return d.Mul(s.out()) }),
		ir.Exp2:     unary(result, func(s *step, d *tensor) *tensor { return d.Mul(s.do(s.out().MulScalar(math.Ln2))) }),
		ir.Expm1:    unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.do(s.x().Exp())) }),
		ir.Log:      unary(operand0, func(s *step, d *tensor) *tensor { return d.Div(s.x()) }),
		ir.Log2:     unary(operand0, func(s *step, d *tensor) *tensor { return s.do(d.MulScalar(1 / math.Ln2)).Div(s.x()) }),
		ir.Log1p:    unary(operand0, func(s *step, d *tensor) *tensor { return d.Div(s.do(s.x().AddScalar(1))) }),
		ir.Sin:      unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.do(s.x().Cos())) }),
		ir.Cos:      unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.do(s.do(s.x().Sin()).Neg())) }),
		ir.Tan:      unary(result, func(s *step, d *tensor) *tensor { return d.Mul(s.do(s.do(s.out().Square()).AddScalar(1))) }),
		ir.Tanh:     unary(result, func(s *step, d *tensor) *tensor { return d.Mul(s.do(s.do(s.out().Square()).ScalarSub(1))) }),
		ir.Sinh:     unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.do(s.x().Cosh())) }),
		ir.Cosh:     unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.do(s.x().Sinh())) }),
		ir.Asin:     unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.do(s.do(s.oneMinusSquare()).Rsqrt())) }),
		ir.Acos:     unary(operand0, func(s *step, d *tensor) *tensor { return s.do(d.Neg()).Mul(s.do(s.oneMinusSquare().Rsqrt())) }),
		ir.Atan:     unary(operand0, atanBack),
		ir.Sigmoid:  unary(result, func(s *step, d *tensor) *tensor { y := s.out(); return d.Mul(s.do(y.Mul(s.do(y.ScalarSub(1))))) }),
		ir.Erf:      unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.do(s.gauss(s.x(), 1).MulScalar(2 / math.SqrtPi))) }),
		ir.Relu:     unary(result, func(s *step, d *tensor) *tensor { return millrace.WhereScalar(s.do(s.out().GtScalar(0)), d, 0) }),
		ir.Gelu:     unary(operand0, geluBack),
		ir.GeluTanh: unary(operand0, geluTanhBack),
		ir.Silu:     unary(operand0, siluBack),
		ir.Softplus: unary(operand0, func(s *step, d *tensor) *tensor { return d.Mul(s.do(s.x().Sigmoid())) }),
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

		ir.Reshape: {moves: true, back: func(s *step) { s.give(0, s.do(s.d.Reshape(s.kinds[0].shape...))) }},
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
	composites = map[string]*rule{
		"contraction":      {keeps: operand0 | operand1, asked: others, back: contractionBack},
		"conv":             {keeps: operand0 | operand1, asked: others, back: convBack},
		"convtranspose":    {keeps: operand0 | operand1, asked: others, back: convTransposeBack},
		"windows":          {back: windowsBack},
		"reducewindow":     {keeps: operand0, back: reduceWindowBack},
		"avgpool":          {back: avgPoolBack},
		"softmax":          {keeps: result, back: softmaxBack},
		"logsoftmax":       {keeps: result, back: logSoftmaxBack},
		"maskedsoftmax":    {keeps: result, back: softmaxBack},
		"maskedlogsoftmax": {keeps: result, back: maskedLogSoftmaxBack},
		"logsumexp":        {keeps: operand0 | result, back: logSumExpBack},
		"norm2":            {keeps: operand0, back: norm2Back},
		"between":          {back: betweenBack},
		"std":              {keeps: operand0, back: stdBack},
		"var":              {keeps: operand0, back: varBack},
		"layernorm":        {keeps: operand0 | operand1, back: layerNormBack},
		"rmsnorm":          {keeps: operand0 | operand1, back: rmsNormBack},
		"crossentropy":     {keeps: operand0 | operand1 | result, back: crossEntropyBack},
		"log10":            unary(operand0, func(s *step, d *tensor) *tensor { return s.do(d.MulScalar(1 / math.Ln10)).Div(s.x()) }),
		"asinh":            unary(operand0, asinhBack),
		"acosh":            unary(operand0, acoshBack),
		"atanh":            unary(operand0, func(s *step, d *tensor) *tensor { return d.Div(s.oneMinusSquare()) }),
		"to":               {moves: true, keeps: operand0, back: toBack},
	}
}

// composites are the ops of package millrace that consist of other ops but have a rule of their
// own, the usual one of a textbook. Other such ops are followed op by op.
var composites map[string]*rule

// others: each of two factors is kept for the derivative of the other.
var others = [3]keeps{operand1, operand0}

// unary is the rule of an op on one operand.
func unary(k keeps, f func(s *step, d *tensor) *tensor) *rule {
	return &rule{keeps: k, back: func(s *step) { s.give(0, s.do(f(s, s.d))) }}
}
