package native

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// The arm64 form of tiles. An instruction multiplies a vector by one lane of another. So rows of X
// are loaded as vectors along k, whose lanes are steps of k. There are enough registers to hold a
// pointer to each row.

// neonRow is the pointer to the first row of X, neonOffset the offset along k.
const (
	neonRow    gpr = 19
	neonOffset     = r14
)

// Kinds of elements of arm64, whose loads and stores are the same for all.
var (
	neonF32 = &dotKind{size: 4, fma: nFmla, add: nFadd, byLane: nFmlaBy}
	neonF64 = &dotKind{size: 8, fma: nFmla | wide, add: nFadd | wide, byLane: nFmlaBy | wide}
	neonI32 = &dotKind{size: 4, mul: nMul, add: nAdd, byLane: nMlaBy}
)

// neonDots are the elements with tiles on arm64, which has no multiplication of 64-bit integer
// lanes.
var neonDots = map[ir.DType]*dotKind{ir.Float32: neonF32, ir.Float64: neonF64, ir.Int32: neonI32, ir.Uint32: neonI32}

// neonBases loads the pointers to the rows of X.
func (t *tileForm) neonBases() {
	t.load(tileLdX, field(unsafe.Offsetof(tileFrame.LdX)))
	t.load(neonRow, field(unsafe.Offsetof(tileFrame.X)))
	for i := 1; i < t.rows; i++ {
		t.addIndexed(neonRow+gpr(i), neonRow+gpr(i-1), tileLdX, 1)
	}
	t.clear(neonOffset)
}

// neonSteps emits n steps of k: as many as a vector has lanes, or one.
func (t *tileForm) neonSteps(n int) {
	x, free := t.spare(0), t.spare(t.rows)
	for i := range t.rows {
		t.loadIndexed(x+uint8(i), n*t.size, neonRow+gpr(i), neonOffset)
	}
	for s := range n {
		y := make([]uint8, t.vecs) // several registers in turn, so that loads need not wait
		for j := range y {
			y[j] = free + uint8((s*t.vecs+j)%(t.isa.Regs-int(free)))
			t.loadVec(y[j], t.isa.Bytes, at(tileY, j*t.isa.Bytes))
		}
		t.op(add, tileY, ofGPR(tileLdY))
		for i := range t.rows {
			for j := range y {
				t.neon(t.byLane, t.result(i, j), y[j], x+uint8(i), s)
			}
		}
	}
	t.opImm(add, ofGPR(neonOffset), n*t.size)
}

// neonAlong emits one step of k for each register of y. It loads rows of X into registers from temp
// on, a vector at a time.
func (t *tileForm) neonAlong(y []uint8, temp uint8, offset gpr) {
	n := t.piece()
	for p := range len(y) / n {
		for i := range t.rows {
			x := temp + uint8(i%2)
			t.loadVec(x, t.isa.Bytes, at2(neonRow+gpr(i), offset, 1, p*t.isa.Bytes))
			for l := range n {
				t.neon(t.byLane, t.result(i, 0), y[p*n+l], x, l)
			}
		}
	}
}

// neonResults adds the chains to the results and jumps to done. Each possible number of columns in
// the last vector has its own code.
func (t *tileForm) neonResults(done label) {
	first, whole := t.newLabel(), t.newLabel()
	t.load(tileY, field(unsafe.Offsetof(tileFrame.Tail)))
	t.opImm(cmp, ofGPR(tilePanels), 1)
	t.jumpIf(equal, whole)
	t.set(tileY, uint32(t.d.Lanes))
	t.place(whole)
	t.flag(TileFirst, first)
	t.neonAdd(false, done)
	t.place(first)
	t.neonAdd(true, done)
}

func (t *tileForm) neonAdd(first bool, done label) {
	sum := t.spare(0)
	for tail := t.d.Lanes; tail > 0; tail-- {
		next := t.newLabel()
		if tail > 1 {
			t.opImm(cmp, ofGPR(tileY), tail)
			t.jumpIf(notEqual, next)
		}
		if first {
			t.clearVec(sum, t.isa.Bytes)
		}
		t.rowsOf(unsafe.Offsetof(tileFrame.LdC), func() { t.copy(rsi, tileC) }, func(i, j int, m mem) {
			r, n := t.result(i, j), t.d.Lanes
			if j == t.vecs-1 {
				n = tail
			}
			switch {
			case !first:
				t.columns(sum, n, m, true)
				t.neon(t.add, r, sum, r, 0)
			case t.mul == opNone: // +0 is added, too, because a chain may end at -0 by underflow
				t.neon(t.add, r, sum, r, 0)
			}
			t.columns(r, n, m, false)
		})
		t.jump(done)
		t.place(next)
	}
}

// columns loads or stores the first n elements of a vector.
func (t *tileForm) columns(r uint8, n int, m mem, load bool) {
	base, off := t.reach(m, t.isa.Bytes)
	opc := uint32(0)
	if load {
		opc = 1
	}
	if n != 3 {
		t.moveA64(n*t.size, true, opc, r, base, off)
		return
	}
	t.moveA64(2*t.size, true, opc, r, base, off)
	t.addConst(x16, base, off+2*t.size)
	t.laneA64(r, t.size, 2, x16, load)
}

// neonRest copies columns elements of a row, fewer than a panel has, from from to to, and fills the
// rest of the panel with zeros. It changes all four registers.
func (g *dotGen) neonRest(from, to, columns, temp gpr) {
	next := g.newLabel()
	g.clearVec(0, g.isa.Bytes)
	for v := range 2 {
		g.storeWhole(at(to, v*g.isa.Bytes), 0)
	}
	g.place(next)
	g.loadSize(g.size, false, temp, at(from, 0))
	g.storeSize(g.size, at(to, 0), temp)
	g.opImm(add, ofGPR(from), g.size)
	g.opImm(add, ofGPR(to), g.size)
	g.opImm(sub, ofGPR(columns), 1)
	g.jumpIf(notEqual, next)
}

// neonSquare transposes four vectors of four lanes, with four scratch registers from temp on.
func (g *dotGen) neonSquare(s []uint8, temp uint8) {
	for i, o := range []op{nZip1, nZip2} {
		g.neon(o, temp+uint8(2*i), s[0], s[2], 0)
		g.neon(o, temp+uint8(2*i+1), s[1], s[3], 0)
	}
	for i := range s {
		half := temp + uint8(i&^1)
		g.neon([]op{nZip1, nZip2}[i%2], s[i], half, half+1, 0)
	}
}
