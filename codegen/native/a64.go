package native

import (
	"fmt"
	"math/bits"
)

// Instructions of arm64 on general registers. The package uses amd64's names: gpr n is xn, so rdi,
// which has the frame, is x7. x16 and x17 are scratch for other parts of an amd64 instruction:
// addresses, operands in memory, large constants. x18, x28 to x30 and the stack pointer are never
// changed.
const (
	x16 gpr = 16
	x17 gpr = 17
	xzr gpr = 31
	v30     = 30 // scratch vector registers, like x16 and x17
	v31     = 31
)

const nopA64 = -0x2afcdfe1 // 0xd503201f

// The bits of an instruction that hold the distance to a label.
const (
	rel32 uint8 = iota // amd64's four bytes
	rel26              // b
	rel19              // b.cond
	rel21              // adr
)

// xName and wName are registers with their 64-bit and 32-bit names. They are formatted only when a
// listing is made, since most code needs none.
type (
	xName gpr
	wName gpr
)

func (r xName) String() string { return spelled('x', gpr(r)) }
func (r wName) String() string { return spelled('w', gpr(r)) }

func spelled(kind byte, r gpr) string {
	if r == xzr {
		return string(kind) + "zr"
	}
	return fmt.Sprintf("%c%d", kind, uint8(r))
}

// word emits an instruction.
func (a *asm) word(w uint32, format string, args ...any) {
	begin := len(a.buf)
	a.emit32(int32(w))
	a.text(begin, format, args...)
}

// toLabel emits an instruction with a distance that finish fills in.
func (a *asm) toLabel(w uint32, kind uint8, to label, pool bool, format string, args ...any) {
	a.fixes = append(a.fixes, fix{at: int32(len(a.buf)), end: int32(len(a.buf)), to: to, pool: pool, kind: kind})
	a.word(w, format, args...)
}

// settleA64 puts a distance into the instruction at f.at.
func (a *asm) settleA64(f fix, d int32) {
	w := uint32(0)
	fits := func(bits int) bool { return d>>(bits-1) == 0 || d>>(bits-1) == -1 }
	ok := false
	switch f.kind {
	case rel26:
		ok, w = fits(28), uint32(d>>2)&(1<<26-1)
	case rel19:
		ok, w = fits(21), uint32(d>>2)&(1<<19-1)<<5
	case rel21:
		ok, w = fits(21), uint32(d)&3<<29|uint32(d>>2)&(1<<19-1)<<5
	}
	if !ok {
		a.fail("a distance of %d bytes is too far", d)
		return
	}
	for i := range 4 {
		a.buf[int(f.at)+i] |= byte(w >> (8 * i))
	}
}

// constA64 sets a register to a constant.
func (a *asm) constA64(r gpr, x int64) {
	w, op := uint64(x), uint32(0xd2800000)
	if x < 0 {
		w, op = ^w, 0x92800000
	}
	a.word(op|uint32(w&0xffff)<<5|uint32(r), "mov %s, #%d", xName(r), int64(uint64(x)&^0xffff_ffff_ffff_0000|map[bool]uint64{true: ^uint64(0xffff)}[x < 0]))
	for h := 1; h < 4; h++ {
		if part := uint64(x) >> (16 * h) & 0xffff; w>>(16*h)&0xffff != 0 {
			a.word(0xf2800000|uint32(h)<<21|uint32(part)<<5|uint32(r), "movk %s, #%d, lsl #%d", xName(r), part, 16*h)
		}
	}
}

// addConst is d = n + x.
func (a *asm) addConst(d, n gpr, x int) {
	switch {
	case x == 0 && d == n:
	case x == 0:
		a.copy(d, n)
	case x > -4096 && x < 4096:
		a.addSub12(d, n, x)
	default:
		a.constA64(x17, int64(x))
		a.word(0x8b000000|uint32(x17)<<16|uint32(n)<<5|uint32(d), "add %s, %s, x17", xName(d), xName(n))
	}
}

func (a *asm) addSub12(d, n gpr, x int) {
	if x < 0 {
		a.word(0xd1000000|uint32(-x)<<10|uint32(n)<<5|uint32(d), "sub %s, %s, #%d", xName(d), xName(n), -x)
		return
	}
	a.word(0x91000000|uint32(x)<<10|uint32(n)<<5|uint32(d), "add %s, %s, #%d", xName(d), xName(n), x)
}

// addIndexed is d = base + index*scale.
func (a *asm) addIndexed(d, base, index gpr, scale uint8) {
	by := bits.TrailingZeros8(scale)
	text := "add %s, %s, %s, lsl #%d"
	if by == 0 {
		text = "add %s, %s, %s%.0d"
	}
	a.word(0x8b000000|uint32(index)<<16|uint32(by)<<10|uint32(base)<<5|uint32(d), text, xName(d), xName(base), xName(index), by)
}

// adr is the address of a constant.
func (a *asm) adr(d gpr, pool int32) {
	a.toLabel(0x10000000|uint32(d), rel21, label(pool), true, "adr %s, C%d", xName(d), pool)
}

// reach returns a register and an offset from it that loads and stores of size bytes can use. It may
// change x16, and x17 before that.
func (a *asm) reach(m mem, size int) (base gpr, off int) {
	if m.base == noReg {
		a.adr(x16, m.disp)
		return x16, 0
	}
	base, off = m.base, int(m.disp)
	if m.index != noReg {
		a.addIndexed(x16, base, m.index, m.scale)
		base = x16
	}
	if off >= 0 && off%size == 0 && off/size < 4096 || off >= -256 && off < 256 {
		return base, off
	}
	a.addConst(x16, base, off)
	return x16, 0
}

// moveA64 is a load or a store of a general register, or of a vector's lowest bytes. opc is 0 to
// store, 1 to load, 2 to extend the sign to 64 bits, 3 to 32.
func (a *asm) moveA64(size int, vector bool, opc uint32, r uint8, base gpr, off int) {
	scale := uint32(bits.TrailingZeros(uint(size)))
	w := scale&3<<30 | opc<<22 | uint32(base)<<5 | uint32(r)
	if vector {
		w |= 1 << 26
		if size == 16 {
			w |= 2 << 22
		}
	}
	name := map[uint32]string{0: "st", 1: "ld", 2: "ld", 3: "ld"}[opc]
	tail := "r"
	if off >= 0 && off%size == 0 && off/size < 4096 {
		w |= 0x39000000 | uint32(off/size)<<10
	} else {
		w |= 0x38000000 | uint32(off)&0x1ff<<12
		tail = "ur"
	}
	if a.lines == nil {
		a.emit32(int32(w))
		return
	}
	if opc > 1 {
		tail += "s"
	}
	reg := spelled('w', gpr(r))
	switch {
	case vector:
		reg = fmt.Sprintf("%c%d", "bhsdq"[scale], r)
	case size == 8 || opc == 2:
		reg = spelled('x', gpr(r))
	}
	if !vector {
		tail += map[int]string{1: "b", 2: "h"}[size]
	}
	if opc == 2 && size == 4 {
		tail += "w"
	}
	where := "[" + spelled('x', base)
	if off != 0 {
		where += fmt.Sprintf(", #%d", off)
	}
	a.word(w, "%s%s %s, %s]", name, tail, reg, where)
}

func (a *asm) loadA64(size int, opc uint32, r gpr, m mem) {
	base, off := a.reach(m, size)
	a.moveA64(size, false, opc, uint8(r), base, off)
}

// arithA64 are the instructions on three registers.
var arithA64 = map[arith]struct {
	name string
	code uint32
}{add: {"adds", 0xab000000}, and: {"ands", 0xea000000}, sub: {"subs", 0xeb000000}, xor: {"eor", 0xca000000}, cmp: {"cmp", 0xeb000000}}

// regsA64 is d = n o m; cmp sets the flags only.
func (a *asm) regsA64(o arith, d, n, m gpr) {
	t := arithA64[o]
	if o == cmp {
		a.word(t.code|uint32(m)<<16|uint32(n)<<5|uint32(xzr), "cmp %s, %s", xName(n), xName(m))
		return
	}
	a.word(t.code|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s %s, %s, %s", t.name, xName(d), xName(n), xName(m))
}

func (a *asm) opA64(o arith, r gpr, x rm) {
	m := gpr(x.reg)
	if x.inMem {
		m = x17
		a.loadA64(8, 1, m, x.mem)
	}
	a.regsA64(o, r, r, m)
}

func (a *asm) opToA64(o arith, m mem, r gpr) {
	base, off := a.reach(m, 8)
	a.moveA64(8, false, 1, uint8(x17), base, off)
	a.regsA64(o, x17, x17, r)
	a.moveA64(8, false, 0, uint8(x17), base, off)
}

func (a *asm) opImmA64(o arith, x rm, imm int) {
	if !x.inMem {
		a.immA64(o, gpr(x.reg), imm)
		return
	}
	base, off := a.reach(x.mem, 8)
	a.moveA64(8, false, 1, uint8(x17), base, off)
	if o == cmp {
		a.immA64(o, x17, imm)
		return
	}
	if imm <= -4096 || imm >= 4096 {
		a.fail("%v of memory and %d", arithNames[o], imm) // x16 has the address
	}
	a.immA64(o, x17, imm)
	a.moveA64(8, false, 0, uint8(x17), base, off)
}

// immA64 is r = r o imm. It may change x16.
func (a *asm) immA64(o arith, r gpr, imm int) {
	if o != add && o != sub && o != cmp || imm <= -4096 || imm >= 4096 {
		a.constA64(x16, int64(imm))
		a.regsA64(o, r, r, x16)
		return
	}
	plus := o == add
	if imm < 0 {
		plus, imm = !plus, -imm
	}
	w, name := uint32(0xf1000000), "subs"
	if plus {
		w, name = 0xb1000000, "adds"
	}
	w |= uint32(imm)<<10 | uint32(r)<<5
	if o != cmp {
		a.word(w|uint32(r), "%s %s, %s, #%d", name, xName(r), xName(r), imm)
		return
	}
	name = "cmp"
	if plus {
		name = "cmn"
	}
	a.word(w|uint32(xzr), "%s %s, #%d", name, xName(r), imm)
}

func (a *asm) imulA64(r gpr, x rm) {
	m := gpr(x.reg)
	if x.inMem {
		m = x17
		a.loadA64(8, 1, m, x.mem)
	}
	a.word(0x9b007c00|uint32(m)<<16|uint32(r)<<5|uint32(r), "mul %s, %s, %s", xName(r), xName(r), xName(m))
}

func (a *asm) shiftA64(kind uint8, wide bool, r gpr, by int) {
	top, w := 63, uint32(0xd3400000)
	if !wide {
		top, w = 31, 0x53000000
	}
	rotate, last, text := by, top, "lsr"
	switch kind {
	case shl:
		rotate, last, text = -by&top, top-by, "lsl"
	case sar:
		w, text = w&^0x40000000, "asr"
		if wide {
			w = 0x93400000
		} else {
			w = 0x13000000
		}
	}
	name := spelled("wx"[top>>5], r)
	a.word(w|uint32(rotate)<<16|uint32(last)<<10|uint32(r)<<5|uint32(r), "%s %s, %s, #%d", text, name, name, by)
}

func (a *asm) leaA64(r gpr, m mem) {
	switch {
	case m.base == noReg:
		a.adr(r, m.disp)
	case m.index != noReg:
		a.addIndexed(r, m.base, m.index, m.scale)
		a.addConst(r, r, int(m.disp))
	default:
		a.addConst(r, m.base, int(m.disp))
	}
}

// divideA64 is d = n / m, of 64 bits. It gives 0 if m is 0.
func (a *asm) divideA64(signed bool, d, n, m gpr) {
	w, name := uint32(0x9ac00800), "udiv"
	if signed {
		w, name = 0x9ac00c00, "sdiv"
	}
	a.word(w|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s %s, %s, %s", name, xName(d), xName(n), xName(m))
}

// lessProduct is d = s - n*m.
func (a *asm) lessProduct(d, n, m, s gpr) {
	a.word(0x9b008000|uint32(m)<<16|uint32(s)<<10|uint32(n)<<5|uint32(d), "msub %s, %s, %s, %s", xName(d), xName(n), xName(m), xName(s))
}

// condsA64 maps amd64's conditions to arm64's.
var condsA64 = map[cond]struct {
	code uint32
	name string
}{
	below: {3, "cc"}, aboveEqual: {2, "cs"}, equal: {0, "eq"}, notEqual: {1, "ne"},
	less: {11, "lt"}, greaterEqual: {10, "ge"}, lessEqual: {13, "le"}, greater: {12, "gt"},
}

func (a *asm) jumpIfA64(c cond, l label) {
	t := condsA64[c]
	a.toLabel(0x54000000|t.code, rel19, l, false, "b.%s L%d", t.name, l)
}

func (a *asm) loadSizeA64(size int, signed bool, r gpr, m mem) {
	opc := uint32(1)
	switch {
	case signed && size == 4:
		opc = 2
	case signed && size < 4:
		opc = 3
	}
	a.loadA64(size, opc, r, m)
}
