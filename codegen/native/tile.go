package native

import "unsafe"

// Registers of a tile. Each base of X serves five rows, at 0, 1, 2, 3 and 4 strides.
const (
	tileY, tileLdY, tileLdY3 = rdx, rbx, rax
	tileLdX, tileLdX3        = r10, r11
	tileK, tilePanels        = rcx, r15
	tilePanel, tileC         = r12, r13 // start of the panel in Y and in C
)

var tileX = [...]gpr{rsi, r8, r9}

const tileUnroll = 4

// field is a field of a frame.
func field(offset uintptr) mem { return at(rdi, int(offset)) }

var tileFrame TileFrame

// tileForm is one function: a tile of rows rows by vecs vectors of columns.
type tileForm struct {
	*dotGen
	rows, vecs int
	acc        uint8 // number of registers for results
	lean       bool  // elements of X are kept in registers, and vectors of Y are loaded as they are used
}

// tiles makes a function for each form.
func (g *dotGen) tiles() {
	d := g.d
	d.Rows, d.Wides = 14, []int{0, 8, 4, 4}
	switch {
	case g.pairs:
		d.Rows, d.Wides = 4, nil
	case g.isa.A64:
		d.Rows = 8
	case !g.isa.EVEX:
		d.Rows = 6
	}
	d.Tiles = make([][]int, d.Rows+1)
	for rows := 1; rows <= d.Rows; rows++ {
		d.Tiles[rows] = []int{-1, -1, -1, -1, -1, -1, -1, -1, -1}
		for _, vecs := range []int{1, 2, d.Wide(rows)} {
			if d.Tiles[rows][vecs] < 0 {
				d.Tiles[rows][vecs] = g.begin("a tile of %d rows by %d vectors", rows, vecs)
				(&tileForm{dotGen: g, rows: rows, vecs: vecs, acc: uint8(rows * vecs), lean: vecs > 2 || rows == 1}).function()
			}
		}
	}
}

func (t *tileForm) function() {
	f := &tileFrame
	panel, rest, one, done, steps := t.newLabel(), t.newLabel(), t.newLabel(), t.newLabel(), t.newLabel()
	unroll := tileUnroll
	if t.isa.A64 {
		unroll = t.d.Lanes
	}
	t.load(tilePanel, field(unsafe.Offsetof(f.Y)))
	t.load(tileC, field(unsafe.Offsetof(f.C)))
	t.load(tilePanels, field(unsafe.Offsetof(f.Panels)))
	t.load(tileLdY, field(unsafe.Offsetof(f.LdY)))
	t.lea(tileLdY3, at2(tileLdY, tileLdY, 2, 0))

	t.place(panel)
	t.open()
	t.near()
	t.xBases()
	t.copy(tileY, tilePanel)
	t.load(tileK, field(unsafe.Offsetof(f.K)))
	t.opImm(sub, ofGPR(tileK), unroll)
	t.jumpIf(less, rest)
	t.align(32)
	t.place(steps)
	t.steps(unroll)
	t.opImm(sub, ofGPR(tileK), unroll)
	t.jumpIf(greaterEqual, steps)
	t.place(rest)
	t.opImm(add, ofGPR(tileK), unroll)
	t.jumpIf(equal, done)
	t.place(one)
	t.steps(1)
	t.opImm(sub, ofGPR(tileK), 1)
	t.jumpIf(notEqual, one)
	t.place(done)
	t.close()

	t.op(add, tilePanel, inMem(field(unsafe.Offsetof(f.StepY))))
	t.op(add, tileC, inMem(field(unsafe.Offsetof(f.StepC))))
	t.opImm(sub, ofGPR(tilePanels), 1)
	t.jumpIf(notEqual, panel)
	t.ret()
}

// steps emits n steps of k.
func (t *tileForm) steps(n int) {
	if t.isa.A64 {
		t.neonSteps(n)
		return
	}
	for s := range n {
		t.step(s)
	}
	t.advance(n)
}

// xBases loads the pointers to the rows of X.
func (t *tileForm) xBases() {
	f := &tileFrame
	if t.isa.A64 {
		t.neonBases()
		return
	}
	t.load(tileLdX, field(unsafe.Offsetof(f.LdX)))
	t.lea(tileLdX3, at2(tileLdX, tileLdX, 2, 0))
	t.load(tileX[0], field(unsafe.Offsetof(f.X)))
	for b := 1; b*5 < t.rows; b++ {
		t.lea(tileX[b], at2(tileX[b-1], tileLdX, 4, 0))
		t.op(add, tileX[b], ofGPR(tileLdX))
	}
}

// advance moves the pointers on by n steps of k.
func (t *tileForm) advance(n int) {
	for b := 0; b*5 < t.rows; b++ {
		t.opImm(add, ofGPR(tileX[b]), n*t.size)
	}
	if n == 1 {
		t.op(add, tileY, ofGPR(tileLdY))
	} else {
		t.lea(tileY, at2(tileY, tileLdY, tileUnroll, 0))
	}
}

// x is an element of a row, y a vector, s steps of k ahead.
func (t *tileForm) x(row, s int) mem {
	m := at(tileX[row/5], s*t.size)
	switch row % 5 {
	case 1, 2, 4:
		m.index, m.scale = tileLdX, uint8(row%5)
	case 3:
		m.index = tileLdX3
	}
	return m
}

func (t *tileForm) y(vec, s int) mem {
	m := at(tileY, vec*t.isa.Bytes)
	switch s {
	case 1, 2:
		m.index, m.scale = tileLdY, uint8(s)
	case 3:
		m.index = tileLdY3
	}
	return m
}

func (t *tileForm) result(row, vec int) uint8 { return uint8(row*t.vecs + vec) }

// spare returns a register behind the results.
func (t *tileForm) spare(i int) uint8 { return t.acc + uint8(i) }

// step emits one step of k. Tiles of many rows hold vectors of Y in registers and broadcast one
// element of X after another; tiles of few rows do the opposite.
func (t *tileForm) step(s int) {
	if t.lean {
		for i := range t.rows {
			t.vec3(t.spread, t.spare(i), 0, inMem(t.x(i, s)))
		}
		for j := range t.vecs {
			y, temp := inMem(t.y(j, s)), t.spare(t.rows)
			if t.rows > 1 && t.mul == opNone || t.pairs {
				t.vec3(t.get, t.spare(t.rows), 0, y)
				y = inReg(temp)
				temp++
			}
			for i := range t.rows {
				t.multiply(t.result(i, j), t.spare(i), y, temp)
			}
		}
		return
	}
	for j := range t.vecs {
		t.vec3(t.get, t.spare(j), 0, inMem(t.y(j, s)))
	}
	for i := range t.rows {
		x := t.spare(t.vecs)
		temp := x + 1
		if t.mul == opNone && i%2 == 1 {
			x++ // the other of two registers, so that broadcasts need not wait
		}
		if t.vecs == 1 && t.isa.EVEX {
			m := t.x(i, s)
			m.step = uint8(t.size)
			t.multiply(t.result(i, 0), t.spare(0), inMem(m), temp)
			continue
		}
		t.vec3(t.spread, x, 0, inMem(t.x(i, s)))
		for j := range t.vecs {
			t.multiply(t.result(i, j), x, inReg(t.spare(j)), temp)
		}
	}
}

// multiply adds x*y to a result.
func (t *tileForm) multiply(to, x uint8, y rm, temp uint8) {
	switch {
	case t.isa.A64 && t.mul == opNone:
		t.neon(t.fma, to, x, y.reg, 0)
	case t.isa.A64:
		t.neon(t.mul, temp, x, y.reg, 0)
		t.neon(t.add, to, to, temp, 0)
	case t.mul == opNone:
		t.vec3(t.fma, to, x, y)
	case t.pairs:
		t.multiplyPairs(to, x, y, temp)
	default:
		t.vec3(t.mul, temp, x, y)
		t.vec3(t.add, to, to, inReg(temp))
	}
}

// multiplyPairs adds a product of 64-bit integers if only the product of the lower halves is an
// instruction. The cross products are shifted by 32 bits.
func (t *tileForm) multiplyPairs(to, x uint8, y rm, temp uint8) {
	t.vec3i(vpsrlq, temp, 0, inReg(x), 32)
	t.vec3(vpmuludq, temp, temp, y)
	t.vec3i(vpsrlq, temp+1, 0, y, 32)
	t.vec3(vpmuludq, temp+1, temp+1, inReg(x))
	t.vec3(vpaddq, temp, temp, inReg(temp+1))
	t.vec3i(vpsllq, temp, 0, inReg(temp), 32)
	t.vec3(vpaddq, to, to, inReg(temp))
	t.vec3(vpmuludq, temp, x, y)
	t.vec3(vpaddq, to, to, inReg(temp))
}

// open starts the chains, or continues them from Acc.
func (t *tileForm) open() {
	fresh, ready := t.newLabel(), t.newLabel()
	t.flag(TileOpen, fresh)
	t.rowsOf(unsafe.Offsetof(tileFrame.LdAcc), func() { t.accAt() }, func(i, j int, m mem) {
		t.loadWhole(t.result(i, j), m)
	})
	t.jump(ready)
	t.place(fresh)
	for r := range t.acc {
		t.clearVec(r, t.isa.Bytes)
	}
	t.place(ready)
}

// flag jumps if the frame has a flag.
func (t *tileForm) flag(f int, to label) {
	t.load(tileK, field(unsafe.Offsetof(tileFrame.Flags)))
	t.opImm(and, ofGPR(tileK), f)
	t.jumpIf(notEqual, to)
}

// rowsOf visits all vectors of a matrix, whose address base puts into rsi. It uses the registers of
// the bases of X.
func (t *tileForm) rowsOf(ld uintptr, base func(), visit func(i, j int, m mem)) {
	const row, stride, stride3 = rsi, r8, r9
	base()
	t.load(stride, field(ld))
	t.lea(stride3, at2(stride, stride, 2, 0))
	for i := range t.rows {
		if i > 0 && i%4 == 0 {
			t.lea(row, at2(row, stride, 4, 0))
		}
		for j := range t.vecs {
			m := at(row, j*t.isa.Bytes)
			switch i % 4 {
			case 1, 2:
				m.index, m.scale = stride, uint8(i%4)
			case 3:
				m.index = stride3
			}
			visit(i, j, m)
		}
	}
}

// cacheLine is the number of bytes that one prefetch loads.
const cacheLine = 64

// near prefetches the memory at distance Near from the results. On arm64 no gain was ever measured,
// so there it does nothing.
func (t *tileForm) near() {
	if t.isa.A64 {
		return
	}
	f, none := &tileFrame, t.newLabel()
	t.load(tileK, field(unsafe.Offsetof(f.LdNear)))
	t.opImm(cmp, ofGPR(tileK), 0)
	t.jumpIf(equal, none)
	t.rowsOf(unsafe.Offsetof(f.LdNear), func() {
		t.copy(rsi, tileC)
		t.op(add, rsi, inMem(field(unsafe.Offsetof(f.Near))))
	}, func(i, j int, m mem) {
		if j*t.isa.Bytes%cacheLine == 0 {
			t.prefetch(m)
		}
	})
	t.place(none)
}

// accAt sets rsi to the address of the panel's chains. Its distance from Acc is the panel's distance
// from the first one.
func (t *tileForm) accAt() {
	t.copy(rsi, tileC)
	t.op(sub, rsi, inMem(field(unsafe.Offsetof(tileFrame.C))))
	t.op(add, rsi, inMem(field(unsafe.Offsetof(tileFrame.Acc))))
}

// close ends the chains, or stores them in Acc.
func (t *tileForm) close() {
	ends, first, done := t.newLabel(), t.newLabel(), t.newLabel()
	t.flag(TileClose, ends)
	t.rowsOf(unsafe.Offsetof(tileFrame.LdAcc), func() { t.accAt() }, func(i, j int, m mem) {
		t.storeWhole(m, t.result(i, j))
	})
	t.jump(done)

	t.place(ends)
	if t.isa.A64 {
		t.neonResults(done)
		t.place(done)
		return
	}
	t.tail()
	t.flag(TileFirst, first)
	t.results(func(r uint8, m mem, masked bool) {
		t.addMemory(r, m, masked)
		t.storeResult(r, m, masked)
	}, done)
	t.place(first)
	zero := t.spare(0)
	if t.mul == opNone { // +0 is added, too, because a chain may end at -0 by underflow
		t.vec3(vpxor, zero, zero, inReg(zero))
	}
	t.results(func(r uint8, m mem, masked bool) {
		if t.mul == opNone {
			t.vec3(t.add, r, r, inReg(zero))
		}
		t.storeResult(r, m, masked)
	}, done)
	t.place(done)
}

// tileMask is the mask of the last vector: k1, or the register behind spare(0).
const tileMask = 1

// tail makes the mask: all lanes, except in the last panel.
func (t *tileForm) tail() {
	if !t.isa.EVEX {
		return
	}
	set := t.newLabel()
	t.vector(kxnorw, 16, args{reg: tileMask, v: tileMask, rm: inReg(tileMask), imm: noImm})
	t.opImm(cmp, ofGPR(tilePanels), 1)
	t.jumpIf(notEqual, set)
	t.load(tileK, field(unsafe.Offsetof(tileFrame.Tail)))
	t.set(tileY, 1<<32-1)
	t.bzhi(tileY, tileY, tileK)
	t.vector(kmovwR, 16, args{reg: tileMask, rm: ofGPR(tileY), imm: noImm})
	t.place(set)
}

// results visits the vectors that the tile writes. Without mask registers, separate code writes a
// last vector with fewer columns.
func (t *tileForm) results(visit func(r uint8, m mem, masked bool), done label) {
	rows := func(masked bool) {
		t.rowsOf(unsafe.Offsetof(tileFrame.LdC), func() { t.copy(rsi, tileC) }, func(i, j int, m mem) {
			visit(t.result(i, j), m, masked && j == t.vecs-1)
		})
	}
	if t.isa.EVEX {
		rows(true)
		t.jump(done)
		return
	}
	whole := t.newLabel()
	t.opImm(cmp, ofGPR(tilePanels), 1)
	t.jumpIf(notEqual, whole)
	t.load(tileK, field(unsafe.Offsetof(tileFrame.Tail)))
	t.opImm(cmp, ofGPR(tileK), t.d.Lanes)
	t.jumpIf(equal, whole)
	t.lea(tileY, t.masks)
	t.shift(shl, true, tileK, shiftOf(t.size))
	t.op(sub, tileY, ofGPR(tileK))
	t.vec3(t.get, t.spare(1), 0, inMem(at(tileY, 2*t.isa.Bytes)))
	rows(true)
	t.jump(done)
	t.place(whole)
	rows(false)
	t.jump(done)
}

// tailMasks are two vectors with all bits set, followed by two with none.
func tailMasks(lanes, size int) []byte {
	b := make([]byte, 4*lanes*size)
	for i := range 2 * lanes * size {
		b[i] = 0xff
	}
	return b
}

func shiftOf(size int) int {
	n := 0
	for ; size > 1; size /= 2 {
		n++
	}
	return n
}

// addMemory adds the memory's contents to a result.
func (t *tileForm) addMemory(r uint8, m mem, masked bool) {
	switch {
	case !masked:
		t.vec3(t.add, r, r, inMem(m))
	case t.isa.EVEX:
		t.vector(t.add, t.isa.Bytes, args{reg: r, v: r, rm: inMem(m), imm: noImm, k: tileMask})
	default:
		t.vec3(t.getPart, t.spare(0), t.spare(1), inMem(m))
		t.vec3(t.add, r, r, inReg(t.spare(0)))
	}
}

func (t *tileForm) storeResult(r uint8, m mem, masked bool) {
	switch {
	case !masked:
		t.vec3(t.put, r, 0, inMem(m))
	case t.isa.EVEX:
		t.vector(t.put, t.isa.Bytes, args{reg: r, rm: inMem(m), imm: noImm, k: tileMask})
	default:
		t.vec3(t.putPart, r, t.spare(1), inMem(m))
	}
}
