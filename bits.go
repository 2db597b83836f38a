package millrace

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Bitcast reads the bits of t's elements as elements of dtype dt: XLA's BitcastConvertType, and
// for dtypes of one width PyTorch's view(dtype). If dt is narrower, the result has a new last
// dimension with the narrower elements of each element, low bits first. If dt is wider, the last
// dimension of t must have as many elements as one wider element holds (else ErrShape), and the
// result does not have that dimension. A result of more than 8 dimensions is ErrShape. Both
// dtypes must be numbers, else ErrDType, and dtypes of the device, else ErrUnsupported. Every NaN
// has the bits of the quiet NaN without a sign.
func (t *Tensor) Bitcast(dt DType) *Tensor {
	const name = "bitcast"
	h := hold(name, &t)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	from := t.DType()
	switch {
	case !ir.Numbers.Has(from) || !ir.Numbers.Has(dt):
		return failed(name, dtypeErr("%v as %v: numbers only", from, dt), t)
	case !t.Stream().Device().Supports(natural(dt)) || !t.Stream().Device().Supports(dt):
		return failed(name, fmt.Errorf("%w: %v on %s", ErrUnsupported, dt, t.Stream().Device().Name()), t)
	case from.Bits() > dt.Bits():
		if t.Rank() == ir.MaxRank {
			return failed(name, shapeErr("%v of %v as %v: more than %d dimensions", t.shape(), from, dt, ir.MaxRank), t)
		}
		return t.narrower(dt)
	case from.Bits() < dt.Bits():
		if n, in := dt.Bits()/from.Bits(), t.shape(); len(in) == 0 || in[len(in)-1] != n {
			return failed(name, shapeErr("%v of %v as %v: a last dimension of %d elements is one", in, from, dt, n), t)
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

// natural returns the unsigned integer dtype of dt's width.
func natural(dt DType) DType { return unsigned[dt.Bits()] }

var unsigned = map[int]DType{8: Uint8, 16: Uint16, 32: Uint32, 64: Uint64}

// narrower splits elements by shifts.
func (t *Tensor) narrower(dt DType) *Tensor {
	n, shape := t.DType().Bits()/dt.Bits(), t.shape()
	whole := t.reinterpret(natural(t.DType()))
	column := whole.Reshape(append(slices.Clone(shape), 1)...)
	amounts := ArangeOn(t.Stream(), whole.DType(), 0, float64(n*dt.Bits()), float64(dt.Bits()))
	shifted := column.Shr(amounts)
	low := shifted.BitAndScalar(float64(uint64(1)<<dt.Bits() - 1))
	part := low.Cast(natural(dt))
	r := part.reinterpret(dt)
	done(whole, column, amounts, shifted, low, part)
	return r
}

// wider joins the elements of the last dimension by shifts and ors.
func (t *Tensor) wider(dt DType) *Tensor {
	n := dt.Bits() / t.DType().Bits()
	part := t.reinterpret(natural(t.DType()))
	wide := part.Cast(natural(dt))
	amounts := ArangeOn(t.Stream(), wide.DType(), 0, float64(dt.Bits()), float64(t.DType().Bits()))
	shifted := wide.Shl(amounts)
	var sum *Tensor
	last := slices.Repeat([]Range{All}, t.Rank())
	for i := range n {
		last[t.Rank()-1] = At(i)
		bits := shifted.Slice(last...)
		if sum == nil {
			sum = bits
			continue
		}
		next := sum.BitOr(bits)
		done(sum, bits)
		sum = next
	}
	r := sum.reinterpret(dt)
	done(part, wide, amounts, shifted, sum)
	return r
}

// Philox gives random bits: the output of Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011) for
// a counter, with t as its low half and high as its high half, under a key. The result is the
// first of the block's four words for Uint32, and the first two, low word first, for Uint64.
// Words of the counter and of the key that the dtype has no bits for are 0. The three operands
// have one dtype, Uint32 or Uint64, which is also the result's (else ErrDType). They broadcast as
// in NumPy (else ErrShape). Equal operands give equal bits on every device, so the caller must
// change the counter.
func (t *Tensor) Philox(high, key *Tensor) *Tensor { return ternary(ir.Philox, t, high, key) }
