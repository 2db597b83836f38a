package native

import "unsafe"

// TransposeFrame describes a transposition: element p of row i goes to lane i of the vector at Dst
// + p*LdDst, for p below K. K is a multiple of the elements in 16 bytes. There is one row per lane
// of a vector; several rows may be the same.
type TransposeFrame struct {
	Rows  [16]unsafe.Pointer
	Dst   unsafe.Pointer
	LdDst int64 // in bytes
	K     int64
}

// PanelsFrame describes a copy into panels of two vectors of columns: K rows of Full panels, and of
// Rest further columns, which zeros extend to a panel.
type PanelsFrame struct {
	Src, Dst   unsafe.Pointer
	LdSrc      int64 // from row to row, in bytes
	Panel      int64 // from panel to panel, in bytes
	Full, Rest int64
	K          int64
}

// piece is the number of neighbours of a row that are transposed at once: 16 bytes of them, so that
// all shuffles stay within 16 bytes.
func (g *dotGen) piece() int { return 16 / g.size }

// pieces is the number of neighbouring pieces of each row that are read together: a cache line, if
// there are enough registers. Otherwise the lines of rows that are far apart could evict each other
// before they are used.
func (g *dotGen) pieces() int {
	if g.isa.EVEX || g.isa.A64 {
		return 4
	}
	return 2
}

// transposes makes the functions of TransposeFrame and PanelsFrame.
func (g *dotGen) transposes() {
	var f TransposeFrame
	const dst, stride, stride3, offset, count = rdx, rbx, rcx, rsi, r8
	g.d.Transpose = g.begin("transpose")
	g.load(dst, field(unsafe.Offsetof(f.Dst)))
	g.load(stride, field(unsafe.Offsetof(f.LdDst)))
	g.lea(stride3, at2(stride, stride, 2, 0))
	g.load(count, field(unsafe.Offsetof(f.K)))
	g.clear(offset)
	done := g.newLabel()
	for _, pieces := range []int{g.pieces(), 1} { // whole lines, then the rest
		loop, left, steps := g.newLabel(), g.newLabel(), pieces*g.piece()
		g.opImm(sub, ofGPR(count), steps)
		g.jumpIf(less, left)
		g.align(32)
		g.place(loop)
		for p, r := range g.squares(0, pieces, unsafe.Offsetof(f.Rows), offset) {
			m := at(dst, 0)
			switch p %= g.piece(); p {
			case 1, 2:
				m.index, m.scale = stride, uint8(p)
			case 3:
				m.index = stride3
			}
			g.storeWhole(m, r)
			if p == g.piece()-1 {
				g.lea(dst, at2(dst, stride, uint8(g.piece()), 0))
			}
		}
		g.opImm(add, ofGPR(offset), 16*pieces)
		g.opImm(sub, ofGPR(count), steps)
		g.jumpIf(greaterEqual, loop)
		g.place(left)
		g.opImm(add, ofGPR(count), steps)
		g.jumpIf(equal, done)
	}
	g.place(done)
	g.ret()
	g.panels()
}

// Pairs of 32-bit elements of both operands: 0 and 1, or 2 and 3, or the even or odd ones.
const shuffleLow, shuffleHigh, shuffleEven, shuffleOdd = 0x44, 0xee, 0x88, 0xdd

// squares loads pieces of as many rows as there are lanes, at an offset from the row pointers in
// the frame. It returns the registers in order, each of which has one element of every row: the
// registers from first on, perhaps with the next one behind them. It also changes as many more
// registers as a piece has elements, and rax.
func (g *dotGen) squares(first, pieces int, rows uintptr, offset gpr) []uint8 {
	n := g.piece()
	in := make([]uint8, pieces*n)
	for i := range in {
		in[i] = uint8(first + i)
	}
	for row := range g.d.Lanes { // each 16 bytes of registers are squares of n by n
		g.load(rax, field(rows+uintptr(8*row)))
		if g.isa.A64 {
			g.op(add, rax, ofGPR(offset))
			for p := range pieces {
				g.loadVec(in[p*n+row], 16, at(rax, 16*p))
			}
			continue
		}
		for p := range pieces {
			r, m := in[p*n+row%n], inMem(at2(rax, offset, 1, 16*p))
			switch q := row / n; {
			case q == 0:
				g.vector(vmovups, 16, args{reg: r, rm: m, imm: noImm})
			case g.isa.EVEX:
				g.vec3i(vinserti32x4, r, r, m, int16(q))
			default:
				g.vec3i(vinserti128, r, r, m, int16(q))
			}
		}
	}
	shuffle := func(to, x, y uint8, how uint8) { g.vec3i(vshufps, to, x, inReg(y), int16(how)) }
	t := uint8(first + len(in))
	for p := range pieces {
		s := in[p*n : p*n+n]
		if n == 2 {
			if g.isa.A64 {
				g.neon(nZip1|wide, t, s[0], s[1], 0)
				g.neon(nZip2|wide, s[1], s[0], s[1], 0)
			} else {
				shuffle(t, s[0], s[1], shuffleLow)
				shuffle(s[1], s[0], s[1], shuffleHigh)
			}
			s[0], t = t, s[0] // the old register becomes the scratch register
			continue
		}
		if g.isa.A64 {
			g.neonSquare(s, t)
			continue
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
	return in
}

// panels makes the function that copies rows into panels.
func (g *dotGen) panels() {
	var f PanelsFrame
	const src, dst, from, to, left, stride, panel, count, rest = rsi, rdx, r8, r9, rcx, rbx, r10, r11, r12
	g.d.Panels = g.begin("rows into panels")
	row, next, part, done := g.newLabel(), g.newLabel(), g.newLabel(), g.newLabel()
	g.load(src, field(unsafe.Offsetof(f.Src)))
	g.load(dst, field(unsafe.Offsetof(f.Dst)))
	g.load(stride, field(unsafe.Offsetof(f.LdSrc)))
	g.load(panel, field(unsafe.Offsetof(f.Panel)))
	g.load(count, field(unsafe.Offsetof(f.K)))
	g.load(rest, field(unsafe.Offsetof(f.Rest)))
	if !g.isa.A64 {
		g.partMasks(rest, rax)
	}
	g.align(32)
	g.place(row)
	g.copy(from, src)
	g.copy(to, dst)
	g.load(left, field(unsafe.Offsetof(f.Full)))
	g.opImm(sub, ofGPR(left), 1)
	g.jumpIf(less, part)
	g.align(32)
	g.place(next)
	for v := range 2 {
		g.loadWhole(uint8(v), at(from, v*g.isa.Bytes))
	}
	for v := range 2 {
		g.storeWhole(at(to, v*g.isa.Bytes), uint8(v))
	}
	g.opImm(add, ofGPR(from), 2*g.isa.Bytes)
	g.op(add, to, ofGPR(panel))
	g.opImm(sub, ofGPR(left), 1)
	g.jumpIf(greaterEqual, next)
	g.place(part)
	g.opImm(cmp, ofGPR(rest), 0)
	g.jumpIf(equal, done)
	g.partPanel(from, to, rest)
	g.place(done)
	g.op(add, src, ofGPR(stride))
	g.opImm(add, ofGPR(dst), 2*g.isa.Bytes)
	g.opImm(sub, ofGPR(count), 1)
	g.jumpIf(notEqual, row)
	g.ret()
}

// partPanel copies a row of the last panel.
func (g *dotGen) partPanel(from, to, rest gpr) {
	if g.isa.A64 {
		g.copy(rax, rest)
		g.neonRest(from, to, rax, rcx)
		return
	}
	for v := range 2 {
		m := inMem(at(from, v*g.isa.Bytes))
		if g.isa.EVEX {
			g.vector(g.get, g.isa.Bytes, args{reg: uint8(v), rm: m, imm: noImm, k: uint8(v + 1), zero: true})
		} else {
			g.vec3(g.getPart, uint8(v), uint8(v+2), m)
		}
	}
	for v := range 2 {
		g.storeWhole(at(to, v*g.isa.Bytes), uint8(v))
	}
}

// partMasks makes masks of the first columns of two vectors: k1 and k2, or registers 2 and 3.
func (g *dotGen) partMasks(columns, temp gpr) {
	if g.isa.EVEX {
		g.set(temp, 1<<32-1)
		g.bzhi(temp, temp, columns)
		for v := range 2 {
			g.vector(kmovwR, 16, args{reg: uint8(v + 1), rm: ofGPR(temp), imm: noImm})
			g.shift(shr, true, temp, g.d.Lanes)
		}
		return
	}
	g.lea(temp, g.masks)
	g.copy(r13, columns)
	g.shift(shl, true, r13, shiftOf(g.size))
	g.op(sub, temp, ofGPR(r13))
	for v := range 2 {
		g.vec3(g.get, uint8(v+2), 0, inMem(at(temp, (v+2)*g.isa.Bytes)))
	}
}
