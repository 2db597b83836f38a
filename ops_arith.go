package millrace

import "github.com/millrace-go/millrace/ir"

// The ops of this file are arithmetic on two operands. The operands broadcast as in NumPy (else
// ErrShape). They have one dtype, of numbers unless an op says otherwise (else ErrDType), which
// is the result's too. Integers wrap around. In the Scalar forms, the number takes the tensor's
// dtype: a float dtype rounds it to nearest, and an integer dtype must hold it exactly, else
// ErrDType. AddScalar(s) is t + s; if the order of the operands matters, ScalarSub(s) is s - t.
// Go rounds an integer above 2^53 to a float64 before a method gets it; FromSlice of one element
// is exact.

// Add is t + u.
func (t *Tensor) Add(u *Tensor) *Tensor { return binary(ir.Add, t, u) }

// AddScalar is t + s: [Tensor.Add] with a number for u.
func (t *Tensor) AddScalar(s float64) *Tensor { return rightScalar(ir.Add, t, s) }

// Sub is t - u.
func (t *Tensor) Sub(u *Tensor) *Tensor { return binary(ir.Sub, t, u) }

// SubScalar is t - s: [Tensor.Sub] with a number for u.
func (t *Tensor) SubScalar(s float64) *Tensor { return rightScalar(ir.Sub, t, s) }

// ScalarSub is s - t: [Tensor.Sub] with a number for t, the operands in that
// order.
func (t *Tensor) ScalarSub(s float64) *Tensor { return leftScalar(ir.Sub, s, t) }

// Mul is t * u.
func (t *Tensor) Mul(u *Tensor) *Tensor { return binary(ir.Mul, t, u) }

// MulScalar is t * s: [Tensor.Mul] with a number for u.
func (t *Tensor) MulScalar(s float64) *Tensor { return rightScalar(ir.Mul, t, s) }

// Div is t / u: NumPy's and PyTorch's divide for floats, the IEEE quotient. For integers it is
// the quotient rounded toward zero, as in Go; x/0 is 0, and the smallest value divided by -1
// wraps around to itself.
func (t *Tensor) Div(u *Tensor) *Tensor { return binary(ir.Div, t, u) }

// DivScalar is t / s: [Tensor.Div] with a number for u.
func (t *Tensor) DivScalar(s float64) *Tensor { return rightScalar(ir.Div, t, s) }

// ScalarDiv is s / t: [Tensor.Div] with a number for t, the operands in that
// order.
func (t *Tensor) ScalarDiv(s float64) *Tensor { return leftScalar(ir.Div, s, t) }

// FloorDiv is t/u rounded down: NumPy's and PyTorch's floor_divide. For floats it is the exact
// quotient rounded down, as long as the dtype has every whole number of its size (up to 2^24 for
// Float32). For integers x/0 is 0, and the smallest value divided by -1 wraps around to itself.
// If no result is rounded, FloorDiv*u + Rem is t.
func (t *Tensor) FloorDiv(u *Tensor) *Tensor { return binary(ir.FloorDiv, t, u) }

// FloorDivScalar is t/s rounded down: [Tensor.FloorDiv] with a number for u.
func (t *Tensor) FloorDivScalar(s float64) *Tensor { return rightScalar(ir.FloorDiv, t, s) }

// ScalarFloorDiv is s/t rounded down: [Tensor.FloorDiv] with a number for t, the
// operands in that order.
func (t *Tensor) ScalarFloorDiv(s float64) *Tensor { return leftScalar(ir.FloorDiv, s, t) }

// Rem is the remainder that goes with [Tensor.FloorDiv], with the sign of u: NumPy's and Python's
// %, not Go's, and PyTorch's remainder. For integers the remainder by 0 is 0; for floats it is
// NaN.
func (t *Tensor) Rem(u *Tensor) *Tensor { return binary(ir.Rem, t, u) }

// RemScalar is the remainder of t by s: [Tensor.Rem] with a number for u.
func (t *Tensor) RemScalar(s float64) *Tensor { return rightScalar(ir.Rem, t, s) }

// ScalarRem is the remainder of s by t: [Tensor.Rem] with a number for t, the
// operands in that order.
func (t *Tensor) ScalarRem(s float64) *Tensor { return leftScalar(ir.Rem, s, t) }

// Pow is t to the power u: NumPy's power, PyTorch's pow. For floats the special cases are those
// of C's pow: x to the power ±0 is 1 for any x, even NaN, and a negative number to a power that
// is not whole is NaN. For integers it wraps around. A negative power of an integer is 0, except
// for the bases 1 and -1.
func (t *Tensor) Pow(u *Tensor) *Tensor { return binary(ir.Pow, t, u) }

// PowScalar is t to the power s: [Tensor.Pow] with a number for u. For small
// whole powers [Tensor.PowInt] is faster.
func (t *Tensor) PowScalar(s float64) *Tensor { return rightScalar(ir.Pow, t, s) }

// ScalarPow is s to the power t: [Tensor.Pow] with a number for t, the operands
// in that order.
func (t *Tensor) ScalarPow(s float64) *Tensor { return leftScalar(ir.Pow, s, t) }

// Maximum is the larger of t and u. If either is NaN, the result is NaN; -0 is less than +0. The
// largest element of a tensor is [Tensor.Max].
func (t *Tensor) Maximum(u *Tensor) *Tensor { return binary(ir.Maximum, t, u) }

// MaximumScalar is the larger of t and s: [Tensor.Maximum] with a number for u.
func (t *Tensor) MaximumScalar(s float64) *Tensor { return rightScalar(ir.Maximum, t, s) }

// Minimum is the smaller of t and u. If either is NaN, the result is NaN; -0 is less than +0. The
// smallest element of a tensor is [Tensor.Min].
func (t *Tensor) Minimum(u *Tensor) *Tensor { return binary(ir.Minimum, t, u) }

// MinimumScalar is the smaller of t and s: [Tensor.Minimum] with a number for
// u.
func (t *Tensor) MinimumScalar(s float64) *Tensor { return rightScalar(ir.Minimum, t, s) }

// Atan2 is the angle of the point (u, t), in [-π, π]: the arc tangent of t/u in the right
// quadrant, with the special cases of C's atan2. Floats only.
func (t *Tensor) Atan2(u *Tensor) *Tensor { return binary(ir.Atan2, t, u) }

// Atan2Scalar is the angle of (s, t): [Tensor.Atan2] with a number for u.
func (t *Tensor) Atan2Scalar(s float64) *Tensor { return rightScalar(ir.Atan2, t, s) }

// ScalarAtan2 is the angle of (t, s): [Tensor.Atan2] with a number for t, the
// operands in that order.
func (t *Tensor) ScalarAtan2(s float64) *Tensor { return leftScalar(ir.Atan2, s, t) }

// maxPowInt is the largest power that is computed by products. Each squaring doubles the relative
// error, so Pow is the better choice for larger powers.
const maxPowInt = 16

// PowInt is t to a whole power n. For n from 1 to 16, and for floats also from -16 to -1, it
// records products (and one Recip). The result may differ from [Tensor.Pow] in the last bits.
// Other powers are [Tensor.PowScalar]. The dtype is t's, numbers only.
func (t *Tensor) PowInt(n int) *Tensor {
	t = still(t)
	defer done(t)
	m := abs(n)
	if m == 0 || m > maxPowInt || m < 0 || n < 0 && !t.DType().IsFloat() {
		return t.PowScalar(float64(n))
	}
	r := powInt(t, m)
	if n < 0 {
		p := r
		r = p.Recip()
		done(p)
	}
	return r
}

// powInt returns the product of m >= 1 factors t, as a new handle. It squares the power m/2 and
// releases each step's handle once the next step is recorded.
func powInt(t *Tensor, m int) *Tensor {
	switch m {
	case 1:
		return t.same()
	case 2:
		return t.Mul(t)
	}
	half := powInt(t, m/2)
	r := half.Mul(half)
	done(half)
	if m%2 == 1 {
		even := r
		r = even.Mul(t)
		done(even)
	}
	return r
}

// same returns another handle of t's value.
func (t *Tensor) same() *Tensor { return t.Reshape(t.shape()...) }
