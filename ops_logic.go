package millrace

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

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

// And is true where t and u both are: NumPy's and PyTorch's logical_and. Bool only.
func (t *Tensor) And(u *Tensor) *Tensor { return logic(ir.And, t, u) }

// Or is true where t or u is, or both: NumPy's and PyTorch's logical_or. Bool only.
func (t *Tensor) Or(u *Tensor) *Tensor { return logic(ir.Or, t, u) }

// Xor is true where exactly one of t and u is: NumPy's and PyTorch's logical_xor. Bool only.
func (t *Tensor) Xor(u *Tensor) *Tensor { return logic(ir.Xor, t, u) }

// Not is true where t is false. Bool only.
func (t *Tensor) Not() *Tensor {
	return only(ir.Not, isBool, useBit, t)
}

// BitAnd is t & u. Integers only.
func (t *Tensor) BitAnd(u *Tensor) *Tensor { return bitwise(ir.And, t, u) }

// BitAndScalar is [Tensor.BitAnd] with a number for u, which t's dtype must
// hold.
func (t *Tensor) BitAndScalar(s float64) *Tensor { return bitwiseScalar(ir.And, t, s) }

// BitOr is t | u. Integers only.
func (t *Tensor) BitOr(u *Tensor) *Tensor { return bitwise(ir.Or, t, u) }

// BitOrScalar is [Tensor.BitOr] with a number for u, which t's dtype must hold.
func (t *Tensor) BitOrScalar(s float64) *Tensor { return bitwiseScalar(ir.Or, t, s) }

// BitXor is t ^ u. Integers only.
func (t *Tensor) BitXor(u *Tensor) *Tensor { return bitwise(ir.Xor, t, u) }

// BitXorScalar is [Tensor.BitXor] with a number for u, which t's dtype must
// hold.
func (t *Tensor) BitXorScalar(s float64) *Tensor { return bitwiseScalar(ir.Xor, t, s) }

// BitNot is ^t, every bit inverted. Integers only.
func (t *Tensor) BitNot() *Tensor {
	return only(ir.Not, isInt, useLogic, t)
}

// Shl is t << u. Bits that are shifted out are lost. A shift by the dtype's width or more, or a
// negative one, gives 0. Integers only.
func (t *Tensor) Shl(u *Tensor) *Tensor { return bitwise(ir.Shl, t, u) }

// ShlScalar is [Tensor.Shl] with a number for u, which t's dtype must hold.
func (t *Tensor) ShlScalar(s float64) *Tensor { return bitwiseScalar(ir.Shl, t, s) }

// Shr is t >> u. It shifts in copies of the sign for signed dtypes, and zeros for unsigned ones.
// A shift by the dtype's width or more, or a negative one, leaves only these. Integers only.
func (t *Tensor) Shr(u *Tensor) *Tensor { return bitwise(ir.Shr, t, u) }

// MulHigh is the high half of the product t * u; Mul is the low half. It is for arithmetic on
// numbers of several words. Uint32 and Uint64 only (else ErrDType).
func (t *Tensor) MulHigh(u *Tensor) *Tensor { return binary(ir.MulHigh, t, u) }

// ShrScalar is [Tensor.Shr] with a number for u, which t's dtype must hold.
func (t *Tensor) ShrScalar(s float64) *Tensor { return bitwiseScalar(ir.Shr, t, s) }
