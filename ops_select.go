package millrace

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Where takes elements of x where mask is true, and of y elsewhere: NumPy's and PyTorch's where.
// The mask is Bool. x and y have one dtype, of any kind, which is the result's too (else
// ErrDType). All three broadcast as in NumPy (else ErrShape).
func Where(mask, x, y *Tensor) *Tensor { return ternary(ir.Where, mask, x, y) }

// WhereScalar is [Where] with a number for y, which takes x's dtype as in
// [Tensor.AddScalar].
func WhereScalar(mask, x *Tensor, y float64) *Tensor { return whereScalar(mask, x, y, 1) }

// ScalarWhere is [Where] with a number for x, which takes y's dtype as in
// [Tensor.AddScalar].
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

// ClampScalar is [Tensor.Clamp] with numbers, which take t's dtype as in
// [Tensor.AddScalar].
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

// IsNaN is true where t is NaN. The result is Bool. Floats only, else ErrDType.
func (t *Tensor) IsNaN() *Tensor { return unary(ir.IsNaN, t) }

// IsInf is true where t is +Inf or -Inf. The result is Bool. Floats only, else
// ErrDType.
func (t *Tensor) IsInf() *Tensor { return unary(ir.IsInf, t) }

// IsFinite is true where t is neither NaN nor an infinity. The result is Bool.
// Floats only, else ErrDType.
func (t *Tensor) IsFinite() *Tensor { return unary(ir.IsFinite, t) }

// Cast converts the elements to another dtype: NumPy's astype, PyTorch's to. To an integer dtype,
// floats are rounded toward zero, and NaN becomes 0. A number out of the range, of floats or
// integers, becomes the nearest limit. To a float dtype, numbers are rounded to nearest. false
// becomes 0 and true 1. To bool, 0 becomes false and every other number true, NaN too. A dtype
// that tensors cannot have is ErrDType; one that the device lacks is ErrUnsupported.
func (t *Tensor) Cast(dt DType) *Tensor {
	if !dt.Tensor() {
		return failed("cast", dtypeErr("%v is no dtype of tensors", dt), t)
	}
	args := [...]stream.Arg{arg(t)}
	return record(ir.Cast, dt, nil, nil, args[:])
}
