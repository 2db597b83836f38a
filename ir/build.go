package ir

// These methods are the vocabulary of expansions: each appends one instruction, whose dtype follows
// from its operands. Only Emit is exported: other packages print or evaluate instructions, but do
// not write formulas.

// float is a constant of float type dt; v is rounded to it.
func (b *Builder) float(dt DType, v float64) Ref {
	return b.Emit(Const, dt, FloatBits(dt, v))
}

// int is a constant of integer type dt; v wraps.
func (b *Builder) int(dt DType, v int64) Ref {
	return b.Emit(Const, dt, uint64(v)&widthMask(dt))
}

// number is the small constant v in any number type.
func (b *Builder) number(dt DType, v int64) Ref {
	if dt.IsFloat() {
		return b.float(dt, float64(v))
	}
	return b.int(dt, v)
}

// raw is a constant given by its bits.
func (b *Builder) raw(dt DType, bits uint64) Ref { return b.Emit(Const, dt, bits) }

func (b *Builder) unary(op Op, x Ref) Ref     { return b.Emit(op, b.DT(x), 0, x) }
func (b *Builder) binary(op Op, x, y Ref) Ref { return b.Emit(op, b.DT(x), 0, x, y) }
func (b *Builder) compare(op Op, x, y Ref) Ref {
	return b.Emit(op, Bool, 0, x, y)
}

func (b *Builder) neg(x Ref) Ref      { return b.unary(Neg, x) }
func (b *Builder) abs(x Ref) Ref      { return b.unary(Abs, x) }
func (b *Builder) not(x Ref) Ref      { return b.unary(Not, x) }
func (b *Builder) sqrt(x Ref) Ref     { return b.unary(Sqrt, x) }
func (b *Builder) floor(x Ref) Ref    { return b.unary(Floor, x) }
func (b *Builder) round(x Ref) Ref    { return b.unary(Round, x) }
func (b *Builder) trunc(x Ref) Ref    { return b.unary(Trunc, x) }
func (b *Builder) add(x, y Ref) Ref   { return b.binary(Add, x, y) }
func (b *Builder) sub(x, y Ref) Ref   { return b.binary(Sub, x, y) }
func (b *Builder) mul(x, y Ref) Ref   { return b.binary(Mul, x, y) }
func (b *Builder) fdiv(x, y Ref) Ref  { return b.binary(FDiv, x, y) }
func (b *Builder) quo(x, y Ref) Ref   { return b.binary(Quo, x, y) }
func (b *Builder) mod(x, y Ref) Ref   { return b.binary(Mod, x, y) }
func (b *Builder) mulhi(x, y Ref) Ref { return b.binary(MulHi, x, y) }
func (b *Builder) and(x, y Ref) Ref   { return b.binary(And, x, y) }
func (b *Builder) or(x, y Ref) Ref    { return b.binary(Or, x, y) }
func (b *Builder) xor(x, y Ref) Ref   { return b.binary(Xor, x, y) }
func (b *Builder) eq(x, y Ref) Ref    { return b.compare(Eq, x, y) }
func (b *Builder) ne(x, y Ref) Ref    { return b.compare(Ne, x, y) }
func (b *Builder) lt(x, y Ref) Ref    { return b.compare(Lt, x, y) }
func (b *Builder) le(x, y Ref) Ref    { return b.compare(Le, x, y) }
func (b *Builder) gt(x, y Ref) Ref    { return b.compare(Gt, x, y) }
func (b *Builder) ge(x, y Ref) Ref    { return b.compare(Ge, x, y) }

// fma is x*y + z rounded once.
func (b *Builder) fma(x, y, z Ref) Ref { return b.Emit(FMA, b.DT(z), 0, x, y, z) }

// sel is mask ? x : y.
func (b *Builder) sel(mask, x, y Ref) Ref { return b.Emit(Where, b.DT(x), 0, mask, x, y) }

// shl and shr shift by a constant within the width.
func (b *Builder) shl(x Ref, n int64) Ref {
	return b.binary(ShlRaw, x, b.int(b.DT(x), n))
}

func (b *Builder) shr(x Ref, n int64) Ref {
	return b.binary(ShrRaw, x, b.int(b.DT(x), n))
}

func (b *Builder) convert(dt DType, x Ref) Ref { return b.Emit(Convert, dt, 0, x) }

// bits reinterprets x as dt; nothing is emitted for its own type.
func (b *Builder) bits(dt DType, x Ref) Ref {
	if b.DT(x) == dt {
		return x
	}
	return b.Emit(Bitcast, dt, 0, x)
}

func (b *Builder) lookup(table uint64, dt DType, i Ref) Ref {
	return b.Emit(Lookup, dt, table, i)
}

// rare is sub(x, y) in the few lanes in which cond holds, and fast in the others; y may be None.
func (b *Builder) rare(cond, fast Ref, sub uint64, x, y Ref) Ref {
	return b.Emit(Rare, b.DT(fast), sub, cond, fast, x, y)
}

// poly is the polynomial with the given coefficients, lowest power first, by Horner's rule in fma.
func (b *Builder) poly(x Ref, coef ...float64) Ref {
	dt := b.DT(x)
	acc := b.float(dt, coef[len(coef)-1])
	for i := len(coef) - 2; i >= 0; i-- {
		acc = b.fma(acc, x, b.float(dt, coef[i]))
	}
	return acc
}

// intOf is the signed integer type of a float type's width.
func intOf(dt DType) DType {
	if dt == Float64 {
		return Int64
	}
	return Int32
}

// signBit is the sign of a float as an integer mask of its width.
func (b *Builder) signBit(x Ref) Ref {
	dt := b.DT(x)
	i := intOf(dt)
	return b.and(b.bits(i, x), b.raw(i, uint64(1)<<(dt.Bits()-1)))
}

// copySign is x with y's sign ORed in; x must not be negative.
func (b *Builder) copySign(x, y Ref) Ref {
	dt := b.DT(x)
	return b.bits(dt, b.or(b.bits(intOf(dt), x), b.signBit(y)))
}

// widthMask has a one for every bit of dt.
func widthMask(dt DType) uint64 {
	if dt == Bool {
		return 1
	}
	return ^uint64(0) >> (64 - dt.Bits())
}
