package ir

import "math"

// expandCast saturates before it converts, so that Convert stays in range. It handles only those
// casts of storage dtypes that [Widen] leaves: to Float32 and back.
func expandCast(b *Builder, dt DType, args []Ref) Ref {
	x := args[0]
	from := b.DT(x)
	switch {
	case from == dt:
		return x
	case dt.Storage() && from == Float32:
		return narrowFloat(b, dt, x)
	case from.Storage():
		return widenFloat(b, x)
	case dt == Bool:
		return b.ne(x, b.number(from, 0)) // NaN is true
	case from == Bool || dt.IsFloat():
		return b.convert(dt, x)
	case from.IsFloat():
		return floatToInt(b, dt, x)
	}
	return b.convert(dt, saturateInt(b, dt, x))
}

// saturateInt brings an integer into the range of another integer type.
func saturateInt(b *Builder, to DType, x Ref) Ref {
	from := b.DT(x)
	if from.IsSigned() && minInt(from) < minInt(to) {
		lo := b.int(from, minInt(to))
		x = b.sel(b.lt(x, lo), lo, x)
	}
	if maxInt(from) > maxInt(to) {
		hi := b.int(from, int64(maxInt(to)))
		x = b.sel(b.gt(x, hi), hi, x)
	}
	return x
}

// floatToInt truncates, saturates, and converts NaN to 0.
func floatToInt(b *Builder, to DType, x Ref) Ref {
	from := b.DT(x)
	zero := b.float(from, 0)
	// The first value above the range is a power of two, exact in any float; the largest of the
	// range may not be.
	above := b.float(from, math.Ldexp(1, to.Bits()))
	low := b.sel(b.gt(x, zero), x, zero)
	if to.IsSigned() {
		above = b.float(from, math.Ldexp(1, to.Bits()-1))
		lo := b.float(from, float64(minInt(to)))
		low = b.sel(b.lt(x, lo), lo, x)
	}
	in := b.sel(b.lt(low, above), low, zero)
	max := b.int(to, int64(maxInt(to)))
	return b.sel(b.ge(x, above), max, b.convert(to, in))
}

func minInt(dt DType) int64 {
	if !dt.IsSigned() {
		return 0
	}
	return -1 << (dt.Bits() - 1)
}

func maxInt(dt DType) uint64 {
	if dt.IsSigned() {
		return 1<<(dt.Bits()-1) - 1
	}
	return widthMask(dt)
}
