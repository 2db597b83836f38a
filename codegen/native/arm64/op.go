package arm64

import (
	"fmt"
	"math/bits"

	"github.com/millrace-go/millrace/codegen/native"
)

// Each NEON instruction is an entry of this table: its word with all operands 0, and its lanes.
// Many entries are for four lanes of 32 bits; with wide added to their number they are for two
// lanes of 64 bits.

// shape says where the operands go.
type shape uint8

const (
	shape3    shape = iota // d, n, m
	shape2                 // d, n
	shapeTied              // d, n, m, where d is an operand as well
	shapeL                 // d, n and a distance to the left
	shapeR                 // to the right
	shapeLane              // d, n and a lane of m, where d is an operand as well
)

type rowInfo struct {
	name  string
	code  uint32
	shape shape
	d, n  string // arrangements of the result and of operands
	pair  bool   // the wide form exists
}

// wide selects lanes of 64 bits.
const wide native.Op = 1 << 15

const (
	_ native.Op = iota
	nFadd
	nFsub
	nFmul
	nFdiv
	nFmla
	nFmlaBy
	nFsqrt
	nFabs
	nFneg
	nFrintn
	nFrintm
	nFrintp
	nFrintz
	nFcmeq
	nFcmge
	nFcmgt
	nScvtf
	nUcvtf
	nFcvtzs
	nFcvtzu
	nAdd
	nSub
	nMul
	nMlaBy
	nNeg
	nAbs
	nSmin
	nSmax
	nUmin
	nUmax
	nSshl
	nUshl
	nShl
	nUshr
	nSshr
	nCmeq
	nCmge
	nCmgt
	nCmhi
	nCmhs
	nAnd
	nOrr
	nEor
	nMvn
	nBsl
	nRev64
	nUaddlp
	nUmull
	nUmull2
	nUzp2
	nZip1
	nZip2
	nSxtl
	nUxtl
	nSxtl16
	nUxtl16
	nSxtl8
	nUxtl8
	nXtn
	nXtn16
	nXtn8
	nFcvtl
	nFcvtn
	numRows
)

// table has the entries; those with two widths are given for 32-bit lanes.
var table = [numRows]rowInfo{
	nFadd:   pairOf("fadd", 0x4e20d400, shape3),
	nFsub:   pairOf("fsub", 0x4ea0d400, shape3),
	nFmul:   pairOf("fmul", 0x6e20dc00, shape3),
	nFdiv:   pairOf("fdiv", 0x6e20fc00, shape3),
	nFmla:   pairOf("fmla", 0x4e20cc00, shapeTied),
	nFmlaBy: pairOf("fmla", 0x4f801000, shapeLane),
	nFsqrt:  pairOf("fsqrt", 0x6ea1f800, shape2),
	nFabs:   pairOf("fabs", 0x4ea0f800, shape2),
	nFneg:   pairOf("fneg", 0x6ea0f800, shape2),
	nFrintn: pairOf("frintn", 0x4e218800, shape2),
	nFrintm: pairOf("frintm", 0x4e219800, shape2),
	nFrintp: pairOf("frintp", 0x4ea18800, shape2),
	nFrintz: pairOf("frintz", 0x4ea19800, shape2),
	nFcmeq:  pairOf("fcmeq", 0x4e20e400, shape3),
	nFcmge:  pairOf("fcmge", 0x6e20e400, shape3),
	nFcmgt:  pairOf("fcmgt", 0x6ea0e400, shape3),
	nScvtf:  pairOf("scvtf", 0x4e21d800, shape2),
	nUcvtf:  pairOf("ucvtf", 0x6e21d800, shape2),
	nFcvtzs: pairOf("fcvtzs", 0x4ea1b800, shape2),
	nFcvtzu: pairOf("fcvtzu", 0x6ea1b800, shape2),
	nAdd:    pairOf("add", 0x4ea08400, shape3),
	nSub:    pairOf("sub", 0x6ea08400, shape3),
	nMul:    rowOf("mul", 0x4ea09c00, shape3, "4s", "4s"),
	nMlaBy:  rowOf("mla", 0x6f800000, shapeLane, "4s", "4s"),
	nNeg:    pairOf("neg", 0x6ea0b800, shape2),
	nAbs:    pairOf("abs", 0x4ea0b800, shape2),
	nSmin:   rowOf("smin", 0x4ea06c00, shape3, "4s", "4s"),
	nSmax:   rowOf("smax", 0x4ea06400, shape3, "4s", "4s"),
	nUmin:   rowOf("umin", 0x6ea06c00, shape3, "4s", "4s"),
	nUmax:   rowOf("umax", 0x6ea06400, shape3, "4s", "4s"),
	nSshl:   pairOf("sshl", 0x4ea04400, shape3),
	nUshl:   pairOf("ushl", 0x6ea04400, shape3),
	nShl:    pairOf("shl", 0x4f005400, shapeL),
	nUshr:   pairOf("ushr", 0x6f000400, shapeR),
	nSshr:   pairOf("sshr", 0x4f000400, shapeR),
	nCmeq:   pairOf("cmeq", 0x6ea08c00, shape3),
	nCmge:   pairOf("cmge", 0x4ea03c00, shape3),
	nCmgt:   pairOf("cmgt", 0x4ea03400, shape3),
	nCmhi:   pairOf("cmhi", 0x6ea03400, shape3),
	nCmhs:   pairOf("cmhs", 0x6ea03c00, shape3),
	nAnd:    rowOf("and", 0x4e201c00, shape3, "16b", "16b"),
	nOrr:    rowOf("orr", 0x4ea01c00, shape3, "16b", "16b"),
	nEor:    rowOf("eor", 0x6e201c00, shape3, "16b", "16b"),
	nMvn:    rowOf("mvn", 0x6e205800, shape2, "16b", "16b"),
	nBsl:    rowOf("bsl", 0x6e601c00, shapeTied, "16b", "16b"),
	nRev64:  rowOf("rev64", 0x4ea00800, shape2, "4s", "4s"),
	nUaddlp: rowOf("uaddlp", 0x6ea02800, shape2, "2d", "4s"),
	nUmull:  rowOf("umull", 0x2ea0c000, shape3, "2d", "2s"),
	nUmull2: rowOf("umull2", 0x6ea0c000, shape3, "2d", "4s"),
	nUzp2:   pairOf("uzp2", 0x4e805800, shape3),
	nZip1:   pairOf("zip1", 0x4e803800, shape3),
	nZip2:   pairOf("zip2", 0x4e807800, shape3),
	nSxtl:   rowOf("sxtl", 0x0f20a400, shape2, "2d", "2s"),
	nUxtl:   rowOf("uxtl", 0x2f20a400, shape2, "2d", "2s"),
	nSxtl16: rowOf("sxtl", 0x0f10a400, shape2, "4s", "4h"),
	nUxtl16: rowOf("uxtl", 0x2f10a400, shape2, "4s", "4h"),
	nSxtl8:  rowOf("sxtl", 0x0f08a400, shape2, "8h", "8b"),
	nUxtl8:  rowOf("uxtl", 0x2f08a400, shape2, "8h", "8b"),
	nXtn:    rowOf("xtn", 0x0ea12800, shape2, "2s", "2d"),
	nXtn16:  rowOf("xtn", 0x0e612800, shape2, "4h", "4s"),
	nXtn8:   rowOf("xtn", 0x0e212800, shape2, "8b", "8h"),
	nFcvtl:  rowOf("fcvtl", 0x0e617800, shape2, "2d", "2s"),
	nFcvtn:  rowOf("fcvtn", 0x0e616800, shape2, "2s", "2d"),
}

// pairOf is an entry for both widths.
func pairOf(name string, code uint32, s shape) rowInfo {
	return rowInfo{name, code, s, "4s", "4s", true}
}

func rowOf(name string, code uint32, s shape, d, n string) rowInfo {
	return rowInfo{name, code, s, d, n, false}
}

// entryOf returns the entry of an op.
func entryOf(o native.Op) rowInfo {
	t := table[o&^wide]
	if o&wide != 0 {
		t.d, t.n = "2d", "2d"
		if t.shape != shapeL && t.shape != shapeR { // the immediate of shifts already includes the width
			t.code |= 1 << 22
		}
	}
	return t
}

// neon emits an instruction; imm is the distance of a shift, or a lane.
func (a *machine) neon(o native.Op, d, n, m uint8, imm int) {
	t := entryOf(o)
	if o&wide != 0 && !t.pair {
		a.Fail("instruction %s has no wide form", t.name)
	}
	w := t.code | uint32(n)<<5 | uint32(d)
	elem := 32
	if t.d == "2d" {
		elem = 64
	}
	last := ""
	switch t.shape {
	case shape3, shapeTied:
		w |= uint32(m) << 16
		last = ", v%d.%s"
	case shapeLane: // the lane's number is H:L; for 64 bits it is H
		w |= uint32(m) << 16
		if elem == 64 {
			w |= uint32(imm) << 11
		} else {
			w |= uint32(imm>>1)<<11 | uint32(imm&1)<<21
		}
		last = ", v%d.%s"
	case shapeL:
		w |= uint32(elem+imm) << 16
	case shapeR:
		w |= uint32(2*elem-imm) << 16
	}
	switch {
	case a.Lines == nil:
		a.Emit32(int32(w))
		return
	case t.shape == shapeLane:
		last = fmt.Sprintf(", v%d.%s[%d]", m, t.n[1:], imm)
	case last != "":
		last = fmt.Sprintf(last, m, t.n)
	case t.shape != shape2:
		last = fmt.Sprintf(", #%d", imm)
	}
	a.word(w, "%s v%d.%s, v%d.%s%s", t.name, d, t.d, n, t.n, last)
}

// moveVec is a load or a store of a vector's lowest bytes.
func (a *machine) moveVec(r uint8, size int, m native.Mem, load bool) {
	base, off := a.reach(m, size)
	opc := uint32(0)
	if load {
		opc = 1
	}
	a.move(size, true, opc, r, base, off)
}

func (a *machine) copyReg(to, from uint8) {
	if to != from {
		a.word(0x4ea01c00|uint32(from)<<16|uint32(from)<<5|uint32(to), "mov v%d.16b, v%d.16b", to, from)
	}
}

func (a *machine) zero(r uint8) { a.word(0x4f000400|uint32(r), "movi v%d.4s, #0", r) }

// ofElem are the names of registers and arrangements, by the bytes of an element.
var ofElem = map[int][2]string{4: {"w", "4s"}, 8: {"x", "2d"}}

// dup fills a vector with a general register.
func (a *machine) dup(d uint8, elem int, r native.GPR) {
	t := ofElem[elem]
	a.word(0x4e000c00|uint32(elem)<<16|uint32(r)<<5|uint32(d), "dup v%d.%s, %s%d", d, t[1], t[0], r)
}

// dupLoad fills a vector with an element in memory.
func (a *machine) dupLoad(d uint8, elem int, m native.Mem) {
	base, off := a.reach(m, elem)
	if off != 0 {
		a.addConst(x16, base, off)
		base = x16
	}
	size := uint32(bits.TrailingZeros(uint(elem)))
	a.word(0x4d40c000|size<<10|uint32(base)<<5|uint32(d), "ld1r {v%d.%s}, [%s]", d, ofElem[elem][1], xName(base))
}

// loadLane loads one lane from the address in base; the other lanes stay.
func (a *machine) loadLane(d uint8, elem, lane int, base native.GPR) {
	a.lane(d, elem, lane, base, true)
}

// lane loads or stores one lane.
func (a *machine) lane(d uint8, elem, lane int, base native.GPR, load bool) {
	w, q, name, what := uint32(0x0d008000), uint32(lane>>1), "s", "st1"
	if elem == 8 {
		w, q, name = 0x0d008400, uint32(lane), "d"
	} else {
		w |= uint32(lane&1) << 12
	}
	if load {
		w, what = w|1<<22, "ld1"
	}
	a.word(w|q<<30|uint32(base)<<5|uint32(d), "%s {v%d.%s}[%d], [%s]", what, d, name, lane, xName(base))
}

// loadIndexed loads a vector's lowest bytes from base + index.
func (a *machine) loadIndexed(d uint8, size int, base, index native.GPR) {
	scale := uint32(bits.TrailingZeros(uint(size)))
	w := uint32(0x3c606800) | scale&3<<30
	if size == 16 {
		w |= 2 << 22
	}
	a.word(w|uint32(index)<<16|uint32(base)<<5|uint32(d), "ldr %c%d, [%s, %s]", "bhsdq"[scale], d, xName(base), xName(index))
}

// ins writes a general register into a lane of 32 bits.
func (a *machine) ins(d uint8, lane int, r native.GPR) {
	a.word(0x4e001c00|uint32(lane<<3|4)<<16|uint32(r)<<5|uint32(d), "mov v%d.s[%d], %s", d, lane, wName(r))
}

// largest sets r to the greatest lane of 32 bits, unsigned.
func (a *machine) largest(r native.GPR, n uint8) {
	a.word(0x6eb0a800|uint32(n)<<5|v31, "umaxv s31, v%d.4s", n)
	a.word(0x1e260000|v31<<5|uint32(r), "fmov %s, s31", wName(r))
}

// least sets r to the least lane of 32 bits, unsigned.
func (a *machine) least(r native.GPR, n uint8) {
	a.word(0x6eb1a800|uint32(n)<<5|v31, "uminv s31, v%d.4s", n)
	a.word(0x1e260000|v31<<5|uint32(r), "fmov %s, s31", wName(r))
}

// moveOut copies the lower half of a vector to a general register.
func (a *machine) moveOut(r native.GPR, n uint8) {
	a.word(0x9e660000|uint32(n)<<5|uint32(r), "fmov %s, d%d", xName(r), n)
}

// toFloat32 converts a 64-bit integer with one rounding, to the lowest lane of d.
func (a *machine) toFloat32(signed bool, d uint8, r native.GPR) {
	w, name := uint32(0x9e230000), "ucvtf"
	if signed {
		w, name = 0x9e220000, "scvtf"
	}
	a.word(w|uint32(r)<<5|uint32(d), "%s s%d, %s", name, d, xName(r))
}

// pick sets d to x where mask is set, else to y. d must be none of them.
func (a *machine) pick(d, mask, x, y uint8) {
	a.copyReg(d, mask)
	a.neon(nBsl, d, x, y, 0)
}

func (a *machine) LoadVec(r uint8, size int, m native.Mem)  { a.moveVec(r, size, m, true) }
func (a *machine) StoreVec(m native.Mem, size int, r uint8) { a.moveVec(r, size, m, false) }

// StorePast is an ordinary store.
func (a *machine) StorePast(m native.Mem, size int, r uint8) { a.moveVec(r, size, m, false) }

func (a *machine) CopyVec(to, from uint8, _ int)               { a.copyReg(to, from) }
func (a *machine) ClearVec(r uint8, _ int)                     { a.zero(r) }
func (a *machine) SplatVec(r uint8, _, elem int, m native.Mem) { a.dupLoad(r, elem, m) }
func (a *machine) Spread(d uint8, _, size int, g native.GPR)   { a.dup(d, size, g) }

// bitOps are the instructions of vecOp.
var bitOps = map[native.Arith]native.Op{native.Add: nAdd, native.And: nAnd, native.Or: nOrr, native.Xor: nEor}

// VecOp first loads an operand in memory into a register.
func (a *machine) VecOp(o native.Arith, size int, d, x uint8, y native.RM) {
	if y.InMem {
		a.LoadVec(v30, size, y.Mem)
		y = native.InReg(v30)
	}
	a.neon(bitOps[o], d, x, y.Reg, 0)
}
