package native

import "unsafe"

// DiffersFrame is the argument of the function that finds where rows of vectors differ from a value,
// in the bits given by Bits.
type DiffersFrame struct {
	X          unsafe.Pointer
	Ld         int64 // from row to row, in bytes
	Rows       int64 // at least 1
	Vectors    int64 // of a row
	Than, Bits uint64
	From, To   int64 // results: no vector before From, and none from To on, differs
}

// BeyondFrame is the argument of the function that tests whether some bits of an element, without
// its sign, are a number greater than a limit.
type BeyondFrame struct {
	X       unsafe.Pointer
	Ld      int64
	Rows    int64 // at least 1
	Vectors int64 // of a row, at least 1
	Bits    uint64
	Limit   uint64
	Beyond  int64 // result: 0 if there is none
}

// scans makes both functions.
func (g *dotGen) scans() {
	g.differs()
	g.beyond()
}

// differs searches from the start and from the end, and stops at the first difference.
func (g *dotGen) differs() {
	var f DiffersFrame
	const base, ld, at0, end, row, rows = rsi, rdx, rbx, rcx, r8, r9
	const than, bits, sum = 0, 1, 2
	g.d.Differs = g.begin("vectors that differ")
	g.load(base, field(unsafe.Offsetof(f.X)))
	g.load(ld, field(unsafe.Offsetof(f.Ld)))
	g.load(end, field(unsafe.Offsetof(f.Vectors)))
	g.splatVec(than, g.isa.Bytes, 8, field(unsafe.Offsetof(f.Than)))
	g.splatVec(bits, g.isa.Bytes, 8, field(unsafe.Offsetof(f.Bits)))
	g.clear(at0)
	// look compares the vectors of all rows at one place, whose address is in row.
	look := func(found label) {
		next := g.newLabel()
		g.load(rows, field(unsafe.Offsetof(f.Rows)))
		g.clearVec(sum, g.isa.Bytes)
		g.place(next)
		g.either(vpxor, nEor, sum+1, than, inMem(at(row, 0)))
		g.either(vpor, nOrr, sum, sum, inReg(sum+1))
		g.op(add, row, ofGPR(ld))
		g.opImm(sub, ofGPR(rows), 1)
		g.jumpIf(notEqual, next)
		g.jumpIfAny(sum, bits, found)
	}
	forwards, backwards, first, last := g.newLabel(), g.newLabel(), g.newLabel(), g.newLabel()
	shift := shiftOf(g.isa.Bytes)
	g.place(forwards)
	g.op(cmp, at0, ofGPR(end))
	g.jumpIf(greaterEqual, first)
	g.copy(row, at0)
	g.shift(shl, true, row, shift)
	g.op(add, row, ofGPR(base))
	look(first)
	g.opImm(add, ofGPR(at0), 1)
	g.jump(forwards)
	g.place(first)
	g.store(field(unsafe.Offsetof(f.From)), at0)
	g.place(backwards)
	g.op(cmp, at0, ofGPR(end))
	g.jumpIf(greaterEqual, last)
	g.copy(row, end)
	g.shift(shl, true, row, shift)
	g.op(add, row, ofGPR(base))
	g.opImm(sub, ofGPR(row), g.isa.Bytes)
	look(last)
	g.opImm(sub, ofGPR(end), 1)
	g.jump(backwards)
	g.place(last)
	g.store(field(unsafe.Offsetof(f.To)), end)
	g.ret()
}

// jumpIfAny jumps if some of the bits are set in register r. On AVX2 it changes r and r+1, on NEON
// r.
func (g *dotGen) jumpIfAny(r, bits uint8, to label) {
	if g.isa.A64 {
		g.neon(nAnd, r, r, bits, 0)
		g.largest(rax, r)
		g.opImm(cmp, ofGPR(rax), 0)
		g.jumpIf(notEqual, to)
		return
	}
	if g.isa.EVEX {
		g.vec3(vptestmd, 1, r, inReg(bits))
		g.vector(kortestw, 16, args{reg: 1, rm: inReg(1), imm: noImm})
		g.jumpIf(notEqual, to)
		return
	}
	g.vec3(vpand, r, r, inReg(bits))
	g.vec3(vpxor, r+1, r+1, inReg(r+1))
	g.vec3(vpcmpeqd, r, r, inReg(r+1))
	g.vec3(vmovmskps, uint8(rax), 0, inReg(r))
	g.opImm(cmp, ofGPR(rax), 0xff)
	g.jumpIf(notEqual, to)
}

func (g *dotGen) beyond() {
	var f BeyondFrame
	const base, ld, left, row, rows = rsi, rdx, rcx, r8, r9
	const bits, limit, sum, temp = 0, 1, 2, 3
	g.d.Beyond = g.begin("elements beyond a limit")
	greaterThan, less, neonGreater := vpcmpgtd, vpcmpud, nCmgt
	if g.size == 8 {
		greaterThan, less, neonGreater = vpcmpgtq, vpcmpuq, nCmgt|wide
	}
	g.load(base, field(unsafe.Offsetof(f.X)))
	g.load(ld, field(unsafe.Offsetof(f.Ld)))
	g.load(rows, field(unsafe.Offsetof(f.Rows)))
	g.splatVec(bits, g.isa.Bytes, g.size, field(unsafe.Offsetof(f.Bits)))
	g.splatVec(limit, g.isa.Bytes, g.size, field(unsafe.Offsetof(f.Limit)))
	g.clearVec(sum, g.isa.Bytes)
	if g.isa.EVEX {
		g.vector(kxorw, 16, args{reg: 1, v: 1, rm: inReg(1), imm: noImm})
	}
	line, next, found := g.newLabel(), g.newLabel(), g.newLabel()
	g.place(line)
	g.copy(row, base)
	g.load(left, field(unsafe.Offsetof(f.Vectors)))
	g.align(32)
	g.place(next)
	g.either(vpand, nAnd, temp, bits, inMem(at(row, 0)))
	if g.isa.EVEX {
		const lessThan = 1
		g.vec3i(less, 2, limit, inReg(temp), lessThan)
		g.vector(korw, 16, args{reg: 1, v: 1, rm: inReg(2), imm: noImm})
	} else {
		g.either(greaterThan, neonGreater, temp, temp, inReg(limit))
		g.either(vpor, nOrr, sum, sum, inReg(temp))
	}
	g.opImm(add, ofGPR(row), g.isa.Bytes)
	g.opImm(sub, ofGPR(left), 1)
	g.jumpIf(notEqual, next)
	g.op(add, base, ofGPR(ld))
	g.opImm(sub, ofGPR(rows), 1)
	g.jumpIf(notEqual, line)
	g.set(rax, 1)
	switch {
	case g.isa.EVEX:
		g.vector(kortestw, 16, args{reg: 1, rm: inReg(1), imm: noImm})
	case g.isa.A64:
		g.largest(rbx, sum)
		g.opImm(cmp, ofGPR(rbx), 0)
	default:
		g.vec3(vmovmskps, uint8(rbx), 0, inReg(sum))
		g.opImm(cmp, ofGPR(rbx), 0)
	}
	g.jumpIf(notEqual, found)
	g.clear(rax)
	g.place(found)
	g.store(field(unsafe.Offsetof(f.Beyond)), rax)
	g.ret()
}
