package native

import (
	"fmt"
	"math/bits"
)

// Joins of rows in memory, column by column. Folds of columns are made of these.

// TreeRows is the largest number of rows in a tree.
const TreeRows = 8

// RowJoin says which rows are joined, and in which order.
type RowJoin struct {
	// Tree is the number of rows that are joined in halves, like the lanes of a fold: 0 with 4, 1
	// with 5 and so on; then the results 2 apart, then 1 apart. Tree 0 is a chain instead: it joins
	// as many rows as the frame says, one after another.
	Tree int
	// Onto makes a chain begin with the present contents of the results' memory.
	Onto bool
}

// CompileRowJoin makes code that joins rows by a fold's kernels. f's elements must be as wide in
// memory as in registers.
//
// In the frame operand 0 has the address of the results, which must not overlap the rows. Operand 1
// has the address of the first row, in RowStep the bytes to the next row, and in Step the distance
// in bytes at which it prefetches. Points are columns; there must be at least Lanes. All this is
// one unit, and FrameUnits is the number of units: RowStep of operand 0 and IndexStep of operand 1
// are the bytes to the next unit.
func CompileRowJoin(f Fold, j RowJoin, isa *ISA) (*Func, error) {
	if j.Tree < 0 || j.Tree > TreeRows || j.Tree > 0 && j.Onto {
		return nil, fmt.Errorf("codegen/native: no such join of rows: %+v", j)
	}
	m, err := newMemoryFold(&f, isa)
	if err != nil {
		return nil, err
	}
	defer m.recycle()
	(&rowJoin{memoryFold: m, RowJoin: j}).function()
	return m.end(max(j.Tree, 1))
}

// rowJoin is the code of a RowJoin that is being made.
type rowJoin struct {
	*memoryFold
	RowJoin
	last value // the last vector of the results before anything was joined to it
}

// Registers. A tree uses two bases, four rows apart, and adds 0 to 3 steps to each. A chain counts
// its rows.
const (
	joinBase, joinBase4, joinStep, joinStep3 = r8, r9, r10, r11
	joinRow, joinLeft                        = rbx, r9
	joinAhead, joinTo, joinColumns           = r12, rsi, rdx
	joinAhead4                               = r13
)

// joinVectors is the number of vectors per step.
const joinVectors = 4

func (x *rowJoin) function() {
	unit := x.newLabel()
	x.asm.place(unit)
	x.load(joinBase, operandWord(1, Address))
	x.load(joinStep, operandWord(1, RowStep))
	x.load(joinAhead, operandWord(1, Step))
	x.load(joinTo, operandWord(0, Address))
	x.load(joinColumns, at(rdi, FramePoints))
	if x.Tree > 0 {
		x.lea(joinStep3, mem{base: joinStep, index: joinStep, scale: 2})
		x.lea(joinBase4, mem{base: joinBase, index: joinStep, scale: 4})
		x.lea(joinAhead4, mem{base: joinBase4, index: joinAhead, scale: 1})
		x.op(add, joinAhead, ofGPR(joinBase))
	}
	if x.Onto { // the last vector overlaps columns that were joined before
		x.last = x.pinned()
		x.loadVec(uint8(x.vals[x.last].reg), x.bytes, mem{base: joinTo, index: joinColumns, scale: uint8(x.size), disp: int32(-x.bytes)})
	}
	end := x.newLabel()
	x.steps(joinVectors)
	x.steps(1)
	x.opImm(cmp, ofGPR(joinColumns), 0)
	x.jumpIf(equal, end)
	x.opImm(sub, ofGPR(joinColumns), x.lanes)
	x.copy(rax, joinColumns)
	x.shift(shl, true, rax, bits.TrailingZeros(uint(x.size)))
	x.advance(func(r gpr) { x.op(add, r, ofGPR(rax)) })
	x.step(1, true)
	x.asm.place(end)
	x.unpin()
	for i, step := range []int{RowStep, IndexStep} {
		x.load(rax, operandWord(i, step))
		x.opTo(add, operandWord(i, Address), rax)
	}
	x.opImm(sub, inMem(at(rdi, FrameUnits)), 1)
	x.jumpIf(notEqual, unit)
	x.ret()
}

// advance moves the column pointers on.
func (x *rowJoin) advance(move func(gpr)) {
	move(joinTo)
	move(joinBase)
	if x.Tree > 0 {
		move(joinBase4)
		move(joinAhead)
		move(joinAhead4)
	}
}

// steps joins n vectors of columns at a time, as long as there are n.
func (x *rowJoin) steps(n int) {
	top, over := x.newLabel(), x.newLabel()
	x.opImm(sub, ofGPR(joinColumns), n*x.lanes)
	x.jumpIf(less, over)
	x.align()
	x.asm.place(top)
	x.step(n, false)
	x.advance(func(r gpr) { x.opImm(add, ofGPR(r), n*x.bytes) })
	x.opImm(sub, ofGPR(joinColumns), n*x.lanes)
	x.jumpIf(greaterEqual, top)
	x.asm.place(over)
	x.opImm(add, ofGPR(joinColumns), n*x.lanes)
}

func (x *rowJoin) step(n int, last bool) {
	if x.Tree == 0 {
		x.chain(n, last)
		return
	}
	x.ask(n, x.Tree)
	for u := range n {
		x.write(x.element(x.halves(0, 1, x.Tree, u)), x.bytes, at(joinTo, u*x.bytes))
	}
	x.emitItems()
}

// rowAt is row i of a tree; base4 is four rows after base.
func rowAt(i int, base, base4 gpr, disp int) mem {
	m := mem{base: base, index: noReg, scale: 1, disp: int32(disp)}
	if i >= 4 {
		m.base = base4
	}
	switch i & 3 {
	case 1:
		m.index = joinStep
	case 2:
		m.index, m.scale = joinStep, 2
	case 3:
		m.index = joinStep3
	}
	return m
}

// ask prefetches the lines of n vectors of so many rows.
func (x *rowJoin) ask(n, rows int) {
	for line := 0; line < n*x.bytes && !x.isa.A64; line += cacheLine {
		for i := range rows {
			if x.Tree > 0 {
				x.prefetch(rowAt(i, joinAhead, joinAhead4, line))
			} else {
				x.prefetch(mem{base: joinRow, index: joinAhead, scale: 1, disp: int32(line)})
			}
		}
	}
}

// halves joins the rows i, i+step, i+2*step … below n in halves.
func (x *rowJoin) halves(i, step, n, u int) value {
	if i+step >= n && step < TreeRows {
		return x.halves(i, TreeRows, n, u)
	}
	if step == TreeRows {
		return x.image(x.load1(x.bytes, rowAt(i, joinBase, joinBase4, u*x.bytes), nil))
	}
	return x.join(x.halves(i, 2*step, n, u), x.halves(i+step, 2*step, n, u))
}

// chain joins n vectors of all rows.
func (x *rowJoin) chain(n int, last bool) {
	sums := make([]value, n)
	for u := range sums {
		sums[u] = x.pinned()
	}
	x.copy(joinRow, joinBase)
	x.load(joinLeft, at(rdi, FrameRows))
	row, top, done := joinTo, x.newLabel(), x.newLabel()
	if !x.Onto {
		row = joinRow
		x.ask(n, 1)
	}
	first := make([]value, n)
	for u := range first {
		if first[u] = x.last; !last || !x.Onto {
			first[u] = x.load1(x.bytes, at(row, u*x.bytes), nil)
		}
		first[u] = x.image(first[u])
	}
	x.replace(sums, first)
	x.emitItems()
	if !x.Onto {
		x.op(add, joinRow, ofGPR(joinStep))
		x.opImm(sub, ofGPR(joinLeft), 1)
		x.jumpIf(equal, done)
	}
	x.align()
	x.asm.place(top)
	x.ask(n, 1)
	next := make([]value, n)
	for u := range next {
		next[u] = x.join(sums[u], x.image(x.load1(x.bytes, at(joinRow, u*x.bytes), nil)))
	}
	x.replace(sums, next)
	x.emitItems()
	x.op(add, joinRow, ofGPR(joinStep))
	x.opImm(sub, ofGPR(joinLeft), 1)
	x.jumpIf(notEqual, top)
	x.asm.place(done)
	for u := range sums {
		x.write(x.element(sums[u]), x.bytes, at(joinTo, u*x.bytes))
	}
	x.emitItems()
	for _, v := range sums {
		x.vecs.owner[x.vals[v].reg], x.vals[v].reg, x.vals[v].pinned = 0, -1, false
	}
}
