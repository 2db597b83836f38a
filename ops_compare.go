package millrace

import "github.com/millrace-go/millrace/ir"

// The ops of this file compare element by element. The operands broadcast as in NumPy (else
// ErrShape) and have one dtype (else ErrDType); the result is Bool. A comparison with NaN is
// false, except Ne. In the Scalar forms, the number takes the tensor's dtype: a float dtype
// rounds it to nearest, and an integer dtype must hold it exactly, else ErrDType. [Equal] and
// [AllClose] compare whole tensors.

// Eq is t == u. For any dtype.
func (t *Tensor) Eq(u *Tensor) *Tensor { return binary(ir.Eq, t, u) }

// EqScalar is t == s: [Tensor.Eq] with a number for u.
func (t *Tensor) EqScalar(s float64) *Tensor { return rightScalar(ir.Eq, t, s) }

// Ne is t != u. For any dtype; it is true where either is NaN.
func (t *Tensor) Ne(u *Tensor) *Tensor { return binary(ir.Ne, t, u) }

// NeScalar is t != s: [Tensor.Ne] with a number for u.
func (t *Tensor) NeScalar(s float64) *Tensor { return rightScalar(ir.Ne, t, s) }

// Lt is t < u. For numbers.
func (t *Tensor) Lt(u *Tensor) *Tensor { return binary(ir.Lt, t, u) }

// LtScalar is t < s: [Tensor.Lt] with a number for u.
func (t *Tensor) LtScalar(s float64) *Tensor { return rightScalar(ir.Lt, t, s) }

// Le is t <= u. For numbers.
func (t *Tensor) Le(u *Tensor) *Tensor { return binary(ir.Le, t, u) }

// LeScalar is t <= s: [Tensor.Le] with a number for u.
func (t *Tensor) LeScalar(s float64) *Tensor { return rightScalar(ir.Le, t, s) }

// Gt is t > u. For numbers.
func (t *Tensor) Gt(u *Tensor) *Tensor { return binary(ir.Gt, t, u) }

// GtScalar is t > s: [Tensor.Gt] with a number for u.
func (t *Tensor) GtScalar(s float64) *Tensor { return rightScalar(ir.Gt, t, s) }

// Ge is t >= u. For numbers.
func (t *Tensor) Ge(u *Tensor) *Tensor { return binary(ir.Ge, t, u) }

// GeScalar is t >= s: [Tensor.Ge] with a number for u.
func (t *Tensor) GeScalar(s float64) *Tensor { return rightScalar(ir.Ge, t, s) }
