package amd64

import "github.com/millrace-go/millrace/codegen/native"

// Squares of elements that are transposed in registers, and the last panel of rows.

// Pairs of 32-bit elements of both operands: 0 and 1, or 2 and 3, or the even or odd ones.
const shuffleLow, shuffleHigh, shuffleEven, shuffleOdd = 0x44, 0xee, 0x88, 0xdd

// LoadPieces loads pieces of n elements of a row, whose address is in rax, at an offset.
func (a *machine) LoadPieces(in []uint8, n, row, pieces int, offset native.GPR) {
	for p := range pieces {
		r, m := in[p*n+row%n], native.InMem(native.At2(native.RAX, offset, 1, 16*p))
		switch q := row / n; {
		case q == 0:
			a.vector(vmovups, 16, args{reg: r, RM: m, imm: native.NoImm})
		case a.evex:
			a.vec3i(vinserti32x4, r, r, m, int16(q))
		default:
			a.vec3i(vinserti128, r, r, m, int16(q))
		}
	}
}

// Square transposes the squares in registers s. It changes as many registers from t on.
func (a *machine) Square(s []uint8, t uint8) {
	shuffle := func(to, x, y uint8, how uint8) { a.vec3i(vshufps, to, x, native.InReg(y), int16(how)) }
	if len(s) == 2 {
		shuffle(t, s[0], s[1], shuffleLow)
		shuffle(s[1], s[0], s[1], shuffleHigh)
		return
	}
	shuffle(t, s[0], s[1], shuffleLow)
	shuffle(t+1, s[0], s[1], shuffleHigh)
	shuffle(t+2, s[2], s[3], shuffleLow)
	shuffle(t+3, s[2], s[3], shuffleHigh)
	shuffle(s[0], t, t+2, shuffleEven)
	shuffle(s[1], t, t+2, shuffleOdd)
	shuffle(s[2], t+1, t+3, shuffleEven)
	shuffle(s[3], t+1, t+3, shuffleOdd)
}

// PartPanel copies a row of the last panel.
func (a *machine) PartPanel(from, to, _ native.GPR) {
	for v := range 2 {
		m := native.InMem(native.At(from, v*a.ISA.Bytes))
		if a.evex {
			a.vector(a.dot.get, a.ISA.Bytes, args{reg: uint8(v), RM: m, imm: native.NoImm, k: uint8(v + 1), zero: true})
		} else {
			a.vec3(a.dot.getPart, uint8(v), uint8(v+2), m)
		}
	}
	for v := range 2 {
		a.StoreWhole(native.At(to, v*a.ISA.Bytes), uint8(v))
	}
}

// PartMasks makes masks of the first columns of two vectors: k1 and k2, or registers 2 and 3.
func (a *machine) PartMasks(columns, temp native.GPR) {
	if a.evex {
		a.Set(temp, 1<<32-1)
		a.bzhi(temp, temp, columns)
		for v := range 2 {
			a.vector(kmovwR, 16, args{reg: uint8(v + 1), RM: native.OfGPR(temp), imm: native.NoImm})
			a.Shift(native.Shr, true, temp, a.ISA.Bytes/a.dot.size)
		}
		return
	}
	a.Lea(temp, a.tailMasks())
	a.Copy(native.R13, columns)
	a.Shift(native.Shl, true, native.R13, native.ShiftOf(a.dot.size))
	a.Op(native.Sub, temp, native.OfGPR(native.R13))
	for v := range 2 {
		a.vec3(a.dot.get, uint8(v+2), 0, native.InMem(native.At(temp, (v+2)*a.ISA.Bytes)))
	}
}
