package arm64

import (
	"fmt"
	"math/bits"

	"github.com/millrace-go/millrace/codegen/native"
)

// Instructions of arm64 on general registers. The package uses amd64's names: gpr n is xn, so rdi,
// which has the frame, is x7. x16 and x17 are scratch for other parts of an amd64 instruction:
// addresses, operands in memory, large constants. x18, x28 to x30 and the stack pointer are never
// changed.
const (
	x16 native.GPR = 16
	x17 native.GPR = 17
	xzr native.GPR = 31
	v30            = 30 // scratch vector registers, like x16 and x17
	v31            = 31
)

const nopWord = -0x2afcdfe1 // 0xd503201f

// The bits of an instruction that hold the distance to a label.
const (
	rel26 uint8 = iota // b
	rel19              // b.cond
	rel21              // adr
)

// xName and wName are registers with their 64-bit and 32-bit names. They are formatted only when a
// listing is made, since most code needs none.
type (
	xName native.GPR
	wName native.GPR
)

func (r xName) String() string { return spelled('x', native.GPR(r)) }
func (r wName) String() string { return spelled('w', native.GPR(r)) }

func spelled(kind byte, r native.GPR) string {
	if r == xzr {
		return string(kind) + "zr"
	}
	return fmt.Sprintf("%c%d", kind, uint8(r))
}

// word emits an instruction.
func (a *machine) word(w uint32, format string, args ...any) {
	begin := len(a.Buf)
	a.Emit32(int32(w))
	a.Text(begin, format, args...)
}

// toLabel emits an instruction with a distance that finish fills in.
func (a *machine) toLabel(w uint32, kind uint8, to native.Label, pool bool, format string, args ...any) {
	a.Fixes = append(a.Fixes, native.Fix{At: int32(len(a.Buf)), End: int32(len(a.Buf)), To: to, Pool: pool, Kind: kind})
	a.word(w, format, args...)
}

// Settle puts a distance into the instruction at f.at.
func (a *machine) Settle(f native.Fix, d int32) {
	w := uint32(0)
	fits := func(bits int) bool { return d>>(bits-1) == 0 || d>>(bits-1) == -1 }
	ok := false
	switch f.Kind {
	case rel26:
		ok, w = fits(28), uint32(d>>2)&(1<<26-1)
	case rel19:
		ok, w = fits(21), uint32(d>>2)&(1<<19-1)<<5
	case rel21:
		ok, w = fits(21), uint32(d)&3<<29|uint32(d>>2)&(1<<19-1)<<5
	}
	if !ok {
		a.Fail("a jump or an address is %d bytes away, which is too far", d)
		return
	}
	for i := range 4 {
		a.Buf[int(f.At)+i] |= byte(w >> (8 * i))
	}
}

// setConst sets a register to a constant.
func (a *machine) setConst(r native.GPR, x int64) {
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
func (a *machine) addConst(d, n native.GPR, x int) {
	switch {
	case x == 0 && d == n:
	case x == 0:
		a.Copy(d, n)
	case x > -4096 && x < 4096:
		a.addSub12(d, n, x)
	default:
		a.setConst(x17, int64(x))
		a.word(0x8b000000|uint32(x17)<<16|uint32(n)<<5|uint32(d), "add %s, %s, x17", xName(d), xName(n))
	}
}

func (a *machine) addSub12(d, n native.GPR, x int) {
	if x < 0 {
		a.word(0xd1000000|uint32(-x)<<10|uint32(n)<<5|uint32(d), "sub %s, %s, #%d", xName(d), xName(n), -x)
		return
	}
	a.word(0x91000000|uint32(x)<<10|uint32(n)<<5|uint32(d), "add %s, %s, #%d", xName(d), xName(n), x)
}

// addIndexed is d = base + index*scale.
func (a *machine) addIndexed(d, base, index native.GPR, scale uint8) {
	by := bits.TrailingZeros8(scale)
	text := "add %s, %s, %s, lsl #%d"
	if by == 0 {
		text = "add %s, %s, %s%.0d"
	}
	a.word(0x8b000000|uint32(index)<<16|uint32(by)<<10|uint32(base)<<5|uint32(d), text, xName(d), xName(base), xName(index), by)
}

// adr is the address of a constant.
func (a *machine) adr(d native.GPR, pool int32) {
	a.toLabel(0x10000000|uint32(d), rel21, native.Label(pool), true, "adr %s, C%d", xName(d), pool)
}

// reach returns a register and an offset from it that loads and stores of size bytes can use. It may
// change x16, and x17 before that.
func (a *machine) reach(m native.Mem, size int) (base native.GPR, off int) {
	if m.Base == native.NoReg {
		a.adr(x16, m.Disp)
		return x16, 0
	}
	base, off = m.Base, int(m.Disp)
	if m.Index != native.NoReg {
		a.addIndexed(x16, base, m.Index, m.Scale)
		base = x16
	}
	if off >= 0 && off%size == 0 && off/size < 4096 || off >= -256 && off < 256 {
		return base, off
	}
	a.addConst(x16, base, off)
	return x16, 0
}

// move is a load or a store of a general register, or of a vector's lowest bytes. opc is 0 to
// store, 1 to load, 2 to extend the sign to 64 bits, 3 to 32.
func (a *machine) move(size int, vector bool, opc uint32, r uint8, base native.GPR, off int) {
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
	if a.Lines == nil {
		a.Emit32(int32(w))
		return
	}
	if opc > 1 {
		tail += "s"
	}
	reg := spelled('w', native.GPR(r))
	switch {
	case vector:
		reg = fmt.Sprintf("%c%d", "bhsdq"[scale], r)
	case size == 8 || opc == 2:
		reg = spelled('x', native.GPR(r))
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

func (a *machine) transfer(size int, opc uint32, r native.GPR, m native.Mem) {
	base, off := a.reach(m, size)
	a.move(size, false, opc, uint8(r), base, off)
}

// arithOps are the instructions on three registers.
var arithOps = map[native.Arith]struct {
	name string
	code uint32
}{native.Add: {"adds", 0xab000000}, native.And: {"ands", 0xea000000}, native.Sub: {"subs", 0xeb000000}, native.Xor: {"eor", 0xca000000}, native.Cmp: {"cmp", 0xeb000000}}

// regs3 is d = n o m; cmp sets the flags only.
func (a *machine) regs3(o native.Arith, d, n, m native.GPR) {
	t := arithOps[o]
	if o == native.Cmp {
		a.word(t.code|uint32(m)<<16|uint32(n)<<5|uint32(xzr), "cmp %s, %s", xName(n), xName(m))
		return
	}
	a.word(t.code|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s %s, %s, %s", t.name, xName(d), xName(n), xName(m))
}

func (a *machine) Op(o native.Arith, r native.GPR, x native.RM) {
	m := native.GPR(x.Reg)
	if x.InMem {
		m = x17
		a.transfer(8, 1, m, x.Mem)
	}
	a.regs3(o, r, r, m)
}

func (a *machine) OpTo(o native.Arith, m native.Mem, r native.GPR) {
	base, off := a.reach(m, 8)
	a.move(8, false, 1, uint8(x17), base, off)
	a.regs3(o, x17, x17, r)
	a.move(8, false, 0, uint8(x17), base, off)
}

func (a *machine) OpImm(o native.Arith, x native.RM, imm int) {
	if !x.InMem {
		a.opConst(o, native.GPR(x.Reg), imm)
		return
	}
	base, off := a.reach(x.Mem, 8)
	a.move(8, false, 1, uint8(x17), base, off)
	if o == native.Cmp {
		a.opConst(o, x17, imm)
		return
	}
	if imm <= -4096 || imm >= 4096 {
		a.Fail("%v of memory cannot take the constant %d", native.ArithNames[o], imm) // x16 has the address
	}
	a.opConst(o, x17, imm)
	a.move(8, false, 0, uint8(x17), base, off)
}

// opConst is r = r o imm. It may change x16.
func (a *machine) opConst(o native.Arith, r native.GPR, imm int) {
	if o != native.Add && o != native.Sub && o != native.Cmp || imm <= -4096 || imm >= 4096 {
		a.setConst(x16, int64(imm))
		a.regs3(o, r, r, x16)
		return
	}
	plus := o == native.Add
	if imm < 0 {
		plus, imm = !plus, -imm
	}
	w, name := uint32(0xf1000000), "subs"
	if plus {
		w, name = 0xb1000000, "adds"
	}
	w |= uint32(imm)<<10 | uint32(r)<<5
	if o != native.Cmp {
		a.word(w|uint32(r), "%s %s, %s, #%d", name, xName(r), xName(r), imm)
		return
	}
	name = "cmp"
	if plus {
		name = "cmn"
	}
	a.word(w|uint32(xzr), "%s %s, #%d", name, xName(r), imm)
}

func (a *machine) Imul(r native.GPR, x native.RM) {
	m := native.GPR(x.Reg)
	if x.InMem {
		m = x17
		a.transfer(8, 1, m, x.Mem)
	}
	a.word(0x9b007c00|uint32(m)<<16|uint32(r)<<5|uint32(r), "mul %s, %s, %s", xName(r), xName(r), xName(m))
}

func (a *machine) Shift(kind uint8, wide bool, r native.GPR, by int) {
	top, w := 63, uint32(0xd3400000)
	if !wide {
		top, w = 31, 0x53000000
	}
	rotate, last, text := by, top, "lsr"
	switch kind {
	case native.Shl:
		rotate, last, text = -by&top, top-by, "lsl"
	case native.Sar:
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

func (a *machine) Lea(r native.GPR, m native.Mem) {
	switch {
	case m.Base == native.NoReg:
		a.adr(r, m.Disp)
	case m.Index != native.NoReg:
		a.addIndexed(r, m.Base, m.Index, m.Scale)
		a.addConst(r, r, int(m.Disp))
	default:
		a.addConst(r, m.Base, int(m.Disp))
	}
}

// divide is d = n / m, of 64 bits. It gives 0 if m is 0.
func (a *machine) divide(signed bool, d, n, m native.GPR) {
	w, name := uint32(0x9ac00800), "udiv"
	if signed {
		w, name = 0x9ac00c00, "sdiv"
	}
	a.word(w|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s %s, %s, %s", name, xName(d), xName(n), xName(m))
}

// lessProduct is d = s - n*m.
func (a *machine) lessProduct(d, n, m, s native.GPR) {
	a.word(0x9b008000|uint32(m)<<16|uint32(s)<<10|uint32(n)<<5|uint32(d), "msub %s, %s, %s, %s", xName(d), xName(n), xName(m), xName(s))
}

// conds maps amd64's conditions to arm64's.
var conds = map[native.Cond]struct {
	code uint32
	name string
}{
	native.Below: {3, "cc"}, native.AboveEqual: {2, "cs"}, native.Equal: {0, "eq"}, native.NotEqual: {1, "ne"},
	native.Less: {11, "lt"}, native.GreaterEqual: {10, "ge"}, native.LessEqual: {13, "le"}, native.Greater: {12, "gt"},
}

func (a *machine) JumpIf(c native.Cond, l native.Label) {
	t := conds[c]
	a.toLabel(0x54000000|t.code, rel19, l, false, "b.%s L%d", t.name, l)
}

func (a *machine) LoadSize(size int, signed bool, r native.GPR, m native.Mem) {
	opc := uint32(1)
	switch {
	case signed && size == 4:
		opc = 2
	case signed && size < 4:
		opc = 3
	}
	a.transfer(size, opc, r, m)
}

func (a *machine) Load(r native.GPR, m native.Mem)   { a.transfer(8, 1, r, m) }
func (a *machine) Load32(r native.GPR, m native.Mem) { a.transfer(4, 1, r, m) }
func (a *machine) Store(m native.Mem, r native.GPR)  { a.transfer(8, 0, r, m) }
func (a *machine) Clear(r native.GPR)                { a.setConst(r, 0) }
func (a *machine) Set(r native.GPR, imm uint32)      { a.setConst(r, int64(imm)) }
func (a *machine) Ret()                              { a.word(0xd65f03c0, "ret") }

func (a *machine) StoreSize(size int, m native.Mem, r native.GPR) { a.transfer(size, 0, r, m) }

func (a *machine) Copy(to, from native.GPR) {
	a.word(0xaa0003e0|uint32(from)<<16|uint32(to), "mov %s, %s", xName(to), xName(from))
}

func (a *machine) Negate(r native.GPR) {
	a.word(0xcb0003e0|uint32(r)<<16|uint32(r), "neg %s, %s", xName(r), xName(r))
}

func (a *machine) LeaLabel(r native.GPR, l native.Label) {
	a.toLabel(0x10000000|uint32(r), rel21, l, false, "adr %s, L%d", xName(r), l)
}

func (a *machine) Jump(l native.Label) { a.toLabel(0x14000000, rel26, l, false, "b L%d", l) }

func (a *machine) JumpTo(m native.Mem) {
	a.transfer(8, 1, x17, m)
	a.word(0xd61f0000|uint32(x17)<<5, "br x17")
}

// Nop is always one word.
func (a *machine) Nop(int) int {
	a.Emit32(nopWord)
	return 4
}

// Prefetch does nothing: no prefetch has ever made arm64 code faster.
func (a *machine) Prefetch(native.Mem, bool) {}

// Fence has nothing to do, since no store bypasses the caches.
func (a *machine) Fence() {}
