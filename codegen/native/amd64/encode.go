package amd64

import "github.com/millrace-go/millrace/codegen/native"

// args are the operands of a vector instruction; rm is the one that may be memory.
type args struct {
	reg, v uint8 // ModRM.reg and vvvv
	RM     native.RM
	imm    int16 // -1: none
	k      uint8 // mask of the lanes that are written; 0: all
	zero   bool  // the other lanes become 0; without it they stay unchanged
}

// vector emits an instruction of opTable for vectors of size bytes.
func (a *machine) vector(o native.Op, size int, x args) {
	t := &opTable[o]
	begin := len(a.Buf)
	switch t.form {
	case formRM, formMR, formRMI, formMRI:
		x.v = 0
	}
	if a.evex && t.only != vexOnly {
		a.encodeEVEX(t, size, x)
	} else if t.only != evexOnly {
		a.encodeVEX(t, size, x)
	} else {
		a.Fail("instruction %s has no encoding for %s", t.name, a.ISA.Name)
	}
	if a.Lines != nil {
		listVector(a.Lines, begin, t, a.evex, size, x)
	}
}

// inv is an inverted bit of a register's number, as prefixes hold it.
func inv(r uint8, bit uint) byte { return ^(r >> bit) & 1 }

func (x *args) memBits() (xBit, bBit byte) {
	if !x.RM.InMem {
		return inv(x.RM.Reg, 4), inv(x.RM.Reg, 3)
	}
	xBit, bBit = 1, 1
	if x.RM.Index != native.NoReg {
		xBit = inv(uint8(x.RM.Index), 3)
	}
	if x.RM.Base != native.NoReg {
		bBit = inv(uint8(x.RM.Base), 3)
	}
	return xBit, bBit
}

func (a *machine) encodeVEX(t *opInfo, size int, x args) {
	if t.form == formVMI {
		x.reg, x.v = t.ext, x.reg
	}
	l := byte(0)
	if size == 32 && t.scalar == 0 || t.reg == mask && t.RM == mask && t.form == formRVM {
		l = 1
	}
	if size == 32 && t.code == 0x18 && t.table == m0F38 || size == 32 && t.code == 0x19 && t.table == m0F38 {
		l = 1 // of a broadcast
	}
	xBit, bBit := x.memBits()
	if !x.RM.InMem {
		xBit = 1
	}
	if t.table == m0F && t.vw == 0 && xBit == 1 && bBit == 1 {
		a.Emit(0xc5, inv(x.reg, 3)<<7|(^x.v&15)<<3|l<<2|t.prefix)
	} else {
		a.Emit(0xc4, inv(x.reg, 3)<<7|xBit<<6|bBit<<5|t.table, t.vw<<7|(^x.v&15)<<3|l<<2|t.prefix)
	}
	a.operands(t, x, 0)
}

func (a *machine) encodeEVEX(t *opInfo, size int, x args) {
	if t.form == formVMI {
		x.reg, x.v = t.ext, x.reg
	}
	l := map[int]byte{16: 0, 32: 1, 64: 2}[size]
	if t.scalar > 0 && t.scalar < 16 && t.code != 0x18 && t.code != 0x19 && t.code != 0x7c {
		l = 0
	}
	xBit, bBit := x.memBits()
	b := byte(0)
	if x.RM.InMem && x.RM.Step > 0 {
		b = 1
	}
	z := byte(0)
	if x.zero {
		z = 1
	}
	a.Emit(0x62, inv(x.reg, 3)<<7|xBit<<6|bBit<<5|inv(x.reg, 4)<<4|t.table,
		t.w<<7|(^x.v&15)<<3|4|t.prefix, z<<7|l<<5|b<<4|inv(x.v, 4)<<3|x.k&7)
	a.operands(t, x, t.dispUnit(size, b == 1))
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

// operands emits the opcode, the operand in ModRM.rm and the rest. unit is 1 or 0 if displacements are
// in bytes.
func (a *machine) operands(t *opInfo, x args, unit int) {
	a.Emit(t.code)
	after := 0
	if x.imm != native.NoImm || t.form == formRVM4 {
		after = 1
	}
	a.modrm(x.reg, x.RM, unit, after)
	if t.form == formRVM4 {
		a.Emit(x.k << 4)
	} else if x.imm != native.NoImm {
		a.Emit(byte(x.imm))
	}
}

// modrm emits ModRM, SIB and the displacement. after is the number of bytes of the instruction that
// follow.
func (a *machine) modrm(reg uint8, x native.RM, unit, after int) {
	reg = reg & 7 << 3
	if !x.InMem {
		a.Emit(0xc0 | reg | x.Reg&7)
		return
	}
	if x.Base == native.NoReg {
		a.Emit(reg | 5)
		a.Fixes = append(a.Fixes, native.Fix{At: int32(len(a.Buf)), End: int32(len(a.Buf) + 4 + after), To: native.Label(x.Disp), Pool: true})
		a.Emit32(0)
		return
	}
	unit = max(unit, 1)
	base := uint8(x.Base) & 7
	mod := byte(2)
	switch d := int(x.Disp); {
	case d == 0 && base != 5:
		mod = 0
	case d%unit == 0 && d/unit >= -128 && d/unit <= 127:
		mod = 1
	}
	if x.Index == native.NoReg && base != 4 {
		a.Emit(mod<<6 | reg | base)
	} else {
		index, scale := byte(4), byte(0)
		if x.Index != native.NoReg {
			index, scale = uint8(x.Index)&7, map[uint8]byte{1: 0, 2: 1, 4: 2, 8: 3}[x.Scale]
		}
		a.Emit(mod<<6|reg|4, scale<<6|index<<3|base)
	}
	switch mod {
	case 1:
		a.Emit(byte(int(x.Disp) / unit))
	case 2:
		a.Emit32(x.Disp)
	}
}

// Settle fills in the four bytes of a distance.
func (a *machine) Settle(f native.Fix, d int32) {
	for i := range 4 {
		a.Buf[int(f.At)+i] = byte(d >> (8 * i))
	}
}
