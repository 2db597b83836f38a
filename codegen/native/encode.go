package native

import "fmt"

// gpr is a general register by its number in encodings.
type gpr uint8

const (
	rax gpr = iota
	rcx
	rdx
	rbx
	rsp
	rbp
	rsi
	rdi
	r8
	r9
	r10
	r11
	r12
	r13
	r14
	r15
	noReg gpr = 0xff
)

// label is a place in the code; its number is known before its offset.
type label int32

// mem is an operand in memory: [base + index*scale + disp]. If base is noReg, it is an entry of the
// pool of constants. step is 0, or the bytes of the one element that every lane reads.
type mem struct {
	base, index gpr
	scale       uint8
	step        uint8
	disp        int32
}

func at(base gpr, disp int) mem { return mem{base: base, index: noReg, scale: 1, disp: int32(disp)} }

// rm is a register of any kind, or memory.
type rm struct {
	reg   uint8
	inMem bool
	mem
}

func inReg(r uint8) rm { return rm{reg: r} }
func inMem(m mem) rm   { return rm{inMem: true, mem: m} }
func ofGPR(r gpr) rm   { return rm{reg: uint8(r)} }

// args are the operands of a vector instruction; rm is the one that may be memory.
type args struct {
	reg, v uint8 // ModRM.reg and vvvv
	rm     rm
	imm    int16 // -1: none
	k      uint8 // mask of the lanes that are written; 0: all
	zero   bool  // the other lanes become 0; without it they stay unchanged
}

const noImm = -1

// asm is code that is being made.
type asm struct {
	isa    *ISA
	buf    []byte
	labels []int32 // offsets, -1 if not known yet
	fixes  []fix
	pool   pool
	lines  *listing // nil if no listing is needed
	err    error
}

// fix is four bytes that hold the distance from end to a label or to a constant.
type fix struct {
	at, end int32
	to      label
	pool    bool
	kind    uint8 // rel32 …
}

func (a *asm) fail(format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf("codegen/native: "+format, args...)
	}
}

func (a *asm) emit(b ...byte) { a.buf = append(a.buf, b...) }

func (a *asm) emit32(x int32) {
	a.emit(byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
}

func (a *asm) newLabel() label {
	a.labels = append(a.labels, -1)
	return label(len(a.labels) - 1)
}

func (a *asm) place(l label) {
	a.labels[l] = int32(len(a.buf))
	if a.lines != nil {
		a.lines.label(len(a.buf), l)
	}
}

// vector emits an instruction of opTable for vectors of size bytes.
func (a *asm) vector(o op, size int, x args) {
	if a.isa.A64 {
		a.fail("%s is amd64's", opTable[o].name)
		return
	}
	t := &opTable[o]
	begin := len(a.buf)
	switch t.form {
	case formRM, formMR, formRMI, formMRI:
		x.v = 0
	}
	if a.isa.EVEX && t.only != vexOnly {
		a.evex(t, size, x)
	} else if t.only != evexOnly {
		a.vex(t, size, x)
	} else {
		a.fail("%s has no form for %s", t.name, a.isa.Name)
	}
	if a.lines != nil {
		a.lines.vector(begin, t, a.isa.EVEX, size, x)
	}
}

// inv is an inverted bit of a register's number, as prefixes hold it.
func inv(r uint8, bit uint) byte { return ^(r >> bit) & 1 }

func (x *args) memBits() (xBit, bBit byte) {
	if !x.rm.inMem {
		return inv(x.rm.reg, 4), inv(x.rm.reg, 3)
	}
	xBit, bBit = 1, 1
	if x.rm.index != noReg {
		xBit = inv(uint8(x.rm.index), 3)
	}
	if x.rm.base != noReg {
		bBit = inv(uint8(x.rm.base), 3)
	}
	return xBit, bBit
}

func (a *asm) vex(t *opInfo, size int, x args) {
	if t.form == formVMI {
		x.reg, x.v = t.ext, x.reg
	}
	l := byte(0)
	if size == 32 && t.scalar == 0 || t.reg == mask && t.rm == mask && t.form == formRVM {
		l = 1
	}
	if size == 32 && t.code == 0x18 && t.table == m0F38 || size == 32 && t.code == 0x19 && t.table == m0F38 {
		l = 1 // of a broadcast
	}
	xBit, bBit := x.memBits()
	if !x.rm.inMem {
		xBit = 1
	}
	if t.table == m0F && t.vw == 0 && xBit == 1 && bBit == 1 {
		a.emit(0xc5, inv(x.reg, 3)<<7|(^x.v&15)<<3|l<<2|t.prefix)
	} else {
		a.emit(0xc4, inv(x.reg, 3)<<7|xBit<<6|bBit<<5|t.table, t.vw<<7|(^x.v&15)<<3|l<<2|t.prefix)
	}
	a.tail(t, x, 0)
}

func (a *asm) evex(t *opInfo, size int, x args) {
	if t.form == formVMI {
		x.reg, x.v = t.ext, x.reg
	}
	l := map[int]byte{16: 0, 32: 1, 64: 2}[size]
	if t.scalar > 0 && t.scalar < 16 && t.code != 0x18 && t.code != 0x19 && t.code != 0x7c {
		l = 0
	}
	xBit, bBit := x.memBits()
	b := byte(0)
	if x.rm.inMem && x.rm.step > 0 {
		b = 1
	}
	z := byte(0)
	if x.zero {
		z = 1
	}
	a.emit(0x62, inv(x.reg, 3)<<7|xBit<<6|bBit<<5|inv(x.reg, 4)<<4|t.table,
		t.w<<7|(^x.v&15)<<3|4|t.prefix, z<<7|l<<5|b<<4|inv(x.v, 4)<<3|x.k&7)
	a.tail(t, x, t.dispUnit(size, b == 1))
}

// dispUnit is the unit of a one-byte displacement, in bytes.
func (t *opInfo) dispUnit(size int, broadcast bool) int {
	switch {
	case broadcast:
		return int(t.elem)
	case t.scalar > 0:
		return int(t.scalar)
	}
	return size >> t.half
}

// tail emits the opcode, the operand in ModRM.rm and the rest. unit is 1 or 0 if displacements are
// in bytes.
func (a *asm) tail(t *opInfo, x args, unit int) {
	a.emit(t.code)
	after := 0
	if x.imm != noImm || t.form == formRVM4 {
		after = 1
	}
	a.modrm(x.reg, x.rm, unit, after)
	if t.form == formRVM4 {
		a.emit(x.k << 4)
	} else if x.imm != noImm {
		a.emit(byte(x.imm))
	}
}

// modrm emits ModRM, SIB and the displacement. after is the number of bytes of the instruction that
// follow.
func (a *asm) modrm(reg uint8, x rm, unit, after int) {
	reg = reg & 7 << 3
	if !x.inMem {
		a.emit(0xc0 | reg | x.reg&7)
		return
	}
	if x.base == noReg {
		a.emit(reg | 5)
		a.fixes = append(a.fixes, fix{at: int32(len(a.buf)), end: int32(len(a.buf) + 4 + after), to: label(x.disp), pool: true})
		a.emit32(0)
		return
	}
	unit = max(unit, 1)
	base := uint8(x.base) & 7
	mod := byte(2)
	switch d := int(x.disp); {
	case d == 0 && base != 5:
		mod = 0
	case d%unit == 0 && d/unit >= -128 && d/unit <= 127:
		mod = 1
	}
	if x.index == noReg && base != 4 {
		a.emit(mod<<6 | reg | base)
	} else {
		index, scale := byte(4), byte(0)
		if x.index != noReg {
			index, scale = uint8(x.index)&7, map[uint8]byte{1: 0, 2: 1, 4: 2, 8: 3}[x.scale]
		}
		a.emit(mod<<6|reg|4, scale<<6|index<<3|base)
	}
	switch mod {
	case 1:
		a.emit(byte(int(x.disp) / unit))
	case 2:
		a.emit32(x.disp)
	}
}

// finish places the constants behind the code and fills in all distances.
func (a *asm) finish() ([]byte, error) {
	for len(a.buf)%64 != 0 {
		a.emit(a.isa.trap())
	}
	base := len(a.buf)
	a.buf = append(a.buf, a.pool.bytes...)
	for _, f := range a.fixes {
		to := int32(base) + int32(f.to)
		if !f.pool {
			if to = a.labels[f.to]; to < 0 {
				a.fail("a label was never placed")
			}
		}
		d := to - f.end
		if f.kind != rel32 {
			a.settleA64(f, d)
			continue
		}
		for i := range 4 {
			a.buf[int(f.at)+i] = byte(d >> (8 * i))
		}
	}
	return a.buf, a.err
}

// pool holds constants, each once.
type pool struct {
	bytes []byte
	have  map[constant]int32
}

// constant is count copies of an element of size bytes.
type constant struct {
	bits  uint64
	size  uint8
	count uint8
}

// constant returns the memory of a constant.
func (a *asm) constant(c constant) mem {
	p := &a.pool
	if p.have == nil {
		p.have = map[constant]int32{}
	}
	pos, ok := p.have[c]
	if !ok {
		for len(p.bytes)%(int(c.size)*int(c.count)) != 0 {
			p.bytes = append(p.bytes, 0)
		}
		pos = int32(len(p.bytes))
		for range c.count {
			for i := range c.size {
				p.bytes = append(p.bytes, byte(c.bits>>(8*i)))
			}
		}
		p.have[c] = pos
	}
	return mem{base: noReg, index: noReg, scale: 1, disp: pos}
}

// data puts bytes into the pool, at a multiple of 64, and returns their memory.
func (a *asm) data(b []byte) mem {
	p := &a.pool
	for len(p.bytes)%64 != 0 {
		p.bytes = append(p.bytes, 0)
	}
	pos := int32(len(p.bytes))
	p.bytes = append(p.bytes, b...)
	return mem{base: noReg, index: noReg, scale: 1, disp: pos}
}
