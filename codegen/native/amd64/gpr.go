package amd64

import "github.com/millrace-go/millrace/codegen/native"

// Instructions on general registers.

// rexOp emits a REX prefix if needed, the opcode bytes and ModRM.
func (a *machine) rexOp(wide bool, reg uint8, x native.RM, after int, opcode ...byte) {
	rex := byte(0)
	if wide {
		rex |= 8
	}
	rex |= reg >> 3 & 1 << 2
	if x.InMem {
		if x.Index != native.NoReg {
			rex |= uint8(x.Index) >> 3 & 1 << 1
		}
		if x.Base != native.NoReg {
			rex |= uint8(x.Base) >> 3 & 1
		}
	} else {
		rex |= x.Reg >> 3 & 1
	}
	if p := opcode[0]; p == 0x66 || p == 0xf3 || p == 0xf2 {
		a.Emit(p)
		opcode = opcode[1:]
	}
	if rex != 0 {
		a.Emit(0x40 | rex)
	}
	a.Emit(opcode...)
	a.modrm(reg, x, 1, after)
}

func (a *machine) Load(r native.GPR, m native.Mem) {
	begin := len(a.Buf)
	a.rexOp(true, uint8(r), native.InMem(m), 0, 0x8b)
	a.Text(begin, "mov %v,%v", r, m)
}

func (a *machine) Prefetch(m native.Mem, first bool) {
	begin, hint, name := len(a.Buf), uint8(2), "prefetcht1"
	if first {
		hint, name = 1, "prefetcht0"
	}
	a.rexOp(false, hint, native.InMem(m), 0, 0x0f, 0x18)
	a.Text(begin, "%s %v", name, m)
}

// Load32 clears the upper half.
func (a *machine) Load32(r native.GPR, m native.Mem) {
	begin := len(a.Buf)
	a.rexOp(false, uint8(r), native.InMem(m), 0, 0x8b)
	a.Text(begin, "mov %s,%v", half(r), m)
}

func (a *machine) Store(m native.Mem, r native.GPR) {
	begin := len(a.Buf)
	a.rexOp(true, uint8(r), native.InMem(m), 0, 0x89)
	a.Text(begin, "mov %v,%v", m, r)
}

func (a *machine) Copy(to, from native.GPR) {
	begin := len(a.Buf)
	a.rexOp(true, uint8(from), native.OfGPR(to), 0, 0x89)
	a.Text(begin, "mov %v,%v", to, from)
}

// StoreSize writes the lowest bytes of a register.
func (a *machine) StoreSize(size int, m native.Mem, r native.GPR) {
	begin := len(a.Buf)
	name := r.String()
	switch size {
	case 1:
		name = byteName(r)
		if r >= native.RSP && r <= native.RDI { // without REX they would be ah to bh
			a.Fail("the lowest byte of %v cannot be stored", r)
		}
		a.rexOp(false, uint8(r), native.InMem(m), 0, 0x88)
	case 2:
		name = wordName(r)
		a.rexOp(false, uint8(r), native.InMem(m), 0, 0x66, 0x89)
	case 4:
		name = half(r)
		a.rexOp(false, uint8(r), native.InMem(m), 0, 0x89)
	default:
		a.rexOp(true, uint8(r), native.InMem(m), 0, 0x89)
	}
	a.Text(begin, "mov %v,%s", m, name)
}

// LoadSize reads an element of so many bytes and extends it by its sign or by zeros: to 64 bits if
// it has four bytes or more, else to 32.
func (a *machine) LoadSize(size int, signed bool, r native.GPR, m native.Mem) {
	begin := len(a.Buf)
	switch {
	case size == 8:
		a.Load(r, m)
	case size == 4 && !signed:
		a.Load32(r, m)
	case size == 4:
		a.rexOp(true, uint8(r), native.InMem(m), 0, 0x63)
		a.Text(begin, "movsxd %v,%v", r, m)
	default:
		name, code := "movzx", byte(0xb6)
		if signed {
			name, code = "movsx", 0xbe
		}
		if size == 2 {
			code++
		}
		a.rexOp(false, uint8(r), native.InMem(m), 0, 0x0f, code)
		a.Text(begin, "%s %s,%v", name, half(r), m)
	}
}

func (a *machine) Lea(r native.GPR, m native.Mem) {
	begin := len(a.Buf)
	a.rexOp(true, uint8(r), native.InMem(m), 0, 0x8d)
	a.Text(begin, "lea %v,%v", r, m)
}

// LeaLabel loads the address of a label.
func (a *machine) LeaLabel(r native.GPR, l native.Label) {
	begin := len(a.Buf)
	a.Emit(0x48|uint8(r)>>3<<2, 0x8d, uint8(r)&7<<3|5)
	a.Fixes = append(a.Fixes, native.Fix{At: int32(len(a.Buf)), End: int32(len(a.Buf) + 4), To: l})
	a.Emit32(0)
	a.Text(begin, "lea %v,L%d", r, l)
}

// Op works on a register and a register or memory.
func (a *machine) Op(o native.Arith, r native.GPR, x native.RM) {
	begin := len(a.Buf)
	a.rexOp(true, uint8(r), x, 0, byte(o)<<3|3)
	if x.InMem {
		a.Text(begin, "%s %v,%v", native.ArithNames[o], r, x.Mem)
	} else {
		a.Text(begin, "%s %v,%v", native.ArithNames[o], r, native.GPR(x.Reg))
	}
}

// OpTo works on memory and a register.
func (a *machine) OpTo(o native.Arith, m native.Mem, r native.GPR) {
	begin := len(a.Buf)
	a.rexOp(true, uint8(r), native.InMem(m), 0, byte(o)<<3|1)
	a.Text(begin, "%s %v,%v", native.ArithNames[o], m, r)
}

// OpImm works on a register or memory, of 64 bits, and a constant.
func (a *machine) OpImm(o native.Arith, x native.RM, imm int) {
	begin := len(a.Buf)
	if imm >= -128 && imm <= 127 {
		a.rexOp(true, uint8(o), x, 1, 0x83)
		a.Emit(byte(imm))
	} else {
		a.rexOp(true, uint8(o), x, 4, 0x81)
		a.Emit32(int32(imm))
	}
	if x.InMem {
		a.Text(begin, "%s %v,%d", native.ArithNames[o], x.Mem, imm)
	} else {
		a.Text(begin, "%s %v,%d", native.ArithNames[o], native.GPR(x.Reg), imm)
	}
}

// Imul is r *= x.
func (a *machine) Imul(r native.GPR, x native.RM) {
	begin := len(a.Buf)
	a.rexOp(true, uint8(r), x, 0, 0x0f, 0xaf)
	if x.InMem {
		a.Text(begin, "imul %v,%v", r, x.Mem)
	} else {
		a.Text(begin, "imul %v,%v", r, native.GPR(x.Reg))
	}
}

// Shift shifts a register by a constant.
func (a *machine) Shift(kind uint8, wide bool, r native.GPR, by int) {
	begin := len(a.Buf)
	a.rexOp(wide, kind, native.OfGPR(r), 1, 0xc1)
	a.Emit(byte(by))
	name := r.String()
	if !wide {
		name = half(r)
	}
	a.Text(begin, "%s %s,%d", map[uint8]string{native.Shl: "shl", native.Shr: "shr", native.Sar: "sar"}[kind], name, by)
}

// divide divides rdx:rax, or edx:eax, by memory.
func (a *machine) divide(signed, wide bool, m native.Mem) {
	begin := len(a.Buf)
	switch {
	case signed && wide:
		a.Emit(0x48, 0x99)
		a.Text(begin, "cqo")
	case signed:
		a.Emit(0x99)
		a.Text(begin, "cdq")
	default:
		a.Emit(0x31, 0xd2)
		a.Text(begin, "xor edx,edx")
	}
	begin = len(a.Buf)
	kind, name := uint8(native.DivU), "div"
	if signed {
		kind, name = native.DivS, "idiv"
	}
	a.rexOp(wide, kind, native.InMem(m), 0, 0xf7)
	a.Text(begin, "%s %v", name, m)
}

// Clear sets a register to 0.
func (a *machine) Clear(r native.GPR) {
	begin := len(a.Buf)
	a.rexOp(false, uint8(r), native.OfGPR(r), 0, 0x31)
	a.Text(begin, "xor %s,%s", half(r), half(r))
}

// Set sets a register to a constant of 32 bits.
func (a *machine) Set(r native.GPR, imm uint32) {
	begin := len(a.Buf)
	if r >= native.R8 {
		a.Emit(0x41)
	}
	a.Emit(0xb8 | uint8(r)&7)
	a.Emit32(int32(imm))
	a.Text(begin, "mov %s,%#x", half(r), imm)
}

// bzhi copies the lowest bits of from to r; the register count has their number.
func (a *machine) bzhi(r, from, count native.GPR) {
	begin := len(a.Buf)
	// VEX.LZ.0F38.W1 F5 /r
	a.Emit(0xc4, inv(uint8(r), 3)<<7|1<<6|inv(uint8(from), 3)<<5|2, 1<<7|(^uint8(count)&15)<<3, 0xf5, 0xc0|uint8(r)&7<<3|uint8(from)&7)
	a.Text(begin, "bzhi %v,%v,%v", r, from, count)
}

func (a *machine) Jump(l native.Label) {
	begin := len(a.Buf)
	a.Emit(0xe9)
	a.distance(l)
	a.Text(begin, "jmp L%d", l)
}

func (a *machine) JumpIf(c native.Cond, l native.Label) {
	begin := len(a.Buf)
	a.Emit(0x0f, 0x80|byte(c))
	a.distance(l)
	a.Text(begin, "j%s L%d", native.CondNames[c], l)
}

func (a *machine) distance(l native.Label) {
	a.Fixes = append(a.Fixes, native.Fix{At: int32(len(a.Buf)), End: int32(len(a.Buf) + 4), To: l})
	a.Emit32(0)
}

// JumpTo jumps to the address in memory.
func (a *machine) JumpTo(m native.Mem) {
	begin := len(a.Buf)
	a.rexOp(false, 4, native.InMem(m), 0, 0xff)
	a.Text(begin, "jmp %v", m)
}

// TestBit sets the carry, which the condition below tests, to a bit of a 32-bit word. The register
// bit has its number.
func (a *machine) TestBit(word, bit native.GPR) {
	begin := len(a.Buf)
	a.rexOp(false, uint8(bit), native.OfGPR(word), 0, 0x0f, 0xa3)
	a.Text(begin, "bt %s,%s", half(word), half(bit))
}

func (a *machine) Ret() {
	begin := len(a.Buf)
	a.Emit(0xc3)
	a.Text(begin, "ret")
}

func (a *machine) Fence() {
	begin := len(a.Buf)
	a.Emit(0x0f, 0xae, 0xf8)
	a.Text(begin, "sfence")
}

// Negate is r = -r.
func (a *machine) Negate(r native.GPR) {
	begin := len(a.Buf)
	a.rexOp(true, 3, native.OfGPR(r), 0, 0xf7)
	a.Text(begin, "neg %v", r)
}

// nops are instructions that do nothing, by length.
var nops = [...]string{"", "\x90", "\x66\x90", "\x0f\x1f\x00", "\x0f\x1f\x40\x00", "\x0f\x1f\x44\x00\x00", "\x66\x0f\x1f\x44\x00\x00",
	"\x0f\x1f\x80\x00\x00\x00\x00", "\x0f\x1f\x84\x00\x00\x00\x00\x00", "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00"}

// Nop emits one instruction.
func (a *machine) Nop(most int) int {
	n := min(most, len(nops)-1)
	a.Emit([]byte(nops[n])...)
	return n
}
