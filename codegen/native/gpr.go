package native

// Instructions on general registers: addresses, counters, and lane-by-lane code. They are written in
// amd64's form; a64.go translates them for arm64.

// arith is one of the instructions that share a form: add, or, and, sub, xor, cmp.
type arith uint8

const (
	add  arith = 0
	and  arith = 4
	sub  arith = 5
	xor  arith = 6
	cmp  arith = 7
	shl        = 4 // of shifts
	shr        = 5
	sar        = 7
	divU       = 6 // of the group of multiplications and divisions
	divS       = 7
)

var arithNames = map[arith]string{add: "add", and: "and", sub: "sub", xor: "xor", cmp: "cmp"}

// cond is a condition of a jump.
type cond uint8

const (
	below        cond = 2 // unsigned
	aboveEqual   cond = 3
	equal        cond = 4
	notEqual     cond = 5
	less         cond = 12 // signed
	greaterEqual cond = 13
	lessEqual    cond = 14
	greater      cond = 15
)

var condNames = map[cond]string{below: "b", aboveEqual: "ae", equal: "e", notEqual: "ne", less: "l", greaterEqual: "ge", lessEqual: "le", greater: "g"}

// rexOp emits a REX prefix if needed, the opcode bytes and ModRM.
func (a *asm) rexOp(wide bool, reg uint8, x rm, after int, opcode ...byte) {
	rex := byte(0)
	if wide {
		rex |= 8
	}
	rex |= reg >> 3 & 1 << 2
	if x.inMem {
		if x.index != noReg {
			rex |= uint8(x.index) >> 3 & 1 << 1
		}
		if x.base != noReg {
			rex |= uint8(x.base) >> 3 & 1
		}
	} else {
		rex |= x.reg >> 3 & 1
	}
	if p := opcode[0]; p == 0x66 || p == 0xf3 || p == 0xf2 {
		a.emit(p)
		opcode = opcode[1:]
	}
	if rex != 0 {
		a.emit(0x40 | rex)
	}
	a.emit(opcode...)
	a.modrm(reg, x, 1, after)
}

func (a *asm) load(r gpr, m mem) {
	if a.isa.A64 {
		a.loadA64(8, 1, r, m)
		return
	}
	begin := len(a.buf)
	a.rexOp(true, uint8(r), inMem(m), 0, 0x8b)
	a.text(begin, "mov %v,%v", r, m)
}

// prefetch prefetches a line of memory into the second-level cache. It never faults.
func (a *asm) prefetch(m mem) {
	begin := len(a.buf)
	a.rexOp(false, 2, inMem(m), 0, 0x0f, 0x18)
	a.text(begin, "prefetcht1 %v", m)
}

// ask prefetches a line of memory into the first-level cache. It never faults.
func (a *asm) ask(m mem) {
	begin := len(a.buf)
	a.rexOp(false, 1, inMem(m), 0, 0x0f, 0x18)
	a.text(begin, "prefetcht0 %v", m)
}

// load32 clears the upper half.
func (a *asm) load32(r gpr, m mem) {
	if a.isa.A64 {
		a.loadA64(4, 1, r, m)
		return
	}
	begin := len(a.buf)
	a.rexOp(false, uint8(r), inMem(m), 0, 0x8b)
	a.text(begin, "mov %s,%v", r.half(), m)
}

func (a *asm) store(m mem, r gpr) {
	if a.isa.A64 {
		a.loadA64(8, 0, r, m)
		return
	}
	begin := len(a.buf)
	a.rexOp(true, uint8(r), inMem(m), 0, 0x89)
	a.text(begin, "mov %v,%v", m, r)
}

func (a *asm) copy(to, from gpr) {
	if a.isa.A64 {
		a.word(0xaa0003e0|uint32(from)<<16|uint32(to), "mov %s, %s", xName(to), xName(from))
		return
	}
	begin := len(a.buf)
	a.rexOp(true, uint8(from), ofGPR(to), 0, 0x89)
	a.text(begin, "mov %v,%v", to, from)
}

// storeSize writes the lowest bytes of a register.
func (a *asm) storeSize(size int, m mem, r gpr) {
	if a.isa.A64 {
		a.loadA64(size, 0, r, m)
		return
	}
	begin := len(a.buf)
	name := r.String()
	switch size {
	case 1:
		name = r.byteName()
		if r >= rsp && r <= rdi { // without REX they would be ah to bh
			a.fail("a byte of %v", r)
		}
		a.rexOp(false, uint8(r), inMem(m), 0, 0x88)
	case 2:
		name = r.wordName()
		a.rexOp(false, uint8(r), inMem(m), 0, 0x66, 0x89)
	case 4:
		name = r.half()
		a.rexOp(false, uint8(r), inMem(m), 0, 0x89)
	default:
		a.rexOp(true, uint8(r), inMem(m), 0, 0x89)
	}
	a.text(begin, "mov %v,%s", m, name)
}

// loadSize reads an element of so many bytes and extends it by its sign or by zeros: to 64 bits if
// it has four bytes or more, else to 32.
func (a *asm) loadSize(size int, signed bool, r gpr, m mem) {
	if a.isa.A64 {
		a.loadSizeA64(size, signed, r, m)
		return
	}
	begin := len(a.buf)
	switch {
	case size == 8:
		a.load(r, m)
	case size == 4 && !signed:
		a.load32(r, m)
	case size == 4:
		a.rexOp(true, uint8(r), inMem(m), 0, 0x63)
		a.text(begin, "movsxd %v,%v", r, m)
	default:
		name, code := "movzx", byte(0xb6)
		if signed {
			name, code = "movsx", 0xbe
		}
		if size == 2 {
			code++
		}
		a.rexOp(false, uint8(r), inMem(m), 0, 0x0f, code)
		a.text(begin, "%s %s,%v", name, r.half(), m)
	}
}

func (a *asm) lea(r gpr, m mem) {
	if a.isa.A64 {
		a.leaA64(r, m)
		return
	}
	begin := len(a.buf)
	a.rexOp(true, uint8(r), inMem(m), 0, 0x8d)
	a.text(begin, "lea %v,%v", r, m)
}

// leaLabel loads the address of a label.
func (a *asm) leaLabel(r gpr, l label) {
	if a.isa.A64 {
		a.toLabel(0x10000000|uint32(r), rel21, l, false, "adr %s, L%d", xName(r), l)
		return
	}
	begin := len(a.buf)
	a.emit(0x48|uint8(r)>>3<<2, 0x8d, uint8(r)&7<<3|5)
	a.fixes = append(a.fixes, fix{at: int32(len(a.buf)), end: int32(len(a.buf) + 4), to: l})
	a.emit32(0)
	a.text(begin, "lea %v,L%d", r, l)
}

// op works on a register and a register or memory.
func (a *asm) op(o arith, r gpr, x rm) {
	if a.isa.A64 {
		a.opA64(o, r, x)
		return
	}
	begin := len(a.buf)
	a.rexOp(true, uint8(r), x, 0, byte(o)<<3|3)
	if x.inMem {
		a.text(begin, "%s %v,%v", arithNames[o], r, x.mem)
	} else {
		a.text(begin, "%s %v,%v", arithNames[o], r, gpr(x.reg))
	}
}

// opTo works on memory and a register.
func (a *asm) opTo(o arith, m mem, r gpr) {
	if a.isa.A64 {
		a.opToA64(o, m, r)
		return
	}
	begin := len(a.buf)
	a.rexOp(true, uint8(r), inMem(m), 0, byte(o)<<3|1)
	a.text(begin, "%s %v,%v", arithNames[o], m, r)
}

// opImm works on a register or memory, of 64 bits, and a constant.
func (a *asm) opImm(o arith, x rm, imm int) {
	if a.isa.A64 {
		a.opImmA64(o, x, imm)
		return
	}
	begin := len(a.buf)
	if imm >= -128 && imm <= 127 {
		a.rexOp(true, uint8(o), x, 1, 0x83)
		a.emit(byte(imm))
	} else {
		a.rexOp(true, uint8(o), x, 4, 0x81)
		a.emit32(int32(imm))
	}
	if x.inMem {
		a.text(begin, "%s %v,%d", arithNames[o], x.mem, imm)
	} else {
		a.text(begin, "%s %v,%d", arithNames[o], gpr(x.reg), imm)
	}
}

// imul is r *= x.
func (a *asm) imul(r gpr, x rm) {
	if a.isa.A64 {
		a.imulA64(r, x)
		return
	}
	begin := len(a.buf)
	a.rexOp(true, uint8(r), x, 0, 0x0f, 0xaf)
	if x.inMem {
		a.text(begin, "imul %v,%v", r, x.mem)
	} else {
		a.text(begin, "imul %v,%v", r, gpr(x.reg))
	}
}

// shift shifts a register by a constant.
func (a *asm) shift(kind uint8, wide bool, r gpr, by int) {
	if a.isa.A64 {
		a.shiftA64(kind, wide, r, by)
		return
	}
	begin := len(a.buf)
	a.rexOp(wide, kind, ofGPR(r), 1, 0xc1)
	a.emit(byte(by))
	name := r.String()
	if !wide {
		name = r.half()
	}
	a.text(begin, "%s %s,%d", map[uint8]string{shl: "shl", shr: "shr", sar: "sar"}[kind], name, by)
}

// divide divides rdx:rax, or edx:eax, by memory.
func (a *asm) divide(signed, wide bool, m mem) {
	if a.isa.A64 {
		a.fail("divide is amd64's")
		return
	}
	begin := len(a.buf)
	switch {
	case signed && wide:
		a.emit(0x48, 0x99)
		a.text(begin, "cqo")
	case signed:
		a.emit(0x99)
		a.text(begin, "cdq")
	default:
		a.emit(0x31, 0xd2)
		a.text(begin, "xor edx,edx")
	}
	begin = len(a.buf)
	kind, name := uint8(divU), "div"
	if signed {
		kind, name = divS, "idiv"
	}
	a.rexOp(wide, kind, inMem(m), 0, 0xf7)
	a.text(begin, "%s %v", name, m)
}

// clear sets a register to 0.
func (a *asm) clear(r gpr) {
	if a.isa.A64 {
		a.constA64(r, 0)
		return
	}
	begin := len(a.buf)
	a.rexOp(false, uint8(r), ofGPR(r), 0, 0x31)
	a.text(begin, "xor %s,%s", r.half(), r.half())
}

// set sets a register to a constant of 32 bits.
func (a *asm) set(r gpr, imm uint32) {
	if a.isa.A64 {
		a.constA64(r, int64(imm))
		return
	}
	begin := len(a.buf)
	if r >= r8 {
		a.emit(0x41)
	}
	a.emit(0xb8 | uint8(r)&7)
	a.emit32(int32(imm))
	a.text(begin, "mov %s,%#x", r.half(), imm)
}

// bzhi copies the lowest bits of from to r; the register count has their number.
func (a *asm) bzhi(r, from, count gpr) {
	if a.isa.A64 {
		a.fail("bzhi is amd64's")
		return
	}
	begin := len(a.buf)
	// VEX.LZ.0F38.W1 F5 /r
	a.emit(0xc4, inv(uint8(r), 3)<<7|1<<6|inv(uint8(from), 3)<<5|2, 1<<7|(^uint8(count)&15)<<3, 0xf5, 0xc0|uint8(r)&7<<3|uint8(from)&7)
	a.text(begin, "bzhi %v,%v,%v", r, from, count)
}

func (a *asm) jump(l label) {
	if a.isa.A64 {
		a.toLabel(0x14000000, rel26, l, false, "b L%d", l)
		return
	}
	begin := len(a.buf)
	a.emit(0xe9)
	a.distance(l)
	a.text(begin, "jmp L%d", l)
}

func (a *asm) jumpIf(c cond, l label) {
	if a.isa.A64 {
		a.jumpIfA64(c, l)
		return
	}
	begin := len(a.buf)
	a.emit(0x0f, 0x80|byte(c))
	a.distance(l)
	a.text(begin, "j%s L%d", condNames[c], l)
}

func (a *asm) distance(l label) {
	a.fixes = append(a.fixes, fix{at: int32(len(a.buf)), end: int32(len(a.buf) + 4), to: l})
	a.emit32(0)
}

// jumpTo jumps to the address in memory.
func (a *asm) jumpTo(m mem) {
	if a.isa.A64 {
		a.loadA64(8, 1, x17, m)
		a.word(0xd61f0000|uint32(x17)<<5, "br x17")
		return
	}
	begin := len(a.buf)
	a.rexOp(false, 4, inMem(m), 0, 0xff)
	a.text(begin, "jmp %v", m)
}

// testBit sets the carry, which the condition below tests, to a bit of a 32-bit word. The register
// bit has its number.
func (a *asm) testBit(word, bit gpr) {
	if a.isa.A64 {
		a.fail("testBit is amd64's")
		return
	}
	begin := len(a.buf)
	a.rexOp(false, uint8(bit), ofGPR(word), 0, 0x0f, 0xa3)
	a.text(begin, "bt %s,%s", word.half(), bit.half())
}

func (a *asm) ret() {
	if a.isa.A64 {
		a.word(0xd65f03c0, "ret")
		return
	}
	begin := len(a.buf)
	a.emit(0xc3)
	a.text(begin, "ret")
}

func (a *asm) sfence() {
	if a.isa.A64 {
		a.fail("no stores past the caches")
		return
	}
	begin := len(a.buf)
	a.emit(0x0f, 0xae, 0xf8)
	a.text(begin, "sfence")
}

// negate is r = -r.
func (a *asm) negate(r gpr) {
	if a.isa.A64 {
		a.word(0xcb0003e0|uint32(r)<<16|uint32(r), "neg %s, %s", xName(r), xName(r))
		return
	}
	begin := len(a.buf)
	a.rexOp(true, 3, ofGPR(r), 0, 0xf7)
	a.text(begin, "neg %v", r)
}
