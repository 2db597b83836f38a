package ir

// Integer division and shifts, defined for all operands. In C the primitives fault or are undefined
// outside their range. So the operands are first made harmless, and the result is selected
// afterwards.

func expandDiv(b *Builder, dt DType, args []Ref) Ref {
	x, y := args[0], args[1]
	if dt.IsFloat() {
		return b.fdiv(x, y)
	}
	d := newDivisor(b, dt, x, y)
	return d.quotient(b.quo(x, d.safe))
}

// divisor is y of x/y with a harmless value in place of 0 and of -1.
type divisor struct {
	b           *Builder
	x, y        Ref
	safe        Ref // 1 if the primitives may not divide by y
	zero, minus Ref // masks: y is 0, y is -1 (None for unsigned types)
}

func newDivisor(b *Builder, dt DType, x, y Ref) divisor {
	d := divisor{b: b, x: x, y: y, minus: None}
	d.zero = b.eq(y, b.int(dt, 0))
	bad := d.zero
	if dt.IsSigned() {
		// MIN / -1 is the one quotient that does not fit.
		d.minus = b.eq(y, b.int(dt, -1))
		bad = b.or(bad, d.minus)
	}
	d.safe = b.sel(bad, b.int(dt, 1), y)
	return d
}

// quotient corrects the results of divisions by safe: x/0 = 0, x/-1 = -x.
func (d *divisor) quotient(q Ref) Ref {
	if d.minus != None {
		q = d.b.sel(d.minus, d.b.neg(d.x), q)
	}
	return d.b.sel(d.zero, d.b.int(d.b.DT(q), 0), q)
}

// wrongSide is the mask of remainders that truncation left on the other side of zero than y. If y
// is 0 or -1, the remainder by 1 is 0.
func (d *divisor) wrongSide(m Ref) Ref {
	zero := d.b.int(d.b.DT(m), 0)
	return d.b.and(d.b.ne(m, zero), d.b.lt(d.b.xor(m, d.y), zero))
}

func expandFloorDiv(b *Builder, dt DType, args []Ref) Ref {
	x, y := args[0], args[1]
	if dt.IsFloat() {
		return floorDivFloat(b, x, y)
	}
	d := newDivisor(b, dt, x, y)
	q := b.quo(x, d.safe)
	r := d.quotient(q)
	if !dt.IsSigned() {
		return r
	}
	m := b.sub(x, b.mul(q, d.safe))
	return b.sel(d.wrongSide(m), b.sub(r, b.int(dt, 1)), r)
}

func expandRem(b *Builder, dt DType, args []Ref) Ref {
	x, y := args[0], args[1]
	if dt.IsFloat() {
		return remFloat(b, x, y)
	}
	d := newDivisor(b, dt, x, y)
	m := b.mod(x, d.safe)
	if !dt.IsSigned() {
		return b.sel(d.zero, b.int(dt, 0), m)
	}
	return b.sel(d.wrongSide(m), b.add(m, y), m)
}

func expandShl(b *Builder, dt DType, args []Ref) Ref {
	n, within := shiftAmount(b, dt, args[1])
	return b.sel(within, b.binary(ShlRaw, args[0], n), b.int(dt, 0))
}

func expandShr(b *Builder, dt DType, args []Ref) Ref {
	n, within := shiftAmount(b, dt, args[1])
	past := b.int(dt, 0)
	if dt.IsSigned() {
		past = b.shr(args[0], int64(dt.Bits()-1))
	}
	return b.sel(within, b.binary(ShrRaw, args[0], n), past)
}

// shiftAmount returns the low bits of n, by which the primitives may shift, and the mask of lanes
// in which these are all of n. Negative amounts count as past the width.
func shiftAmount(b *Builder, dt DType, n Ref) (amount, within Ref) {
	low := b.and(n, b.int(dt, int64(dt.Bits()-1)))
	return low, b.eq(n, low)
}

// powInt is x^y by squaring, one step per bit of y, wrapping. A negative power is 1/x^|y|
// truncated: 0 unless x is 1 or -1 (and 0 for x = 0, since x/0 = 0).
func powInt(b *Builder, dt DType, x, y Ref) Ref {
	one := b.int(dt, 1)
	r, sq := one, x
	for i := int64(0); i < int64(dt.Bits()); i++ {
		bit := b.and(b.shr(y, i), one)
		r = b.sel(b.ne(bit, b.int(dt, 0)), b.mul(r, sq), r)
		sq = b.mul(sq, sq)
	}
	if !dt.IsSigned() {
		return r
	}
	// For x = ±1 the loop is already right: the low bits of a negative y have its parity.
	unit := b.or(b.eq(x, one), b.eq(x, b.int(dt, -1)))
	negative := b.lt(y, b.int(dt, 0))
	return b.sel(b.and(negative, b.not(unit)), b.int(dt, 0), r)
}

// expandMulHigh of 64 bits is long multiplication with digits of 32 bits, whose products fit the
// dtype.
func expandMulHigh(b *Builder, dt DType, args []Ref) Ref {
	x, y := args[0], args[1]
	if dt == Uint32 {
		return b.mulhi(x, y)
	}
	low := func(x Ref) Ref { return b.and(x, b.int(dt, 1<<32-1)) }
	high := func(x Ref) Ref { return b.shr(x, 32) }
	crossed := [2]Ref{b.mul(low(x), high(y)), b.mul(high(x), low(y))}
	middle := b.add(b.add(high(b.mul(low(x), low(y))), low(crossed[0])), low(crossed[1]))
	sum := b.add(b.mul(high(x), high(y)), high(middle))
	return b.add(b.add(sum, high(crossed[0])), high(crossed[1]))
}
