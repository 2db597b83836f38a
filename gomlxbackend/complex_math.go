package gomlxbackend

import (
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
)

// The elementwise ops of complex values, written as ops of their parts; a and b
// are the real and the imaginary part of the operand. Every result is near the
// true one relative to its absolute value, over the whole range of the dtype:
// what is on the way neither overflows nor cancels where the result does not.
// Infinities, zeros and NaN give what Annex G of the C standard says, as far as
// docs/numerics/libraries.md tells.

// complexOps has a row for each elementwise op of complex values, which all have
// one dtype.
var complexOps map[compute.OpType]func(e *expansion, in []*Node) *Node

func init() { // the rows use methods, which use the table
	complexOps = map[compute.OpType]func(e *expansion, in []*Node) *Node{
		compute.OpTypeAbs:      func(e *expansion, in []*Node) *Node { return e.modulus(in[0].re, in[0].im) },
		compute.OpTypeConj:     ofOne(compute.OpTypeConj, func(e *expansion, a, b *Node) (re, im *Node) { return a, e.neg(b) }),
		compute.OpTypeExp:      ofOne(compute.OpTypeExp, (*expansion).complexExp),
		compute.OpTypeExpm1:    ofOne(compute.OpTypeExpm1, (*expansion).complexExpm1),
		compute.OpTypeLog:      ofOne(compute.OpTypeLog, (*expansion).complexLog),
		compute.OpTypeLog1p:    ofOne(compute.OpTypeLog1p, (*expansion).complexLog1p),
		compute.OpTypeSqrt:     ofOne(compute.OpTypeSqrt, (*expansion).complexSqrt),
		compute.OpTypeRsqrt:    ofOne(compute.OpTypeRsqrt, (*expansion).complexRsqrt),
		compute.OpTypeSin:      ofOne(compute.OpTypeSin, (*expansion).complexSin),
		compute.OpTypeCos:      ofOne(compute.OpTypeCos, (*expansion).complexCos),
		compute.OpTypeTanh:     ofOne(compute.OpTypeTanh, (*expansion).complexTanh),
		compute.OpTypeLogistic: ofOne(compute.OpTypeLogistic, (*expansion).complexLogistic),
		compute.OpTypeSign:     ofOne(compute.OpTypeSign, (*expansion).complexSign),

		compute.OpTypeMul: ofTwo(compute.OpTypeMul, (*expansion).product),
		compute.OpTypeDiv: ofTwo(compute.OpTypeDiv, (*expansion).quotient),
		compute.OpTypePow: ofTwo(compute.OpTypePow, (*expansion).complexPow),

		compute.OpTypeEqual: func(e *expansion, in []*Node) *Node {
			return e.and(e.eq(in[0].re, in[1].re), e.eq(in[0].im, in[1].im))
		},
		compute.OpTypeNotEqual: func(e *expansion, in []*Node) *Node {
			return e.or(e.get(e.f.NotEqual(in[0].re, in[1].re)), e.get(e.f.NotEqual(in[0].im, in[1].im)))
		},
		compute.OpTypeIsFinite: func(e *expansion, in []*Node) *Node { return e.and(e.finite(in[0].re), e.finite(in[0].im)) },
		compute.OpTypeIsNaN:    func(e *expansion, in []*Node) *Node { return e.or(e.isNaN(in[0].re), e.isNaN(in[0].im)) },
	}
}

func ofOne(op compute.OpType, do func(e *expansion, a, b *Node) (re, im *Node)) func(*expansion, []*Node) *Node {
	return func(e *expansion, in []*Node) *Node { return e.pair(op, in[0].re, in[0].im, do) }
}

// ofTwo is an op of a+bi and c+di, which broadcast against each other.
func ofTwo(op compute.OpType, do func(e *expansion, a, b, c, d *Node) (re, im *Node)) func(*expansion, []*Node) *Node {
	return func(e *expansion, in []*Node) *Node {
		x, y := in[0], in[1]
		shape, err := shapeinference.BinaryOp(op, x.shape, y.shape)
		if err != nil {
			e.err = err
			return broken
		}
		shape = withDType(withZeros(shape, x.shape, y.shape), x.re.shape.DType)
		wide := func(n *Node) *Node {
			if n.shape.IsScalar() {
				return n
			}
			return e.get(e.f.BroadcastInDim(n, shape, kept(shape.Rank(), nil)))
		}
		c, d := wide(y.re), wide(y.im)
		return e.pair(op, wide(x.re), wide(x.im), func(e *expansion, a, b *Node) (re, im *Node) { return do(e, a, b, c, d) })
	}
}

func (e *expansion) pair(op compute.OpType, a, b *Node, do func(e *expansion, a, b *Node) (re, im *Node)) *Node {
	re, im := do(e, a, b)
	if e.err != nil {
		return broken
	}
	return e.f.pair(op, re, im)
}

func (e *expansion) add(x, y *Node) *Node      { return e.get(e.f.Add(x, y)) }
func (e *expansion) sub(x, y *Node) *Node      { return e.get(e.f.Sub(x, y)) }
func (e *expansion) mul(x, y *Node) *Node      { return e.get(e.f.Mul(x, y)) }
func (e *expansion) div(x, y *Node) *Node      { return e.get(e.f.Div(x, y)) }
func (e *expansion) max(x, y *Node) *Node      { return e.get(e.f.Max(x, y)) }
func (e *expansion) min(x, y *Node) *Node      { return e.get(e.f.Min(x, y)) }
func (e *expansion) and(x, y *Node) *Node      { return e.get(e.f.LogicalAnd(x, y)) }
func (e *expansion) or(x, y *Node) *Node       { return e.get(e.f.LogicalOr(x, y)) }
func (e *expansion) eq(x, y *Node) *Node       { return e.get(e.f.Equal(x, y)) }
func (e *expansion) less(x, y *Node) *Node     { return e.get(e.f.LessThan(x, y)) }
func (e *expansion) where(c, x, y *Node) *Node { return e.get(e.f.Where(c, x, y)) }
func (e *expansion) neg(x *Node) *Node         { return e.get(e.f.Neg(x)) }
func (e *expansion) abs(x *Node) *Node         { return e.get(e.f.Abs(x)) }
func (e *expansion) sign(x *Node) *Node        { return e.get(e.f.Sign(x)) }
func (e *expansion) sqrt(x *Node) *Node        { return e.get(e.f.Sqrt(x)) }
func (e *expansion) exp(x *Node) *Node         { return e.get(e.f.Exp(x)) }
func (e *expansion) expm1(x *Node) *Node       { return e.get(e.f.Expm1(x)) }
func (e *expansion) log(x *Node) *Node         { return e.get(e.f.Log(x)) }
func (e *expansion) log1p(x *Node) *Node       { return e.get(e.f.Log1p(x)) }
func (e *expansion) sin(x *Node) *Node         { return e.get(e.f.Sin(x)) }
func (e *expansion) cos(x *Node) *Node         { return e.get(e.f.Cos(x)) }
func (e *expansion) not(x *Node) *Node         { return e.get(e.f.LogicalNot(x)) }
func (e *expansion) isNaN(x *Node) *Node       { return e.get(e.f.IsNaN(x)) }
func (e *expansion) finite(x *Node) *Node      { return e.get(e.f.IsFinite(x)) }

// like is a number of x's dtype.
func (e *expansion) like(x *Node, v float64) *Node { return e.number(x.shape.DType, v) }

func (e *expansion) times(x *Node, v float64) *Node { return e.mul(x, e.like(x, v)) }
func (e *expansion) plus(x *Node, v float64) *Node  { return e.add(x, e.like(x, v)) }
func (e *expansion) above(x *Node, v float64) *Node { return e.less(e.like(x, v), x) }
func (e *expansion) below(x *Node, v float64) *Node { return e.less(x, e.like(x, v)) }
func (e *expansion) is(x *Node, v float64) *Node    { return e.eq(x, e.like(x, v)) }
func (e *expansion) square(x *Node) *Node           { return e.mul(x, x) }
func (e *expansion) infinite(x *Node) *Node         { return e.is(e.abs(x), math.Inf(1)) }

// signed is x, which is not negative, with the sign of y; of -0 and NaN too.
func (e *expansion) signed(x, y *Node) *Node {
	negative := e.or(e.below(y, 0), e.below(e.div(e.like(y, 1), y), 0))
	return e.where(negative, e.neg(x), x)
}

// zeros are as many as x has elements.
func (e *expansion) zeros(x *Node) *Node {
	return e.get(e.f.BroadcastInDim(e.like(x, 0), x.shape, nil))
}

// span is what the functions below know of a dtype.
type span struct {
	exp        float64 // e to this is finite, and little more is not
	huge, tiny float64 // where a sum of two parts may overflow, and where a product with an epsilon may be subnormal
	up         float64 // a power of two that brings tiny numbers where none is
	rootLarge  float64 // where a sum of two absolute values may overflow
	rootSmall  float64 // where numbers may be subnormal
	rootUp     float64 // a square of a power of two that brings those where none is
}

// spans has a row for each dtype of parts.
var spans = map[dtypes.DType]span{
	dtypes.Float32: {88, 0x1p127, 0x1p-102, 0x1p47, 0x1p125, 0x1p-100, 0x1p48},
	dtypes.Float64: {709, 0x1p1023, 0x1p-969, 0x1p105, 0x1p1021, 0x1p-900, 0x1p108},
}

// modulus is √(a² + b²), by the ratio of the smaller to the larger.
func (e *expansion) modulus(a, b *Node) *Node {
	x, y := e.abs(a), e.abs(b)
	big := e.max(x, y)
	ratio := e.div(e.min(x, y), big)
	h := e.mul(big, e.sqrt(e.plus(e.square(ratio), 1)))
	h = e.where(e.is(big, 0), big, h)
	return e.where(e.or(e.infinite(a), e.infinite(b)), e.like(a, math.Inf(1)), h)
}

// complexSign is z/|z|, and z where that is 0. The quotient by the larger part
// has a modulus from 1 to √2.
func (e *expansion) complexSign(a, b *Node) (re, im *Node) {
	big := e.max(e.abs(a), e.abs(b))
	x, y := e.div(a, big), e.div(b, big)
	h := e.sqrt(e.add(e.square(x), e.square(y)))
	zero := e.is(big, 0)
	return e.where(zero, a, e.div(x, h)), e.where(zero, b, e.div(y, h))
}

// product is (a + bi)·(c + di), with no regard to infinities.
func (e *expansion) product(a, b, c, d *Node) (re, im *Node) {
	return e.sub(e.mul(a, c), e.mul(b, d)), e.add(e.mul(a, d), e.mul(b, c))
}

// quotient is (a + bi)/(c + di) as Smith divides, with the ratio of the smaller
// part of the divisor to the larger, after both were brought to a middle range
// by powers of two (Baudin and Smith, 2012).
func (e *expansion) quotient(a, b, c, d *Node) (re, im *Node) {
	up, down := e.toMiddle(a, b), e.toMiddle(c, d)
	x, y := e.mul(a, up), e.mul(b, up)
	p, q := e.mul(c, down), e.mul(d, down)
	swap := e.less(e.abs(p), e.abs(q))
	p, q = e.where(swap, q, p), e.where(swap, p, q)
	x, y = e.where(swap, y, x), e.where(swap, x, y)
	ratio := e.div(q, p)
	norm, scale := e.add(p, e.mul(q, ratio)), e.div(down, up)
	re = e.mul(e.div(e.add(x, e.mul(y, ratio)), norm), scale)
	im = e.mul(e.div(e.sub(y, e.mul(x, ratio)), norm), scale)
	im = e.where(swap, e.neg(im), im)

	// What an infinity or, before that, a division by 0 gives.
	undefined := e.and(e.isNaN(re), e.isNaN(im))
	patch := func(where, x, y *Node) { re, im = e.where(where, x, re), e.where(where, y, im) }
	inf := e.like(a, math.Inf(1))
	boxed := func(x *Node) *Node { return e.where(e.infinite(x), e.sign(x), e.like(x, 0)) }
	dot := func(by, a, b, c, d *Node) (re, im *Node) {
		return e.mul(by, e.add(e.mul(a, c), e.mul(b, d))), e.mul(by, e.sub(e.mul(b, c), e.mul(a, d)))
	}
	u, v := dot(inf, boxed(a), boxed(b), c, d)
	patch(e.and(e.or(e.infinite(a), e.infinite(b)), e.and(e.finite(c), e.finite(d))), u, v)
	u, v = dot(e.like(a, 0), e.mul(a, up), e.mul(b, up), boxed(c), boxed(d))
	patch(e.and(undefined, e.and(e.or(e.infinite(c), e.infinite(d)), e.and(e.finite(a), e.finite(b)))), u, v)
	toInf := e.signed(inf, c)
	patch(e.and(undefined, e.and(e.is(c, 0), e.is(d, 0))), e.mul(toInf, a), e.mul(toInf, b))
	return re, im
}

// toMiddle is a power of two by which a number is to be multiplied so that
// products with its parts and sums of two of them are in range.
func (e *expansion) toMiddle(a, b *Node) *Node {
	s := spans[a.shape.DType]
	big := e.max(e.abs(a), e.abs(b))
	return e.where(e.below(big, s.huge), e.where(e.above(big, s.tiny), e.like(a, 1), e.like(a, s.up)), e.like(a, 0.5))
}

// complexExp is e^a·(cos b + i·sin b), in two steps where e^a alone overflows.
func (e *expansion) complexExp(a, b *Node) (re, im *Node) {
	over := e.above(a, spans[a.shape.DType].exp)
	step := e.exp(e.where(over, e.times(a, 0.5), a))
	again := e.where(over, step, e.like(a, 1))
	anyway := e.and(e.infinite(a), e.not(e.finite(b))) // whatever the angle is
	angle := e.where(anyway, e.like(b, 0), b)
	re = e.mul(e.mul(step, e.cos(angle)), again)
	im = e.mul(e.mul(step, e.sin(angle)), again)
	return re, e.where(e.is(b, 0), b, im)
}

// complexExpm1 is e^z - 1: near 0 its real part is (e^a - 1)·cos b - 2·sin²(b/2).
func (e *expansion) complexExpm1(a, b *Node) (re, im *Node) {
	re, im = e.complexExp(a, b)
	near := e.sub(e.mul(e.expm1(a), e.cos(b)), e.times(e.square(e.sin(e.times(b, 0.5))), 2))
	return e.where(e.or(e.above(a, 1), e.infinite(a)), e.plus(re, -1), near), im
}

// logModulus is log |z|. Where |z| may be near 1 it is taken from what |z|²
// is more than 1.
func (e *expansion) logModulus(a, b *Node) *Node {
	x, y := e.abs(a), e.abs(b)
	big, small := e.max(x, y), e.min(x, y)
	ratio := e.where(e.is(big, 0), big, e.div(small, big))
	far := e.add(e.log(big), e.times(e.log1p(e.square(ratio)), 0.5))
	more := e.add(e.mul(e.plus(big, -1), e.plus(big, 1)), e.square(small))
	near := e.and(e.above(big, 0.5), e.below(big, 2))
	l := e.where(near, e.times(e.log1p(more), 0.5), far)
	return e.where(e.or(e.infinite(a), e.infinite(b)), e.like(a, math.Inf(1)), l)
}

func (e *expansion) complexLog(a, b *Node) (re, im *Node) {
	return e.logModulus(a, b), e.get(e.f.Atan2(b, a))
}

// complexLog1p is log(1 + z): where z is small |1 + z|² is 1 + a·(2 + a) + b².
func (e *expansion) complexLog1p(a, b *Node) (re, im *Node) {
	more := e.add(e.mul(a, e.plus(a, 2)), e.square(b))
	near := e.and(e.below(e.abs(a), 0.5), e.below(e.abs(b), 0.5))
	one := e.plus(a, 1)
	return e.where(near, e.times(e.log1p(more), 0.5), e.logModulus(one, b)), e.get(e.f.Atan2(b, one))
}

// complexSqrt is the root with a real part that is not negative: the larger part
// is √((|a| + |z|)/2), the other one b over twice that.
func (e *expansion) complexSqrt(a, b *Node) (re, im *Node) {
	s := spans[a.shape.DType]
	big := e.max(e.abs(a), e.abs(b))
	pick := func(large, small float64) *Node {
		return e.where(e.above(big, s.rootLarge), e.like(a, large), e.where(e.below(big, s.rootSmall), e.like(a, small), e.like(a, 1)))
	}
	scale, back := pick(1.0/16, s.rootUp), pick(4, 1/math.Sqrt(s.rootUp))
	x, y := e.mul(a, scale), e.mul(b, scale)
	t := e.sqrt(e.times(e.add(e.abs(x), e.modulus(x, y)), 0.5))
	other := e.mul(e.div(e.times(y, 0.5), t), back)
	t = e.mul(t, back)
	left := e.below(a, 0)
	re, im = e.where(left, e.abs(other), t), e.where(left, e.signed(t, b), other)
	zero := e.is(big, 0)
	re, im = e.where(zero, big, re), e.where(zero, b, im)
	tall := e.infinite(b)
	return e.where(tall, e.abs(b), re), e.where(tall, b, im)
}

func (e *expansion) complexRsqrt(a, b *Node) (re, im *Node) {
	re, im = e.complexSqrt(a, b)
	return e.quotient(e.like(a, 1), e.like(a, 0), re, im)
}

// hyperbolic are sinh x and cosh x, each to be multiplied by again in the end:
// where they overflow that is not 1.
func (e *expansion) hyperbolic(x *Node) (sinh, cosh, again *Node) {
	one, far := e.like(x, 1), e.abs(x)
	over := e.above(far, spans[x.shape.DType].exp)
	far = e.where(over, e.times(far, 0.5), far)
	step, more := e.exp(far), e.expm1(far)
	sinh = e.where(over, step, e.add(more, e.div(more, step)))
	cosh = e.where(over, step, e.add(step, e.div(one, step)))
	return e.mul(e.times(sinh, 0.5), e.sign(x)), e.times(cosh, 0.5), e.where(over, step, one)
}

// complexSin is sin a·cosh b + i·cos a·sinh b.
func (e *expansion) complexSin(a, b *Node) (re, im *Node) {
	sinh, cosh, again := e.hyperbolic(b)
	re = e.mul(e.mul(e.sin(a), cosh), again)
	im = e.mul(e.mul(e.cos(a), sinh), again)
	anyway := e.and(e.not(e.finite(a)), e.or(e.is(b, 0), e.infinite(b)))
	return e.where(e.is(a, 0), a, re), e.where(anyway, b, im)
}

// complexCos is cos a·cosh b - i·sin a·sinh b.
func (e *expansion) complexCos(a, b *Node) (re, im *Node) {
	sinh, cosh, again := e.hyperbolic(b)
	re = e.mul(e.mul(e.cos(a), cosh), again)
	im = e.neg(e.mul(e.mul(e.sin(a), sinh), again))
	wild := e.not(e.finite(a))
	re = e.where(e.and(wild, e.infinite(b)), e.abs(b), re)
	zero := e.or(e.is(a, 0), e.and(wild, e.is(b, 0)))
	known := func(x *Node) *Node { return e.where(e.isNaN(x), e.like(x, 1), e.sign(x)) }
	return re, e.where(zero, e.neg(e.mul(known(a), known(b))), im)
}

// tanhFlat is where tanh is ±1 but for less than half an epsilon.
const tanhFlat = 22

// complexTanh is (sinh a·cosh a + i·sin b·cos b)/(sinh² a + cos² b): both terms
// of the divisor are positive.
func (e *expansion) complexTanh(a, b *Node) (re, im *Node) {
	near := e.get(e.f.Clamp(e.like(a, -tanhFlat), a, e.like(a, tanhFlat)))
	sinh, cosh, _ := e.hyperbolic(near)
	// What is no angle makes all of it NaN, but where a is infinite.
	angle := e.where(e.infinite(a), e.where(e.finite(b), b, e.like(b, 0)), b)
	sin, cos := e.sin(angle), e.cos(angle)
	norm := e.add(e.square(sinh), e.square(cos))
	far := e.above(e.abs(a), tanhFlat)
	re = e.where(far, e.add(e.sign(a), e.times(angle, 0)), e.div(e.mul(sinh, cosh), norm))
	turn := e.mul(sin, cos)
	im = e.where(far, e.times(e.mul(turn, e.exp(e.times(e.abs(a), -2))), 4), e.div(turn, norm))
	return re, e.where(e.is(b, 0), b, im)
}

// complexLogistic is 1/(1 + e^-z), or e^z/(1 + e^z) where that exponential is
// the smaller one, q. The real part of 1 + q is (|q| - 1)·cos b + 2·cos²(b/2),
// which does not cancel near the poles.
func (e *expansion) complexLogistic(a, b *Node) (re, im *Node) {
	left := e.below(a, 0)
	low, angle := e.neg(e.abs(a)), e.where(left, b, e.neg(b))
	x, y := e.complexExp(low, angle)
	bounded := e.where(e.finite(b), angle, e.where(e.infinite(a), e.like(b, 0), b))
	below := e.add(e.mul(e.expm1(low), e.cos(bounded)), e.times(e.square(e.cos(e.times(bounded, 0.5))), 2))
	return e.quotient(e.where(left, x, e.like(x, 1)), e.where(left, y, e.like(y, 0)), below, y)
}

// complexPow is e^(w·log z), or a product for a known square or cube. Anything
// to the power of 0 is 1; of 0 it is 0 for a w with a positive real part, and
// infinite for a negative w.
func (e *expansion) complexPow(a, b, c, d *Node) (re, im *Node) {
	if c.splat != nil && d.splat != nil && *d.splat == 0 && (*c.splat == 2 || *c.splat == 3) {
		re, im = e.product(a, b, a, b)
		if *c.splat == 3 {
			re, im = e.product(re, im, a, b)
		}
		return e.spread(re, c), e.spread(im, c)
	}
	u, v := e.complexLog(a, b)
	u, v = e.product(u, v, c, d)
	re, im = e.complexExp(u, v)
	nothing, power := e.and(e.is(a, 0), e.is(b, 0)), e.is(d, 0)
	zero, inf, nan := e.like(a, 0), e.like(a, math.Inf(1)), e.like(a, math.NaN())
	of0 := e.where(e.above(c, 0), zero, e.where(e.and(e.below(c, 0), power), inf, nan))
	re = e.where(nothing, e.spread(of0, re), re)
	im = e.where(nothing, e.spread(e.where(e.isNaN(of0), nan, zero), im), im)
	unit := e.and(e.is(c, 0), power)
	return e.where(unit, e.like(a, 1), re), e.where(unit, zero, im)
}

// spread is x, or where that is a scalar and y none, one for each element of y.
func (e *expansion) spread(x, y *Node) *Node {
	if e.err != nil || !x.shape.IsScalar() || y.shape.IsScalar() {
		return x
	}
	return e.get(e.f.BroadcastInDim(x, withDType(y.shape, x.shape.DType), nil))
}
