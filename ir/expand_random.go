package ir

import "math"

// Random numbers come from Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011). The counter is the
// element's position and the key is the seed. So an element's value depends on nothing else and can
// be recomputed anywhere.

const (
	philoxM0 = 0xD2511F53
	philoxM1 = 0xCD9E8D57
	philoxW0 = 0x9E3779B9
	philoxW1 = 0xBB67AE85
)

// philox is the four words of the block at counter (lo, hi, 0, 0). The only 64-bit operations on
// the seed split it into halves, so that a device without such integers can be given the halves.
func philox(b *Builder, lo, hi, seed Ref) [4]Ref {
	k0, k1 := halves(b, seed)
	return philoxBlock(b, [4]Ref{lo, hi, b.int(Uint32, 0), b.int(Uint32, 0)}, k0, k1)
}

// halves splits 64 bits with And, ShrRaw and Convert.
func halves(b *Builder, x Ref) (low, high Ref) {
	low = b.convert(Uint32, b.and(x, b.int(Uint64, 0xffffffff)))
	return low, b.convert(Uint32, b.shr(x, 32))
}

// philoxBlock is ten rounds on the counter c with a key of two words.
func philoxBlock(b *Builder, c [4]Ref, k0, k1 Ref) [4]Ref {
	u := func(v int64) Ref { return b.int(Uint32, v) }
	for round := 0; round < 10; round++ {
		if round > 0 {
			k0, k1 = b.add(k0, u(philoxW0)), b.add(k1, u(philoxW1))
		}
		c = [4]Ref{
			b.xor(b.xor(b.mulhi(u(philoxM1), c[2]), c[1]), k0),
			b.mul(u(philoxM1), c[2]),
			b.xor(b.xor(b.mulhi(u(philoxM0), c[0]), c[3]), k1),
			b.mul(u(philoxM0), c[0]),
		}
	}
	return c
}

// mantissaBits is an integer of as many random bits as dt holds exactly: 24 from one word, or 53
// from two.
func mantissaBits(b *Builder, dt DType, low, high Ref) Ref {
	if dt == Float32 {
		return b.bits(Int32, b.shr(low, 8))
	}
	return b.bits(Int64, b.shr(join64(b, low, high), 11))
}

func join64(b *Builder, low, high Ref) Ref {
	return b.or(b.convert(Uint64, low), b.shl(b.convert(Uint64, high), 32))
}

// mantissaUnit is the weight of mantissaBits' lowest bit on [0,1).
func mantissaUnit(dt DType) float64 {
	if dt == Float32 {
		return 0x1p-24
	}
	return 0x1p-53
}

func expandUniform(b *Builder, dt DType, args []Ref) Ref {
	w := philox(b, args[0], args[1], args[2])
	n := b.convert(dt, mantissaBits(b, dt, w[0], w[1]))
	return b.mul(n, b.float(dt, mantissaUnit(dt)))
}

// expandNormal is Box and Muller's √(-2 ln u)·cos(2πv), with u in (0, 1], so that the logarithm is
// finite. The turns of v are reduced as an integer.
func expandNormal(b *Builder, dt DType, args []Ref) Ref {
	w := philox(b, args[0], args[1], args[2])
	n := b.convert(dt, mantissaBits(b, dt, w[0], w[1]))
	u := b.mul(b.add(n, b.float(dt, 1)), b.float(dt, mantissaUnit(dt)))
	radius := b.sqrt(b.mul(b.unary(Log, u), b.float(dt, -2)))

	v, width := w[2], int64(32)
	if dt == Float64 {
		v, width = join64(b, w[2], w[3]), 64
	}
	t, i := b.DT(v), intOf(dt)
	k := b.bits(i, b.shr(b.add(v, b.raw(t, 1<<(width-3))), width-2))
	// The rest of the turn, signed. Its lowest bits, which the float type cannot hold, are dropped,
	// so that the conversion is exact.
	drop := int64(8)
	if dt == Float64 {
		drop = 11
	}
	rest := b.and(b.shl(v, 2), b.not(b.int(t, 1<<drop-1)))
	turn := b.convert(dt, b.bits(i, rest))
	r := b.mul(turn, b.float(dt, float64(halfPi*exp2i(-width))))
	return b.mul(radius, cosQuadrant(b, k, r))
}

// expandIota is start + step*i. i is converted to the dtype first: integers wrap, floats round.
func expandIota(b *Builder, dt DType, args []Ref) Ref {
	lo, hi, start, step := args[0], args[1], args[2], args[3]
	return b.add(start, b.mul(step, position(b, dt, lo, hi)))
}

func position(b *Builder, dt DType, lo, hi Ref) Ref {
	switch {
	case dt.IsFloat():
		// One rounding below 2^32, and one more above.
		low := b.convert(dt, lo)
		return b.add(b.mul(b.convert(dt, hi), b.float(dt, math.Ldexp(1, 32))), low)
	case dt.Bits() == 64:
		return b.bits(dt, join64(b, lo, hi))
	case dt.Bits() == 32:
		return b.bits(dt, lo)
	}
	return b.convert(dt, b.and(lo, b.int(Uint32, int64(maxInt(dt)))))
}

// expandPhilox takes as many bits of the block as the dtype has. Halves that the dtype does not
// have are 0.
func expandPhilox(b *Builder, dt DType, args []Ref) Ref {
	if dt == Uint32 {
		zero := b.int(Uint32, 0)
		return philoxBlock(b, [4]Ref{args[0], zero, args[1], zero}, args[2], zero)[0]
	}
	var c [4]Ref
	c[0], c[1] = halves(b, args[0])
	c[2], c[3] = halves(b, args[1])
	k0, k1 := halves(b, args[2])
	w := philoxBlock(b, c, k0, k1)
	return join64(b, w[0], w[1])
}
