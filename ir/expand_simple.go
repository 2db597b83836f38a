package ir

import "math"

func expandFull(b *Builder, dt DType, args []Ref) Ref { return args[0] }

func expandSquare(b *Builder, dt DType, args []Ref) Ref { return b.mul(args[0], args[0]) }

func expandRecip(b *Builder, dt DType, args []Ref) Ref {
	return b.fdiv(b.float(dt, 1), args[0])
}

// expandRsqrt: the errors of the root and of the quotient are at most half a unit each, together
// below 2 ulp. ±0 and the infinities need no special case.
func expandRsqrt(b *Builder, dt DType, args []Ref) Ref {
	return b.fdiv(b.float(dt, 1), b.sqrt(args[0]))
}

func expandSign(b *Builder, dt DType, args []Ref) Ref {
	x, zero := args[0], b.number(dt, 0)
	r := x // zeros, and NaN
	if dt.IsSigned() {
		r = b.sel(b.lt(x, zero), b.number(dt, -1), r)
	}
	return b.sel(b.gt(x, zero), b.number(dt, 1), r)
}

// expandRelu compares in a way that keeps NaN and makes -0 a +0.
func expandRelu(b *Builder, dt DType, args []Ref) Ref {
	x := args[0]
	if !dt.IsSigned() {
		return x
	}
	zero := b.number(dt, 0)
	return b.sel(b.le(x, zero), zero, x)
}

func expandIsNaN(b *Builder, dt DType, args []Ref) Ref { return b.ne(args[0], args[0]) }

func expandIsInf(b *Builder, dt DType, args []Ref) Ref {
	x := args[0]
	return b.eq(b.abs(x), b.float(b.DT(x), math.Inf(1)))
}

func expandIsFinite(b *Builder, dt DType, args []Ref) Ref {
	x := args[0]
	return b.lt(b.abs(x), b.float(b.DT(x), math.Inf(1)))
}

// expandMinimum combines both one-sided selections. For ordered operands they agree. For zeros of
// both signs, or if one operand is NaN, one selection gives x and the other y, and the OR of their
// bits is -0 or a NaN.
func expandMinimum(b *Builder, dt DType, args []Ref) Ref {
	x, y := args[0], args[1]
	p := b.sel(b.lt(x, y), x, y)
	if !dt.IsFloat() {
		return p
	}
	q, i := b.sel(b.lt(y, x), y, x), intOf(dt)
	return b.bits(dt, b.or(b.bits(i, p), b.bits(i, q)))
}

// expandMaximum is expandMinimum with a last step for zeros. For zeros of both signs, the
// difference d of the selections' bits is only the sign, so (p|d) - d is -0 - -0, which is +0.
// Otherwise d is 0, or the OR is a NaN.
func expandMaximum(b *Builder, dt DType, args []Ref) Ref {
	x, y := args[0], args[1]
	p := b.sel(b.gt(x, y), x, y)
	if !dt.IsFloat() {
		return p
	}
	i := intOf(dt)
	pb, qb := b.bits(i, p), b.bits(i, b.sel(b.gt(y, x), y, x))
	d := b.xor(pb, qb)
	return b.sub(b.bits(dt, b.or(pb, d)), b.bits(dt, d))
}

func expandClamp(b *Builder, dt DType, args []Ref) Ref {
	return b.binary(Minimum, b.binary(Maximum, args[0], args[1]), args[2])
}

// expandReinterpret gives every NaN the same bits, because the NaN bits that an operation makes
// depend on the machine.
func expandReinterpret(b *Builder, dt DType, args []Ref) Ref {
	x := args[0]
	from := b.DT(x)
	if from == dt {
		return x
	}
	bits := b.bits(dt, x)
	if !from.IsFloat() {
		return bits
	}
	value := b.up(x)
	return b.sel(b.ne(value, value), b.raw(dt, quietNaN(from)), bits)
}
