package gomlxbackend

import "github.com/gomlx/compute"

// The methods of compute.Function that are rows of a table: what they mean is
// said there, and by compute.StandardOps.

// Abs is a row of unaryOps.
func (f *Function) Abs(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeAbs, x)
}

// BitCount is a row of unaryOps.
func (f *Function) BitCount(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeBitCount, x)
}

// BitwiseNot is a row of unaryOps.
func (f *Function) BitwiseNot(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeBitwiseNot, x)
}

// Ceil is a row of unaryOps.
func (f *Function) Ceil(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeCeil, x)
}

// Clz is a row of unaryOps.
func (f *Function) Clz(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeClz, x)
}

// Cos is a row of unaryOps.
func (f *Function) Cos(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeCos, x)
}

// Erf is a row of unaryOps.
func (f *Function) Erf(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeErf, x)
}

// Exp is a row of unaryOps.
func (f *Function) Exp(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeExp, x)
}

// Expm1 is a row of unaryOps.
func (f *Function) Expm1(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeExpm1, x)
}

// Floor is a row of unaryOps.
func (f *Function) Floor(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeFloor, x)
}

// Log is a row of unaryOps.
func (f *Function) Log(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLog, x)
}

// Log1p is a row of unaryOps.
func (f *Function) Log1p(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLog1p, x)
}

// LogicalNot is a row of unaryOps.
func (f *Function) LogicalNot(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLogicalNot, x)
}

// Logistic is a row of unaryOps.
func (f *Function) Logistic(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLogistic, x)
}

// Neg is a row of unaryOps.
func (f *Function) Neg(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeNeg, x)
}

// Round is a row of unaryOps.
func (f *Function) Round(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeRound, x)
}

// Rsqrt is a row of unaryOps.
func (f *Function) Rsqrt(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeRsqrt, x)
}

// Sign is a row of unaryOps.
func (f *Function) Sign(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeSign, x)
}

// Sin is a row of unaryOps.
func (f *Function) Sin(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeSin, x)
}

// Sqrt is a row of unaryOps.
func (f *Function) Sqrt(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeSqrt, x)
}

// Tanh is a row of unaryOps.
func (f *Function) Tanh(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeTanh, x)
}

// IsFinite is a row of predicates.
func (f *Function) IsFinite(x compute.Value) (compute.Value, error) {
	return f.predicate(compute.OpTypeIsFinite, x)
}

// IsNaN is a row of predicates.
func (f *Function) IsNaN(x compute.Value) (compute.Value, error) {
	return f.predicate(compute.OpTypeIsNaN, x)
}

// Add is a row of binaryOps.
func (f *Function) Add(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeAdd, lhs, rhs)
}

// Sub is a row of binaryOps.
func (f *Function) Sub(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeSub, lhs, rhs)
}

// Mul is a row of binaryOps.
func (f *Function) Mul(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMul, lhs, rhs)
}

// Div is a row of binaryOps.
func (f *Function) Div(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeDiv, lhs, rhs)
}

// Rem is a row of binaryOps.
func (f *Function) Rem(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeRem, lhs, rhs)
}

// Pow is a row of binaryOps.
func (f *Function) Pow(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypePow, lhs, rhs)
}

// Max is a row of binaryOps.
func (f *Function) Max(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMax, lhs, rhs)
}

// Min is a row of binaryOps.
func (f *Function) Min(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMin, lhs, rhs)
}

// Atan2 is a row of binaryOps.
func (f *Function) Atan2(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeAtan2, lhs, rhs)
}

// BitwiseAnd is a row of binaryOps.
func (f *Function) BitwiseAnd(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseAnd, lhs, rhs)
}

// BitwiseOr is a row of binaryOps.
func (f *Function) BitwiseOr(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseOr, lhs, rhs)
}

// BitwiseXor is a row of binaryOps.
func (f *Function) BitwiseXor(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseXor, lhs, rhs)
}

// LogicalAnd is a row of binaryOps.
func (f *Function) LogicalAnd(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalAnd, lhs, rhs)
}

// LogicalOr is a row of binaryOps.
func (f *Function) LogicalOr(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalOr, lhs, rhs)
}

// LogicalXor is a row of binaryOps.
func (f *Function) LogicalXor(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalXor, lhs, rhs)
}

// ShiftLeft is a row of binaryOps.
func (f *Function) ShiftLeft(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeShiftLeft, lhs, rhs)
}

// ShiftRightArithmetic is a row of binaryOps.
func (f *Function) ShiftRightArithmetic(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeShiftRightArithmetic, lhs, rhs)
}

// ShiftRightLogical is a row of binaryOps.
func (f *Function) ShiftRightLogical(lhs, rhs compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeShiftRightLogical, lhs, rhs)
}

// Equal is a row of comparisons.
func (f *Function) Equal(lhs, rhs compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeEqual, lhs, rhs)
}

// NotEqual is a row of comparisons.
func (f *Function) NotEqual(lhs, rhs compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeNotEqual, lhs, rhs)
}

// LessThan is a row of comparisons.
func (f *Function) LessThan(lhs, rhs compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeLessThan, lhs, rhs)
}

// LessOrEqual is a row of comparisons.
func (f *Function) LessOrEqual(lhs, rhs compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeLessOrEqual, lhs, rhs)
}

// GreaterThan is a row of comparisons.
func (f *Function) GreaterThan(lhs, rhs compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeGreaterThan, lhs, rhs)
}

// GreaterOrEqual is a row of comparisons.
func (f *Function) GreaterOrEqual(lhs, rhs compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeGreaterOrEqual, lhs, rhs)
}

// EqualTotalOrder is a row of comparisons.
func (f *Function) EqualTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeEqualTotalOrder, lhs, rhs)
}

// NotEqualTotalOrder is a row of comparisons.
func (f *Function) NotEqualTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeNotEqualTotalOrder, lhs, rhs)
}

// LessThanTotalOrder is a row of comparisons.
func (f *Function) LessThanTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeLessThanTotalOrder, lhs, rhs)
}

// LessOrEqualTotalOrder is a row of comparisons.
func (f *Function) LessOrEqualTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeLessOrEqualTotalOrder, lhs, rhs)
}

// GreaterThanTotalOrder is a row of comparisons.
func (f *Function) GreaterThanTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeGreaterThanTotalOrder, lhs, rhs)
}

// GreaterOrEqualTotalOrder is a row of comparisons.
func (f *Function) GreaterOrEqualTotalOrder(lhs, rhs compute.Value) (compute.Value, error) {
	return f.compare(compute.OpTypeGreaterOrEqualTotalOrder, lhs, rhs)
}

// ReduceSum is a row of reductions.
func (f *Function) ReduceSum(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceSum, x, axes)
}

// ReduceProduct is a row of reductions.
func (f *Function) ReduceProduct(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceProduct, x, axes)
}

// ReduceMax is a row of reductions.
func (f *Function) ReduceMax(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceMax, x, axes)
}

// ReduceMin is a row of reductions.
func (f *Function) ReduceMin(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceMin, x, axes)
}

// ReduceLogicalAnd is a row of reductions.
func (f *Function) ReduceLogicalAnd(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalAnd, x, axes)
}

// ReduceLogicalOr is a row of reductions.
func (f *Function) ReduceLogicalOr(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalOr, x, axes)
}

// ReduceLogicalXor is a row of reductions.
func (f *Function) ReduceLogicalXor(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceLogicalXor, x, axes)
}

// ReduceBitwiseAnd is a row of reductions.
func (f *Function) ReduceBitwiseAnd(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceBitwiseAnd, x, axes)
}

// ReduceBitwiseOr is a row of reductions.
func (f *Function) ReduceBitwiseOr(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceBitwiseOr, x, axes)
}

// ReduceBitwiseXor is a row of reductions.
func (f *Function) ReduceBitwiseXor(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(compute.OpTypeReduceBitwiseXor, x, axes)
}
