package millrace

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// The ops of this file are arithmetic on two operands. The operands broadcast as in NumPy (else
// ErrShape). They have one dtype, of numbers unless an op says otherwise (else ErrDType), which
// is the result's too. Integers wrap around. In the Scalar forms, the number takes the tensor's
// dtype: a float dtype rounds it to nearest, and an integer dtype must hold it exactly, else
// ErrDType. AddScalar(s) is t + s; if the order of the operands matters, ScalarSub(s) is s - t.
// Go rounds an integer above 2^53 to a float64 before a method gets it; FromSlice of one element
// is exact.

// Add is t + u. The operands broadcast (else ErrShape) and have one dtype (else ErrDType).
func (t *Tensor) Add(u *Tensor) *Tensor { return binary(ir.Add, t, u) }

// AddScalar is t + s: [Tensor.Add] with a number for u. A number that t's dtype cannot hold is
// ErrDType.
func (t *Tensor) AddScalar(s float64) *Tensor { return rightScalar(ir.Add, t, s) }

// Sub is t - u. The operands broadcast (else ErrShape) and have one dtype (else ErrDType).
func (t *Tensor) Sub(u *Tensor) *Tensor { return binary(ir.Sub, t, u) }

// SubScalar is t - s: [Tensor.Sub] with a number for u. A number that t's dtype cannot hold is
// ErrDType.
func (t *Tensor) SubScalar(s float64) *Tensor { return rightScalar(ir.Sub, t, s) }

// ScalarSub is s - t: [Tensor.Sub] with a number for t, the operands in that order. A number that
// t's dtype cannot hold is ErrDType.
func (t *Tensor) ScalarSub(s float64) *Tensor { return leftScalar(ir.Sub, s, t) }

// Mul is t * u. The operands broadcast (else ErrShape) and have one dtype (else ErrDType).
func (t *Tensor) Mul(u *Tensor) *Tensor { return binary(ir.Mul, t, u) }

// MulScalar is t * s: [Tensor.Mul] with a number for u. A number that t's dtype cannot hold is
// ErrDType.
func (t *Tensor) MulScalar(s float64) *Tensor { return rightScalar(ir.Mul, t, s) }

// Div is t / u: NumPy's and PyTorch's divide for floats, the IEEE quotient. For integers it is the
// quotient rounded toward zero, as in Go; x/0 is 0, and the smallest value divided by -1 wraps
// around to itself. The operands broadcast (else ErrShape) and have one dtype (else ErrDType).
func (t *Tensor) Div(u *Tensor) *Tensor { return binary(ir.Div, t, u) }

// DivScalar is t / s: [Tensor.Div] with a number for u. A number that t's dtype cannot hold is
// ErrDType.
func (t *Tensor) DivScalar(s float64) *Tensor { return rightScalar(ir.Div, t, s) }

// ScalarDiv is s / t: [Tensor.Div] with a number for t, the operands in that order. A number that
// t's dtype cannot hold is ErrDType.
func (t *Tensor) ScalarDiv(s float64) *Tensor { return leftScalar(ir.Div, s, t) }

// FloorDiv is t/u rounded down: NumPy's and PyTorch's floor_divide. For floats it is the exact
// quotient rounded down, as long as the dtype has every whole number of its size (up to 2^24 for
// Float32). For integers x/0 is 0, and the smallest value divided by -1 wraps around to itself. If
// no result is rounded, FloorDiv*u + Rem is t. The operands broadcast (else ErrShape) and have one
// dtype (else ErrDType).
func (t *Tensor) FloorDiv(u *Tensor) *Tensor { return binary(ir.FloorDiv, t, u) }

// FloorDivScalar is t/s rounded down: [Tensor.FloorDiv] with a number for u. A number that t's
// dtype cannot hold is ErrDType.
func (t *Tensor) FloorDivScalar(s float64) *Tensor { return rightScalar(ir.FloorDiv, t, s) }

// ScalarFloorDiv is s/t rounded down: [Tensor.FloorDiv] with a number for t, the operands in that
// order. A number that t's dtype cannot hold is ErrDType.
func (t *Tensor) ScalarFloorDiv(s float64) *Tensor { return leftScalar(ir.FloorDiv, s, t) }

// Rem is the remainder that goes with [Tensor.FloorDiv], with the sign of u: NumPy's and Python's
// %, not Go's, and PyTorch's remainder. For integers the remainder by 0 is 0; for floats it is NaN.
// The operands broadcast (else ErrShape) and have one dtype (else ErrDType).
func (t *Tensor) Rem(u *Tensor) *Tensor { return binary(ir.Rem, t, u) }

// RemScalar is the remainder of t by s: [Tensor.Rem] with a number for u. A number that t's dtype
// cannot hold is ErrDType.
func (t *Tensor) RemScalar(s float64) *Tensor { return rightScalar(ir.Rem, t, s) }

// ScalarRem is the remainder of s by t: [Tensor.Rem] with a number for t, the operands in that
// order. A number that t's dtype cannot hold is ErrDType.
func (t *Tensor) ScalarRem(s float64) *Tensor { return leftScalar(ir.Rem, s, t) }

// Pow is t to the power u: NumPy's power, PyTorch's pow. For floats the special cases are those of
// C's pow: x to the power ±0 is 1 for any x, even NaN, and a negative number to a power that is not
// whole is NaN. For integers it wraps around. A negative power of an integer is 0, except for the
// bases 1 and -1. The operands broadcast (else ErrShape) and have one dtype (else ErrDType).
func (t *Tensor) Pow(u *Tensor) *Tensor { return binary(ir.Pow, t, u) }

// PowScalar is t to the power s: [Tensor.Pow] with a number for u. A number that t's dtype cannot
// hold, such as 0.5 for integers, is ErrDType. For small whole powers [Tensor.PowInt] is faster.
func (t *Tensor) PowScalar(s float64) *Tensor { return rightScalar(ir.Pow, t, s) }

// ScalarPow is s to the power t: [Tensor.Pow] with a number for t, the operands in that order. A
// number that t's dtype cannot hold is ErrDType.
func (t *Tensor) ScalarPow(s float64) *Tensor { return leftScalar(ir.Pow, s, t) }

// Maximum is the larger of t and u. If either is NaN, the result is NaN; -0 is less than +0. The
// largest element of a tensor is [Tensor.Max]. The operands broadcast (else ErrShape) and have one
// dtype (else ErrDType).
func (t *Tensor) Maximum(u *Tensor) *Tensor { return binary(ir.Maximum, t, u) }

// MaximumScalar is the larger of t and s: [Tensor.Maximum] with a number for u. A number that t's
// dtype cannot hold is ErrDType.
func (t *Tensor) MaximumScalar(s float64) *Tensor { return rightScalar(ir.Maximum, t, s) }

// Minimum is the smaller of t and u. If either is NaN, the result is NaN; -0 is less than +0. The
// smallest element of a tensor is [Tensor.Min]. The operands broadcast (else ErrShape) and have one
// dtype (else ErrDType).
func (t *Tensor) Minimum(u *Tensor) *Tensor { return binary(ir.Minimum, t, u) }

// MinimumScalar is the smaller of t and s: [Tensor.Minimum] with a number for u. A number that t's
// dtype cannot hold is ErrDType.
func (t *Tensor) MinimumScalar(s float64) *Tensor { return rightScalar(ir.Minimum, t, s) }

// Atan2 is the angle of the point (u, t), in [-π, π]: the arc tangent of t/u in the right quadrant,
// with the special cases of C's atan2. Floats only (else ErrDType). The operands broadcast (else
// ErrShape) and have one dtype.
func (t *Tensor) Atan2(u *Tensor) *Tensor { return binary(ir.Atan2, t, u) }

// Atan2Scalar is the angle of (s, t): [Tensor.Atan2] with a number for u. A number that t's dtype
// cannot hold is ErrDType.
func (t *Tensor) Atan2Scalar(s float64) *Tensor { return rightScalar(ir.Atan2, t, s) }

// ScalarAtan2 is the angle of (t, s): [Tensor.Atan2] with a number for t, the operands in that
// order. A number that t's dtype cannot hold is ErrDType.
func (t *Tensor) ScalarAtan2(s float64) *Tensor { return leftScalar(ir.Atan2, s, t) }

// maxPowInt is the largest power that is computed by products. Each squaring doubles the relative
// error, so Pow is the better choice for larger powers.
const maxPowInt = 16

// PowInt is t to a whole power n, for numbers, else ErrDType. The result has t's shape and dtype.
// For n from 1 to 16, and for floats also from -16 to -1, it records products (and one Recip). The
// result may differ from [Tensor.Pow] in the last bits. Other powers are [Tensor.PowScalar].
func (t *Tensor) PowInt(n int) (r *Tensor) {
	c := compose("pow", nil, &t)
	defer c.end(&r)
	m := abs(n)
	if c.bad != nil {
		return c.bad
	}
	if m == 0 || m > maxPowInt || m < 0 || n < 0 && !t.DType().IsFloat() {
		return t.PowScalar(float64(n))
	}
	if r = powInt(t, m); n < 0 {
		return r.Recip()
	}
	return r
}

// powInt returns the product of m >= 1 factors t. It squares the power m/2.
func powInt(t *Tensor, m int) (r *Tensor) {
	if m == 1 {
		return t
	}
	defer within(t).end(&r)
	half := powInt(t, m/2)
	if r = half.Mul(half); m%2 == 1 {
		return r.Mul(t)
	}
	return r
}

// same returns another handle of t's value.
func (t *Tensor) same() *Tensor { return t.Reshape(t.shape()...) }

// The ops of this file compare element by element. The operands broadcast as in NumPy (else
// ErrShape) and have one dtype (else ErrDType); the result is Bool. A comparison with NaN is
// false, except Ne. In the Scalar forms, the number takes the tensor's dtype: a float dtype
// rounds it to nearest, and an integer dtype must hold it exactly, else ErrDType. [Equal] and
// [AllClose] compare whole tensors.

// Eq is t == u. For any dtype. The operands broadcast (else ErrShape) and have one dtype (else
// ErrDType). The result is Bool.
func (t *Tensor) Eq(u *Tensor) *Tensor { return binary(ir.Eq, t, u) }

// EqScalar is t == s: [Tensor.Eq] with a number for u. A number that t's dtype cannot hold is
// ErrDType.
func (t *Tensor) EqScalar(s float64) *Tensor { return rightScalar(ir.Eq, t, s) }

// Ne is t != u. For any dtype; it is true where either is NaN. The operands broadcast (else
// ErrShape) and have one dtype (else ErrDType). The result is Bool.
func (t *Tensor) Ne(u *Tensor) *Tensor { return binary(ir.Ne, t, u) }

// NeScalar is t != s: [Tensor.Ne] with a number for u. A number that t's dtype cannot hold is
// ErrDType.
func (t *Tensor) NeScalar(s float64) *Tensor { return rightScalar(ir.Ne, t, s) }

// Lt is t < u. For numbers. The operands broadcast (else ErrShape) and have one dtype (else
// ErrDType). The result is Bool.
func (t *Tensor) Lt(u *Tensor) *Tensor { return binary(ir.Lt, t, u) }

// LtScalar is t < s: [Tensor.Lt] with a number for u. A number that t's dtype cannot hold is
// ErrDType.
func (t *Tensor) LtScalar(s float64) *Tensor { return rightScalar(ir.Lt, t, s) }

// Le is t <= u. For numbers. The operands broadcast (else ErrShape) and have one dtype (else
// ErrDType). The result is Bool.
func (t *Tensor) Le(u *Tensor) *Tensor { return binary(ir.Le, t, u) }

// LeScalar is t <= s: [Tensor.Le] with a number for u. A number that t's dtype cannot hold is
// ErrDType.
func (t *Tensor) LeScalar(s float64) *Tensor { return rightScalar(ir.Le, t, s) }

// Gt is t > u. For numbers. The operands broadcast (else ErrShape) and have one dtype (else
// ErrDType). The result is Bool.
func (t *Tensor) Gt(u *Tensor) *Tensor { return binary(ir.Gt, t, u) }

// GtScalar is t > s: [Tensor.Gt] with a number for u. A number that t's dtype cannot hold is
// ErrDType.
func (t *Tensor) GtScalar(s float64) *Tensor { return rightScalar(ir.Gt, t, s) }

// Ge is t >= u. For numbers. The operands broadcast (else ErrShape) and have one dtype (else
// ErrDType). The result is Bool.
func (t *Tensor) Ge(u *Tensor) *Tensor { return binary(ir.Ge, t, u) }

// GeScalar is t >= s: [Tensor.Ge] with a number for u. A number that t's dtype cannot hold is
// ErrDType.
func (t *Tensor) GeScalar(s float64) *Tensor { return rightScalar(ir.Ge, t, s) }

// The ops of this file are logic on Bool tensors and bit operations on integer tensors. The
// operands broadcast as in NumPy (else ErrShape) and have one dtype (else ErrDType), which is the
// result's too.

func isBool(dt DType) bool { return dt == Bool }
func isInt(dt DType) bool  { return dt.IsInt() }

const (
	useBit   = "for integers there are BitAnd, BitOr, BitXor and BitNot"
	useLogic = "bit operations take integers; for bool there are And, Or, Xor and Not"
)

// logic and bitwise record op on two operands if the first one's dtype allows it. Recording
// checks that the second one has the same dtype.
func logic(op ir.Op, t, u *Tensor) *Tensor   { return only(op, isBool, useBit, t, arg(u)) }
func bitwise(op ir.Op, t, u *Tensor) *Tensor { return only(op, isInt, useLogic, t, arg(u)) }

func bitwiseScalar(op ir.Op, t *Tensor, s float64) *Tensor {
	t = still(t)
	defer done(t)
	bits, ok := scalarBits(t.DType(), s)
	if !ok && t.DType().IsInt() {
		return unheld(op, t, s)
	}
	return only(op, isInt, useLogic, t, stream.Arg{Bits: bits})
}

// And is true where t and u both are: NumPy's and PyTorch's logical_and. Bool only (else ErrDType).
// The operands broadcast (else ErrShape) and have one dtype.
func (t *Tensor) And(u *Tensor) *Tensor { return logic(ir.And, t, u) }

// Or is true where t or u is, or both: NumPy's and PyTorch's logical_or. Bool only (else ErrDType).
// The operands broadcast (else ErrShape) and have one dtype.
func (t *Tensor) Or(u *Tensor) *Tensor { return logic(ir.Or, t, u) }

// Xor is true where exactly one of t and u is: NumPy's and PyTorch's logical_xor. Bool only (else
// ErrDType). The operands broadcast (else ErrShape) and have one dtype.
func (t *Tensor) Xor(u *Tensor) *Tensor { return logic(ir.Xor, t, u) }

// Not is true where t is false. Bool only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Not() *Tensor {
	return only(ir.Not, isBool, useBit, t)
}

// BitAnd is t & u. Integers only (else ErrDType). The operands broadcast (else ErrShape) and have
// one dtype.
func (t *Tensor) BitAnd(u *Tensor) *Tensor { return bitwise(ir.And, t, u) }

// BitAndScalar is [Tensor.BitAnd] with a number for u. A number that t's dtype cannot hold is
// ErrDType.
func (t *Tensor) BitAndScalar(s float64) *Tensor { return bitwiseScalar(ir.And, t, s) }

// BitOr is t | u. Integers only (else ErrDType). The operands broadcast (else ErrShape) and have
// one dtype.
func (t *Tensor) BitOr(u *Tensor) *Tensor { return bitwise(ir.Or, t, u) }

// BitOrScalar is [Tensor.BitOr] with a number for u. A number that t's dtype cannot hold is
// ErrDType.
func (t *Tensor) BitOrScalar(s float64) *Tensor { return bitwiseScalar(ir.Or, t, s) }

// BitXor is t ^ u. Integers only (else ErrDType). The operands broadcast (else ErrShape) and have
// one dtype.
func (t *Tensor) BitXor(u *Tensor) *Tensor { return bitwise(ir.Xor, t, u) }

// BitXorScalar is [Tensor.BitXor] with a number for u. A number that t's dtype cannot hold is
// ErrDType.
func (t *Tensor) BitXorScalar(s float64) *Tensor { return bitwiseScalar(ir.Xor, t, s) }

// BitNot is ^t, every bit inverted. Integers only (else ErrDType). The result has t's shape and
// dtype.
func (t *Tensor) BitNot() *Tensor {
	return only(ir.Not, isInt, useLogic, t)
}

// Shl is t << u. Bits that are shifted out are lost. A shift by the dtype's width or more, or a
// negative one, gives 0. Integers only (else ErrDType). The operands broadcast (else ErrShape) and
// have one dtype.
func (t *Tensor) Shl(u *Tensor) *Tensor { return bitwise(ir.Shl, t, u) }

// ShlScalar is [Tensor.Shl] with a number for u. A number that t's dtype cannot hold is ErrDType.
func (t *Tensor) ShlScalar(s float64) *Tensor { return bitwiseScalar(ir.Shl, t, s) }

// Shr is t >> u. It shifts in copies of the sign for signed dtypes, and zeros for unsigned ones. A
// shift by the dtype's width or more, or a negative one, leaves only these. Integers only (else
// ErrDType). The operands broadcast (else ErrShape) and have one dtype.
func (t *Tensor) Shr(u *Tensor) *Tensor { return bitwise(ir.Shr, t, u) }

// MulHigh is the high half of the product t * u; Mul is the low half. It is for arithmetic on
// numbers of several words. Uint32 and Uint64 only (else ErrDType). The operands broadcast (else
// ErrShape) and have one dtype, which is the result's too.
func (t *Tensor) MulHigh(u *Tensor) *Tensor { return binary(ir.MulHigh, t, u) }

// ShrScalar is [Tensor.Shr] with a number for u. A number that t's dtype cannot hold is ErrDType.
func (t *Tensor) ShrScalar(s float64) *Tensor { return bitwiseScalar(ir.Shr, t, s) }

// Where takes elements of x where mask is true, and of y elsewhere: NumPy's and PyTorch's where.
// The mask is Bool. x and y have one dtype, of any kind, which is the result's too (else
// ErrDType). All three broadcast as in NumPy (else ErrShape).
func Where(mask, x, y *Tensor) *Tensor { return ternary(ir.Where, mask, x, y) }

// WhereScalar is [Where] with a number for y. A number that x's dtype cannot hold is ErrDType, as
// in [Tensor.AddScalar].
func WhereScalar(mask, x *Tensor, y float64) *Tensor { return whereScalar(mask, x, y, 1) }

// ScalarWhere is [Where] with a number for x. A number that y's dtype cannot hold is ErrDType, as
// in [Tensor.AddScalar].
func ScalarWhere(mask *Tensor, x float64, y *Tensor) *Tensor { return whereScalar(mask, y, x, 2) }

// whereScalar is Where of a number and x, which is operand number at; the number takes x's dtype.
func whereScalar(mask, x *Tensor, s float64, at int) *Tensor {
	for {
		is := seen(x)
		bits, ok := scalarBits(is.Is.DType(), s)
		if !ok {
			return unheld(ir.Where, x, s)
		}
		args := [3]stream.Arg{0: arg(mask)}
		args[at], args[3-at].Bits = is, bits
		if r, ok := recordAs(ir.Where, ir.Invalid, nil, nil, args[:]); ok {
			return r
		}
	}
}

// Clamp limits t to [lo, hi]: NumPy's clip, PyTorch's clamp. It is Minimum(Maximum(t, lo), hi),
// so the result is hi if lo > hi, and a NaN in any operand gives NaN. The three have one dtype of
// numbers, which is the result's too (else ErrDType), and broadcast as in NumPy (else ErrShape).
func (t *Tensor) Clamp(lo, hi *Tensor) *Tensor { return ternary(ir.Clamp, t, lo, hi) }

// ClampScalar is [Tensor.Clamp] with numbers for lo and hi. A number that t's dtype cannot hold is
// ErrDType, as in [Tensor.AddScalar].
func (t *Tensor) ClampScalar(lo, hi float64) *Tensor {
	for {
		is := seen(t)
		a, ok := scalarBits(is.Is.DType(), lo)
		if !ok {
			return unheld(ir.Clamp, t, lo)
		}
		b, ok := scalarBits(is.Is.DType(), hi)
		if !ok {
			return unheld(ir.Clamp, t, hi)
		}
		args := [...]stream.Arg{is, {Bits: a}, {Bits: b}}
		if r, ok := recordAs(ir.Clamp, ir.Invalid, nil, nil, args[:]); ok {
			return r
		}
	}
}

// IsNaN is true where t is NaN. The result is Bool and has t's shape. Floats only, else ErrDType.
func (t *Tensor) IsNaN() *Tensor { return unary(ir.IsNaN, t) }

// IsInf is true where t is +Inf or -Inf. The result is Bool and has t's shape. Floats only, else
// ErrDType.
func (t *Tensor) IsInf() *Tensor { return unary(ir.IsInf, t) }

// IsFinite is true where t is neither NaN nor an infinity. The result is Bool and has t's shape.
// Floats only, else ErrDType.
func (t *Tensor) IsFinite() *Tensor { return unary(ir.IsFinite, t) }

// Cast converts the elements to another dtype: NumPy's astype, PyTorch's to. To an integer dtype,
// floats are rounded toward zero, and NaN becomes 0. A number out of the range, of floats or
// integers, becomes the nearest limit. To a float dtype, numbers are rounded to nearest. false
// becomes 0 and true 1. To bool, 0 becomes false and every other number true, NaN too. A dtype
// that tensors cannot have is ErrDType; one that the device lacks is ErrUnsupported.
func (t *Tensor) Cast(dt DType) *Tensor {
	if !dt.Tensor() {
		return failed("cast", dtypeErr("%v is not a tensor dtype", dt), t)
	}
	args := [...]stream.Arg{arg(t)}
	return record(ir.Cast, dt, nil, nil, args[:])
}

// The ops of this file are activation functions of neural networks: compositions of other ops,
// recorded as one. Shape and dtype of the result are t's. Floats only, else ErrDType, unless an
// op says otherwise.

// Sigmoid is 1/(1+exp(-t)). Floats only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Sigmoid() *Tensor { return unary(ir.Sigmoid, t) }

// Relu is t where t is above 0, else +0. NaN gives NaN. Numbers only, else ErrDType. The result has
// t's shape and dtype.
func (t *Tensor) Relu() *Tensor { return unary(ir.Relu, t) }

// Gelu is t·Φ(t) = t·(erf(t/√2)+1)/2, with Φ the distribution function of the standard normal
// distribution. Floats only (else ErrDType). The result has t's shape and dtype.
func (t *Tensor) Gelu() *Tensor { return unary(ir.Gelu, t) }

// GeluTanh is Gelu's approximation t·(1+tanh(√(2/π)·(t+0.044715·t³)))/2. Floats only (else
// ErrDType). The result has t's shape and dtype.
func (t *Tensor) GeluTanh() *Tensor { return unary(ir.GeluTanh, t) }

// Silu is t·sigmoid(t), also called swish. Floats only (else ErrDType). The result has t's shape
// and dtype.
func (t *Tensor) Silu() *Tensor { return unary(ir.Silu, t) }

// Softplus is log(1+exp(t)), without overflow for large t. Floats only (else ErrDType). The result
// has t's shape and dtype.
func (t *Tensor) Softplus() *Tensor { return unary(ir.Softplus, t) }

// Bitcast reads the bits of t's elements as elements of dtype dt: XLA's BitcastConvertType, and
// for dtypes of one width PyTorch's view(dtype). If dt is narrower, the result has a new last
// dimension with the narrower elements of each element, low bits first. If dt is wider, the last
// dimension of t must have as many elements as one wider element holds (else ErrShape), and the
// result does not have that dimension. A result of more than 8 dimensions is ErrShape. Both
// dtypes must be numbers, else ErrDType, and dtypes of the device, else ErrUnsupported. Every NaN
// has the bits of the quiet NaN without a sign.
func (t *Tensor) Bitcast(dt DType) (r *Tensor) {
	const name = "bitcast"
	c := compose(name, nil, &t)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	from := t.DType()
	switch {
	case !ir.Numbers.Has(from) || !ir.Numbers.Has(dt):
		return failed(name, dtypeErr("%v cannot be read as %v: both must be number dtypes", from, dt), t)
	case !t.Stream().Device().Supports(dt.Unsigned()) || !t.Stream().Device().Supports(dt):
		return failed(name, fmt.Errorf("%w: %v does not exist on %s", ErrUnsupported, dt, t.Stream().Device().Name()), t)
	case from.Bits() > dt.Bits():
		if t.Rank() == ir.MaxRank {
			return failed(name, shapeErr("%v of %v, read as %v, has more than %d dimensions", t.shape(), from, dt, ir.MaxRank), t)
		}
		return t.narrower(dt)
	case from.Bits() < dt.Bits():
		if n, in := dt.Bits()/from.Bits(), t.shape(); len(in) == 0 || in[len(in)-1] != n {
			return failed(name, shapeErr("%v of %v as %v: the last dimension must have %d elements, which become one", in, from, dt, n), t)
		}
		return t.wider(dt)
	}
	return t.reinterpret(dt)
}

// reinterpret is Bitcast to a dtype of the same width.
func (t *Tensor) reinterpret(dt DType) *Tensor {
	args := [...]stream.Arg{arg(t)}
	return record(ir.Reinterpret, dt, nil, nil, args[:])
}

// narrower splits elements by shifts.
func (t *Tensor) narrower(dt DType) *Tensor {
	n, shape := t.DType().Bits()/dt.Bits(), t.shape()
	whole := t.reinterpret(t.DType().Unsigned())
	column := whole.Reshape(append(slices.Clone(shape), 1)...)
	amounts := ArangeOn(beside(t), whole.DType(), 0, float64(n*dt.Bits()), float64(dt.Bits()))
	low := column.Shr(amounts).BitAndScalar(float64(uint64(1)<<dt.Bits() - 1))
	return low.Cast(dt.Unsigned()).reinterpret(dt)
}

// wider joins the elements of the last dimension by shifts and ors.
func (t *Tensor) wider(dt DType) *Tensor {
	n := dt.Bits() / t.DType().Bits()
	wide := t.reinterpret(t.DType().Unsigned()).Cast(dt.Unsigned())
	amounts := ArangeOn(beside(t), wide.DType(), 0, float64(dt.Bits()), float64(t.DType().Bits()))
	shifted := wide.Shl(amounts)
	last := slices.Repeat([]Range{All}, t.Rank())
	sum := inTurn(n, shifted, func(sum *Tensor, i int) *Tensor {
		last[t.Rank()-1] = At(i)
		bits := shifted.Slice(last...)
		if i == 0 {
			return bits
		}
		return sum.BitOr(bits)
	})
	return sum.reinterpret(dt)
}

// Philox gives random bits: the output of Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011) for
// a counter, with t as its low half and high as its high half, under a key. The result is the
// first of the block's four words for Uint32, and the first two, low word first, for Uint64.
// Words of the counter and of the key that the dtype has no bits for are 0. The three operands
// have one dtype, Uint32 or Uint64, which is also the result's (else ErrDType). They broadcast as
// in NumPy (else ErrShape). Equal operands give equal bits on every device, so the caller must
// change the counter.
func (t *Tensor) Philox(high, key *Tensor) *Tensor { return ternary(ir.Philox, t, high, key) }
