package millrace

import "github.com/millrace-go/millrace/ir"

// Arithmetic on two operands. They broadcast as in NumPy (else ErrShape) and
// have one dtype, of numbers unless an op says otherwise (else ErrDType), which
// is the result's. Integers wrap. In the Scalar forms the number takes the
// tensor's dtype: rounded to nearest for floats, held exactly by integers or
// ErrDType. AddScalar(s) is t + s; for ops whose order matters ScalarSub(s) is
// s - t. Go rounds an integer above 2^53 to a float64 before a method sees it: FromSlice of
// one element is exact.

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

// Div is t / u: the IEEE quotient of floats; of integers the quotient rounded
// toward zero, as in Go, with x/0 = 0 and the smallest value by -1 wrapping to
// itself.
func (t *Tensor) Div(u *Tensor) *Tensor { return binary(ir.Div, t, u) }

// DivScalar is t / s: [Tensor.Div] with a number for u.
func (t *Tensor) DivScalar(s float64) *Tensor { return rightScalar(ir.Div, t, s) }

// ScalarDiv is s / t: [Tensor.Div] with a number for t, the operands in that
// order.
func (t *Tensor) ScalarDiv(s float64) *Tensor { return leftScalar(ir.Div, s, t) }

// FloorDiv is the exact quotient rounded down, for floats too, as long as every
// integer of its size is one (up to 2^24 for Float32); for integers x/0 = 0 and
// the smallest value by -1 wraps to itself. Where no result is rounded FloorDiv*u
// + Rem is t.
func (t *Tensor) FloorDiv(u *Tensor) *Tensor { return binary(ir.FloorDiv, t, u) }

// FloorDivScalar is t/s rounded down: [Tensor.FloorDiv] with a number for u.
func (t *Tensor) FloorDivScalar(s float64) *Tensor { return rightScalar(ir.FloorDiv, t, s) }

// ScalarFloorDiv is s/t rounded down: [Tensor.FloorDiv] with a number for t, the
// operands in that order.
func (t *Tensor) ScalarFloorDiv(s float64) *Tensor { return leftScalar(ir.FloorDiv, s, t) }

// Rem is the remainder with the sign of u that goes with FloorDiv, as NumPy's %
// and not Go's. For integers x rem 0 is 0; for floats it is NaN.
func (t *Tensor) Rem(u *Tensor) *Tensor { return binary(ir.Rem, t, u) }

// RemScalar is the remainder of t by s: [Tensor.Rem] with a number for u.
func (t *Tensor) RemScalar(s float64) *Tensor { return rightScalar(ir.Rem, t, s) }

// ScalarRem is the remainder of s by t: [Tensor.Rem] with a number for t, the
// operands in that order.
func (t *Tensor) ScalarRem(s float64) *Tensor { return leftScalar(ir.Rem, s, t) }

// Pow is t to the power u. For floats the special cases are C's pow: x to the
// power ±0 is 1 for any x, even NaN, and a negative number to a power that is
// not whole is NaN. For integers it wraps, and a negative power gives 0 except
// of 1 and -1.
func (t *Tensor) Pow(u *Tensor) *Tensor { return binary(ir.Pow, t, u) }

// PowScalar is t to the power s: [Tensor.Pow] with a number for u. For small
// whole powers [Tensor.PowInt] is faster.
func (t *Tensor) PowScalar(s float64) *Tensor { return rightScalar(ir.Pow, t, s) }

// ScalarPow is s to the power t: [Tensor.Pow] with a number for t, the operands
// in that order.
func (t *Tensor) ScalarPow(s float64) *Tensor { return leftScalar(ir.Pow, s, t) }

// Maximum is the larger of t and u. If either is NaN the result is NaN, and -0
// is less than +0. The largest element of a tensor is [Tensor.Max].
func (t *Tensor) Maximum(u *Tensor) *Tensor { return binary(ir.Maximum, t, u) }

// MaximumScalar is the larger of t and s: [Tensor.Maximum] with a number for u.
func (t *Tensor) MaximumScalar(s float64) *Tensor { return rightScalar(ir.Maximum, t, s) }

// Minimum is the smaller of t and u. If either is NaN the result is NaN, and -0
// is less than +0.
func (t *Tensor) Minimum(u *Tensor) *Tensor { return binary(ir.Minimum, t, u) }

// MinimumScalar is the smaller of t and s: [Tensor.Minimum] with a number for
// u.
func (t *Tensor) MinimumScalar(s float64) *Tensor { return rightScalar(ir.Minimum, t, s) }

// Atan2 is the angle of the point (u, t), in [-π, π], with C's special cases:
// the arc tangent of t/u in the right quadrant. Floats only.
func (t *Tensor) Atan2(u *Tensor) *Tensor { return binary(ir.Atan2, t, u) }

// Atan2Scalar is the angle of (s, t): [Tensor.Atan2] with a number for u.
func (t *Tensor) Atan2Scalar(s float64) *Tensor { return rightScalar(ir.Atan2, t, s) }

// ScalarAtan2 is the angle of (t, s): [Tensor.Atan2] with a number for t, the
// operands in that order.
func (t *Tensor) ScalarAtan2(s float64) *Tensor { return leftScalar(ir.Atan2, s, t) }

// maxPowInt bounds the powers that become products. An error of
// one rounding doubles at every squaring: beyond, Pow is the better choice.
const maxPowInt = 16

// PowInt is t to a whole power. From 1 to 16, and for floats from -16 to -1,
// it records products (and one Recip), so that the result may differ from
// [Tensor.Pow] in the last bits; other powers are PowScalar. The dtype is t's,
// numbers only.
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

// powInt is the product of m >= 1 factors t as a new handle, by halves: each
// step's handle is released as soon as the next is recorded.
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

// same is another handle of t's value.
func (t *Tensor) same() *Tensor { return t.Reshape(t.shape()...) }
