package gomlxbackend

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

type tensor = millrace.Tensor // in the tables below

// binary is an elementwise op of two operands. Where one of them is a number
// known beforehand, it becomes a scalar of the kernel.
type binary struct {
	takes  func(dtypes.DType) bool
	do     func(r *run, dt dtypes.DType, x, y *tensor) *tensor
	number func(x *tensor, y float64) *tensor // nil: there is none
	swap   func(y *tensor, x float64) *tensor // x is the number
}

func pair(takes func(dtypes.DType) bool, m func(x, y *tensor) *tensor, number, swap func(*tensor, float64) *tensor) binary {
	return binary{takes, func(_ *run, _ dtypes.DType, x, y *tensor) *tensor { return m(x, y) }, number, swap}
}

func isNumber(dt dtypes.DType) bool { return dt.IsInt() || dt.IsFloat() }
func isBool(dt dtypes.DType) bool   { return dt == dtypes.Bool }
func isAny(dtypes.DType) bool       { return true }

// binaryOps has a row for each elementwise op of two operands whose result has
// their dtype.
var binaryOps = map[compute.OpType]binary{
	compute.OpTypeAdd:   pair(isNumber, (*tensor).Add, (*tensor).AddScalar, (*tensor).AddScalar),
	compute.OpTypeSub:   pair(isNumber, (*tensor).Sub, (*tensor).SubScalar, (*tensor).ScalarSub),
	compute.OpTypeMul:   pair(isNumber, (*tensor).Mul, (*tensor).MulScalar, (*tensor).MulScalar),
	compute.OpTypeDiv:   pair(isNumber, (*tensor).Div, (*tensor).DivScalar, (*tensor).ScalarDiv),
	compute.OpTypePow:   pair(isNumber, (*tensor).Pow, power, (*tensor).ScalarPow),
	compute.OpTypeMax:   pair(isNumber, (*tensor).Maximum, (*tensor).MaximumScalar, (*tensor).MaximumScalar),
	compute.OpTypeMin:   pair(isNumber, (*tensor).Minimum, (*tensor).MinimumScalar, (*tensor).MinimumScalar),
	compute.OpTypeAtan2: pair(dtypes.DType.IsFloat, (*tensor).Atan2, (*tensor).Atan2Scalar, (*tensor).ScalarAtan2),
	compute.OpTypeRem:   {takes: isNumber, do: remainder},

	compute.OpTypeBitwiseAnd: pair(dtypes.DType.IsInt, (*tensor).BitAnd, (*tensor).BitAndScalar, (*tensor).BitAndScalar),
	compute.OpTypeBitwiseOr:  pair(dtypes.DType.IsInt, (*tensor).BitOr, (*tensor).BitOrScalar, (*tensor).BitOrScalar),
	compute.OpTypeBitwiseXor: pair(dtypes.DType.IsInt, (*tensor).BitXor, (*tensor).BitXorScalar, (*tensor).BitXorScalar),
	compute.OpTypeLogicalAnd: pair(isBool, (*tensor).And, nil, nil),
	compute.OpTypeLogicalOr:  pair(isBool, (*tensor).Or, nil, nil),
	compute.OpTypeLogicalXor: pair(isBool, (*tensor).Xor, nil, nil),

	compute.OpTypeShiftLeft:            pair(dtypes.DType.IsInt, (*tensor).Shl, (*tensor).ShlScalar, nil),
	compute.OpTypeShiftRightArithmetic: pair(dtypes.DType.IsInt, (*tensor).Shr, (*tensor).ShrScalar, nil),
	compute.OpTypeShiftRightLogical:    {takes: dtypes.DType.IsInt, do: shiftLogical},
}

// comparisons has a row for each elementwise op of two operands that gives a
// bool.
var comparisons = map[compute.OpType]binary{
	compute.OpTypeEqual:          pair(isAny, (*tensor).Eq, (*tensor).EqScalar, (*tensor).EqScalar),
	compute.OpTypeNotEqual:       pair(isAny, (*tensor).Ne, (*tensor).NeScalar, (*tensor).NeScalar),
	compute.OpTypeLessThan:       ordered((*tensor).Lt, (*tensor).LtScalar, (*tensor).GtScalar),
	compute.OpTypeLessOrEqual:    ordered((*tensor).Le, (*tensor).LeScalar, (*tensor).GeScalar),
	compute.OpTypeGreaterThan:    ordered((*tensor).Gt, (*tensor).GtScalar, (*tensor).LtScalar),
	compute.OpTypeGreaterOrEqual: ordered((*tensor).Ge, (*tensor).GeScalar, (*tensor).LeScalar),

	compute.OpTypeEqualTotalOrder:          {takes: isAny, do: totalEqual},
	compute.OpTypeNotEqualTotalOrder:       {takes: isAny, do: negated(totalEqual)},
	compute.OpTypeLessThanTotalOrder:       {takes: isAny, do: totalLess},
	compute.OpTypeGreaterOrEqualTotalOrder: {takes: isAny, do: negated(totalLess)},
	compute.OpTypeGreaterThanTotalOrder:    {takes: isAny, do: swapped(totalLess)},
	compute.OpTypeLessOrEqualTotalOrder:    {takes: isAny, do: negated(swapped(totalLess))},
}

type binaryFunc = func(r *run, dt dtypes.DType, x, y *tensor) *tensor

// ordered compares bools too: false is less than true.
func ordered(m func(x, y *tensor) *tensor, number, swap func(*tensor, float64) *tensor) binary {
	return binary{isAny, orderedAs(m), number, swap}
}

func orderedAs(m func(x, y *tensor) *tensor) binaryFunc {
	return func(r *run, dt dtypes.DType, x, y *tensor) *tensor {
		if dt == dtypes.Bool {
			x, y = r.temp(x.Cast(millrace.Int32)), r.temp(y.Cast(millrace.Int32))
		}
		return m(x, y)
	}
}

func negated(do binaryFunc) binaryFunc {
	return func(r *run, dt dtypes.DType, x, y *tensor) *tensor { return r.temp(do(r, dt, x, y)).Not() }
}

func swapped(do binaryFunc) binaryFunc {
	return func(r *run, dt dtypes.DType, x, y *tensor) *tensor { return do(r, dt, y, x) }
}

// totalEqual is equality where -0 is not +0 and a NaN equals any NaN, which
// Millrace does not tell apart. Of equal numbers only the zeros have different
// reciprocals.
func totalEqual(r *run, dt dtypes.DType, x, y *tensor) *tensor {
	equal := x.Eq(y)
	if !dt.IsFloat() {
		return equal
	}
	r.temp(equal)
	same := r.temp(r.temp(x.Recip()).Eq(r.temp(y.Recip())))
	nan := r.temp(r.temp(x.IsNaN()).And(r.temp(y.IsNaN())))
	return r.temp(equal.And(same)).Or(nan)
}

// totalLess is the order in which -0 comes before +0, and NaN last.
func totalLess(r *run, dt dtypes.DType, x, y *tensor) *tensor {
	less := orderedAs((*tensor).Lt)(r, dt, x, y)
	if !dt.IsFloat() {
		return less
	}
	r.temp(less)
	zeros := r.temp(r.temp(x.Eq(y)).And(r.temp(r.temp(x.Recip()).Lt(r.temp(y.Recip())))))
	nan := r.temp(r.temp(y.IsNaN()).And(r.temp(r.temp(x.IsNaN()).Not())))
	return r.temp(less.Or(zeros)).Or(nan)
}

// power takes small whole powers as products.
func power(x *tensor, y float64) *tensor {
	if y == 2 || y == 3 {
		return x.PowInt(int(y))
	}
	return x.PowScalar(y)
}

// remainder is what is left of x after division by y with a quotient that is
// rounded toward zero: it has x's sign, -0 included. Tensor.Rem rounds down,
// which is the same where neither is negative. An integer by 0 leaves x.
func remainder(r *run, dt dtypes.DType, x, y *tensor) *tensor {
	if dt.IsInt() {
		return x.Sub(r.temp(r.temp(x.Div(y)).Mul(y)))
	}
	return r.temp(x.Sign()).Mul(r.temp(r.temp(x.Abs()).Rem(r.temp(y.Abs()))))
}

// shiftLogical shifts zeros in, where Shr copies the sign of signed types: those
// bits are masked. An amount below 0, or of the width and more, leaves nothing.
func shiftLogical(r *run, dt dtypes.DType, x, y *tensor) *tensor {
	if dt.IsUnsigned() {
		return x.Shr(y)
	}
	width := float64(dt.Bits())
	some := r.temp(r.temp(y.MaskedFill(r.temp(y.LtScalar(0)), width)).MinimumScalar(width))
	ones := r.temp(millrace.FullOn(r.sc, dtypeRows[dt].dt, -1))
	mask := r.temp(r.temp(ones.Shl(r.temp(some.ScalarSub(width)))).BitNot())
	return r.temp(x.Shr(some)).BitAnd(mask)
}

func (f *Function) binary(op compute.OpType, x, y compute.Value) (compute.Value, error) {
	return f.elementwise(op, binaryOps[op], x, y, shapeinference.BinaryOp)
}

func (f *Function) compare(op compute.OpType, x, y compute.Value) (compute.Value, error) {
	return f.elementwise(op, comparisons[op], x, y, compared)
}

// compared is shapeinference.ComparisonOp for all comparisons, of which that one
// leaves out NotEqualTotalOrder.
func compared(op compute.OpType, x, y shapes.Shape) (shapes.Shape, error) {
	if op == compute.OpTypeNotEqualTotalOrder {
		op = compute.OpTypeEqualTotalOrder
	}
	return shapeinference.ComparisonOp(op, x, y)
}

func (f *Function) elementwise(op compute.OpType, row binary, x, y compute.Value,
	infer func(compute.OpType, shapes.Shape, shapes.Shape) (shapes.Shape, error)) (compute.Value, error) {
	return f.build(op, []compute.Value{x, y}, func(in []*Node) (*Node, error) {
		shape, err := infer(op, in[0].shape, in[1].shape)
		if err != nil {
			return nil, err
		}
		dt := in[0].shape.DType
		if !row.takes(dt) {
			return nil, errors.Errorf("not defined for %s", dt)
		}
		shape = withZeros(shape, in[0].shape, in[1].shape)
		return f.add(op, shape, nil, row.apply(dt, shape, in[0], in[1]), in...)
	})
}

// withZeros makes a dimension of 0 broadcast as others do: shapeinference takes
// the larger of 0 and 1.
func withZeros(shape shapes.Shape, operands ...shapes.Shape) shapes.Shape {
	shape = shape.Clone()
	for _, s := range operands {
		if s.Rank() != shape.Rank() {
			continue
		}
		for i, d := range s.Dimensions {
			if d == 0 {
				shape.Dimensions[i] = 0
			}
		}
	}
	return shape
}

// apply picks the form with a number where one operand is one, and the other
// has the result's shape.
func (b binary) apply(dt dtypes.DType, shape shapes.Shape, x, y *Node) apply {
	switch {
	case y.splat != nil && b.number != nil && x.shape.EqualDimensions(shape):
		v := *y.splat
		return func(_ *run, in []*tensor) *tensor { return b.number(in[0], v) }
	case x.splat != nil && b.swap != nil && y.shape.EqualDimensions(shape):
		v := *x.splat
		return func(_ *run, in []*tensor) *tensor { return b.swap(in[1], v) }
	}
	return func(r *run, in []*tensor) *tensor { return b.do(r, dt, in[0], in[1]) }
}
