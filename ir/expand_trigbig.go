package ir

import "math"

// Payne and Hanek's reduction. Of x·2/π only the bits from weight 2 down matter. So a window of
// 2/π, whose start depends on x's exponent, is multiplied by x's significand, modulo 4. float32
// needs 32-bit integers only.

// largeSubs are the subs of one function for arguments beyond the fast path.
type largeSubs struct{ f32, f64 uint64 }

func (l largeSubs) of(dt DType) uint64 {
	if dt == Float32 {
		return l.f32
	}
	return l.f64
}

var (
	subSin = registerLarge("sin.large", sinQuadrant, true)
	subCos = registerLarge("cos.large", cosQuadrant, false)
	subTan = registerLarge("tan.large", tanQuadrant, true)
)

func registerLarge(name string, q quadrant, odd bool) largeSubs {
	return largeSubs{
		f32: RegisterSub(name+".float32", []DType{Float32}, largeTrig(q, odd, payneHanek32)),
		f64: RegisterSub(name+".float64", []DType{Float64}, largeTrig(q, odd, payneHanek64)),
	}
}

// largeTrig reduces |x| and gives odd functions x's sign. Infinities give NaN.
func largeTrig(q quadrant, odd bool, reduce func(*Builder, Ref) (k, r Ref)) func(*Builder, []Ref) Ref {
	return func(b *Builder, args []Ref) Ref {
		x := args[0]
		dt := b.DT(x)
		k, r := reduce(b, x)
		y := q(b, k, r)
		if odd {
			y = b.bits(dt, b.xor(b.bits(intOf(dt), y), b.signBit(x)))
		}
		// x-x is 0, or NaN for NaN and the infinities.
		return b.add(y, b.sub(x, x))
	}
}

// tableTwoOverPi holds 2/π in words of 32 bits, highest first, after two words of zeros, in which
// the windows of the smallest arguments begin.
var tableTwoOverPi = RegisterTable(&Table{Name: "twooverpi", DT: Uint32, Bits: []uint64{
	0x00000000, 0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
	0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
	0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
	0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
	0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab,
}})

// window is n words of 2/π from bit start on; both are Uint32.
func window(b *Builder, start Ref, n int) []Ref {
	u := func(v int64) Ref { return b.int(Uint32, v) }
	shift := b.and(start, u(31))
	back := b.sub(u(31), shift)
	at := b.bits(Int32, b.shr(start, 5))
	word := func(i int) Ref {
		return b.lookup(tableTwoOverPi, Uint32, b.add(at, b.int(Int32, int64(i))))
	}
	w := make([]Ref, n)
	next := word(0)
	for i := range w {
		this := next
		next = word(i + 1)
		// Two shifts, since one by 32 would be out of range.
		low := b.binary(ShrRaw, b.shr(next, 1), back)
		w[i] = b.or(b.binary(ShlRaw, this, shift), low)
	}
	return w
}

// payneHanek32 is |x| = k·π/2 + r with k modulo 4, for |x| >= 2^10.
func payneHanek32(b *Builder, x Ref) (k, r Ref) {
	u := func(v int64) Ref { return b.int(Uint32, v) }
	bits := b.bits(Uint32, b.abs(x))
	m := b.or(b.and(bits, u(0x7fffff)), u(0x800000))
	// |x| = m·2^(exp-150), and the product's top bit should have weight 2. So the window begins at
	// bit exp-152 of 2/π, with 64 zeros in front. The limit keeps infinities and NaN within the
	// table.
	exp := b.shr(bits, 23)
	exp = b.sel(b.gt(exp, u(254)), u(254), exp)
	w := window(b, b.sub(exp, u(88)), 3)
	// The product's words of weight 2^-30 and 2^-62, modulo 4.
	carryIn := b.mulhi(m, w[2])
	mid := b.add(b.mul(m, w[1]), carryIn)
	carry := b.sel(b.lt(mid, carryIn), u(1), u(0))
	hi := b.add(b.add(b.mul(m, w[0]), b.mulhi(m, w[1])), carry)
	return turns(b, hi, mid, Float32)
}

// payneHanek64 is the same for float64 and |x| >= 2^20, in limbs of 32 bits.
func payneHanek64(b *Builder, x Ref) (k, r Ref) {
	u := func(v int64) Ref { return b.int(Uint64, v) }
	bits := b.bits(Uint64, b.abs(x))
	low32 := u(0xffffffff)
	m0 := b.and(bits, low32)
	m1 := b.or(b.and(b.shr(bits, 32), u(0xfffff)), u(0x100000))
	// |x| = (m1:m0)·2^(exp-1075).
	exp := b.shr(bits, 52)
	exp = b.sel(b.gt(exp, u(2046)), u(2046), exp)
	w := window(b, b.convert(Uint32, b.sub(exp, u(1013))), 6)
	for i := range w {
		w[i] = b.convert(Uint64, w[i])
	}
	// Columns of weight 2^(-30-32j), modulo 4, from the lowest up.
	hiOf := func(p Ref) Ref { return b.shr(p, 32) }
	loOf := func(p Ref) Ref { return b.and(p, low32) }
	carry := u(0)
	var col [4]Ref
	for j := 3; j >= 0; j-- {
		a, c := b.mul(m0, w[j+1]), b.mul(m1, w[j+1])
		sum := b.add(b.add(loOf(b.mul(m0, w[j])), hiOf(a)), loOf(c))
		sum = b.add(b.add(sum, hiOf(b.mul(m1, w[j+2]))), carry)
		col[j], carry = loOf(sum), hiOf(sum)
	}
	hi := b.or(b.shl(col[0], 32), col[1])
	mid := b.or(b.shl(col[2], 32), col[3])
	return turns(b, hi, mid, Float64)
}

// turns splits the fixed-point number hi:mid, whose top bit has weight 2, into the nearest integer
// k and r = π/2 times the rest. The rest's magnitude becomes a pair of floats: its first bits are
// exact in one float, and as many further bits are added to it with the rounding error kept, so r
// is rounded once. Both floats are positive: with a sign in the first part alone, a small rest
// would cancel.
func turns(b *Builder, hi, mid Ref, dt DType) (k, r Ref) {
	u, i := b.DT(hi), intOf(dt)
	n := int64(u.Bits())
	exact := int64(24)
	if dt == Float64 {
		exact = 53
	}
	half := b.raw(u, 1<<(n-3))
	k = b.bits(i, b.shr(b.add(hi, half), n-2))
	fh := b.or(b.shl(hi, 2), b.shr(mid, n-2))
	fl := b.shl(mid, 2)
	// All ones if the rest is negative; the complement differs from the negation by one unit of the
	// last place of fl.
	sign := b.bits(u, b.shr(b.bits(i, fh), n-1))
	fh, fl = b.xor(fh, sign), b.xor(fl, sign)

	rest := n - exact
	top := b.convert(dt, b.bits(i, b.and(fh, b.not(b.int(u, 1<<rest-1)))))
	top = b.mul(top, b.float(dt, exp2i(-n)))
	next := b.or(b.shl(fh, exact), b.shr(fl, rest))
	tail := b.convert(dt, b.bits(i, b.shr(next, 1)))
	unit := b.float(dt, exp2i(1-n-exact))
	f := b.fma(tail, unit, top)
	flo := b.fma(tail, unit, b.sub(top, f))
	c := invTrigFor(dt).half
	low := b.fma(f, b.float(dt, c.lo), b.mul(flo, b.float(dt, c.hi)))
	magnitude := b.bits(u, b.fma(f, b.float(dt, c.hi), low))
	return k, b.bits(dt, b.xor(magnitude, b.shl(sign, n-1)))
}

func exp2i(n int64) float64 { return math.Ldexp(1, int(n)) }
