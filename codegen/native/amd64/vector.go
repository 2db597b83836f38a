package amd64

import "github.com/millrace-go/millrace/codegen/native"

// Moves of vectors between registers and memory.

func (a *machine) LoadVec(r uint8, size int, m native.Mem) {
	a.vector(vmovups, size, args{reg: r, RM: native.InMem(m), imm: native.NoImm})
}

func (a *machine) StoreVec(m native.Mem, size int, r uint8) {
	a.vector(vmovupsTo, size, args{reg: r, RM: native.InMem(m), imm: native.NoImm})
}

func (a *machine) StorePast(m native.Mem, size int, r uint8) {
	a.vector(vmovntps, size, args{reg: r, RM: native.InMem(m), imm: native.NoImm})
}

func (a *machine) CopyVec(to, from uint8, size int) {
	a.vector(vmovaps, size, args{reg: to, RM: native.InReg(from), imm: native.NoImm})
}

func (a *machine) ClearVec(r uint8, size int) {
	a.vector(vpxor, size, args{reg: r, v: r, RM: native.InReg(r), imm: native.NoImm})
}

func (a *machine) SplatVec(r uint8, size, elem int, m native.Mem) {
	o := vbroadcastss
	if elem == 8 {
		o = vbroadcastsd
	}
	a.vector(o, size, args{reg: r, RM: native.InMem(m), imm: native.NoImm})
}

func (a *machine) Spread(d uint8, n, size int, g native.GPR) {
	switch {
	case a.evex && size == 8:
		a.vector(vpbroadcastqR, n, args{reg: d, RM: native.OfGPR(g), imm: native.NoImm})
	case a.evex:
		a.vector(vpbroadcastdR, n, args{reg: d, RM: native.OfGPR(g), imm: native.NoImm})
	case size == 8:
		a.vector(vmovqR, 16, args{reg: d, RM: native.OfGPR(g), imm: native.NoImm})
		a.vector(vbroadcastsd, n, args{reg: d, RM: native.InReg(d), imm: native.NoImm})
	default:
		a.vector(vmovd, 16, args{reg: d, RM: native.OfGPR(g), imm: native.NoImm})
		a.vector(vbroadcastss, n, args{reg: d, RM: native.InReg(d), imm: native.NoImm})
	}
}

// bitOps are the instructions of vecOp.
var bitOps = map[native.Arith]native.Op{native.Add: vpaddd, native.And: vpand, native.Or: vpor, native.Xor: vpxor}

func (a *machine) VecOp(o native.Arith, size int, d, x uint8, y native.RM) {
	a.vector(bitOps[o], size, args{reg: d, v: x, RM: y, imm: native.NoImm})
}

// Mask registers.

func (a *machine) LoadMask(r uint8, m native.Mem) {
	a.vector(kmovw, 16, args{reg: r, RM: native.InMem(m), imm: native.NoImm})
}

func (a *machine) StoreMask(m native.Mem, r uint8) {
	a.vector(kmovwTo, 16, args{reg: r, RM: native.InMem(m), imm: native.NoImm})
}

func (a *machine) SetMask(r uint8, all bool) {
	o := kxorw
	if all {
		o = kxnorw
	}
	a.vector(o, 16, args{reg: r, v: r, RM: native.InReg(r), imm: native.NoImm})
}

func (a *machine) MaskFrom(r uint8, g native.GPR) {
	a.vector(kmovwR, 16, args{reg: r, RM: native.OfGPR(g), imm: native.NoImm})
}

func (a *machine) MaskTo(g native.GPR, r uint8) {
	a.vector(kmovwRTo, 16, args{reg: uint8(g), RM: native.InReg(r), imm: native.NoImm})
}

func (a *machine) FirstLanes(r uint8, spare, count native.GPR) {
	a.Set(spare, 0xffffffff)
	a.bzhi(spare, spare, count)
	a.MaskFrom(r, spare)
}
