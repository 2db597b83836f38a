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
		return nil, fmt.Errorf("codegen/native: the join of rows %+v is invalid", j)
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
	last Value // the last vector of the results before anything was joined to it
}

// Registers. A tree uses two bases, four rows apart, and adds 0 to 3 steps to each. A chain counts
// its rows.
const (
	joinBase, joinBase4, joinStep, joinStep3 = R8, R9, r10, r11
	joinRow, joinLeft                        = RBX, R9
	joinAhead, joinTo, joinColumns           = r12, RSI, RDX
	joinAhead4                               = R13
)

// joinVectors is the number of vectors per step.
const joinVectors = 4

func (x *rowJoin) function() {
	unit := x.NewLabel()
	x.Place(unit)
	x.Load(joinBase, operandWord(1, Address))
	x.Load(joinStep, operandWord(1, RowStep))
	x.Load(joinAhead, operandWord(1, Step))
	x.Load(joinTo, operandWord(0, Address))
	x.Load(joinColumns, At(RDI, FramePoints))
	if x.Tree > 0 {
		x.Lea(joinStep3, Mem{Base: joinStep, Index: joinStep, Scale: 2})
		x.Lea(joinBase4, Mem{Base: joinBase, Index: joinStep, Scale: 4})
		x.Lea(joinAhead4, Mem{Base: joinBase4, Index: joinAhead, Scale: 1})
		x.Op(Add, joinAhead, OfGPR(joinBase))
	}
	if x.Onto { // the last vector overlaps columns that were joined before
		x.last = x.pinned()
		x.LoadVec(uint8(x.Vals[x.last].Reg), x.bytes, Mem{Base: joinTo, Index: joinColumns, Scale: uint8(x.size), Disp: int32(-x.bytes)})
	}
	end := x.NewLabel()
	x.steps(joinVectors)
	x.steps(1)
	x.OpImm(Cmp, OfGPR(joinColumns), 0)
	x.JumpIf(Equal, end)
	x.OpImm(Sub, OfGPR(joinColumns), x.Lanes)
	x.Copy(RAX, joinColumns)
	x.Shift(Shl, true, RAX, bits.TrailingZeros(uint(x.size)))
	x.advance(func(r GPR) { x.Op(Add, r, OfGPR(RAX)) })
	x.step(1, true)
	x.Place(end)
	x.unpin()
	for i, step := range []int{RowStep, IndexStep} {
		x.Load(RAX, operandWord(i, step))
		x.OpTo(Add, operandWord(i, Address), RAX)
	}
	x.OpImm(Sub, InMem(At(RDI, FrameUnits)), 1)
	x.JumpIf(NotEqual, unit)
	x.Ret()
}

// advance moves the column pointers on.
func (x *rowJoin) advance(move func(GPR)) {
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
	top, over := x.NewLabel(), x.NewLabel()
	x.OpImm(Sub, OfGPR(joinColumns), n*x.Lanes)
	x.JumpIf(Less, over)
	x.align()
	x.Place(top)
	x.step(n, false)
	x.advance(func(r GPR) { x.OpImm(Add, OfGPR(r), n*x.bytes) })
	x.OpImm(Sub, OfGPR(joinColumns), n*x.Lanes)
	x.JumpIf(GreaterEqual, top)
	x.Place(over)
	x.OpImm(Add, OfGPR(joinColumns), n*x.Lanes)
}

func (x *rowJoin) step(n int, last bool) {
	if x.Tree == 0 {
		x.chain(n, last)
		return
	}
	x.ask(n, x.Tree)
	for u := range n {
		x.write(x.element(x.halves(0, 1, x.Tree, u)), x.bytes, At(joinTo, u*x.bytes))
	}
	x.emitItems()
}

// rowAt is row i of a tree; base4 is four rows after base.
func rowAt(i int, base, base4 GPR, disp int) Mem {
	m := Mem{Base: base, Index: NoReg, Scale: 1, Disp: int32(disp)}
	if i >= 4 {
		m.Base = base4
	}
	switch i & 3 {
	case 1:
		m.Index = joinStep
	case 2:
		m.Index, m.Scale = joinStep, 2
	case 3:
		m.Index = joinStep3
	}
	return m
}

// ask prefetches the lines of n vectors of so many rows.
func (x *rowJoin) ask(n, rows int) {
	for line := 0; line < n*x.bytes && x.ISA.Prefetches; line += cacheLine {
		for i := range rows {
			if x.Tree > 0 {
				x.Prefetch(rowAt(i, joinAhead, joinAhead4, line), false)
			} else {
				x.Prefetch(Mem{Base: joinRow, Index: joinAhead, Scale: 1, Disp: int32(line)}, false)
			}
		}
	}
}

// halves joins the rows i, i+step, i+2*step … below n in halves.
func (x *rowJoin) halves(i, step, n, u int) Value {
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
	sums := make([]Value, n)
	for u := range sums {
		sums[u] = x.pinned()
	}
	x.Copy(joinRow, joinBase)
	x.Load(joinLeft, At(RDI, FrameRows))
	row, top, done := joinTo, x.NewLabel(), x.NewLabel()
	if !x.Onto {
		row = joinRow
		x.ask(n, 1)
	}
	first := make([]Value, n)
	for u := range first {
		if first[u] = x.last; !last || !x.Onto {
			first[u] = x.load1(x.bytes, At(row, u*x.bytes), nil)
		}
		first[u] = x.image(first[u])
	}
	x.replace(sums, first)
	x.emitItems()
	if !x.Onto {
		x.Op(Add, joinRow, OfGPR(joinStep))
		x.OpImm(Sub, OfGPR(joinLeft), 1)
		x.JumpIf(Equal, done)
	}
	x.align()
	x.Place(top)
	x.ask(n, 1)
	next := make([]Value, n)
	for u := range next {
		next[u] = x.join(sums[u], x.image(x.load1(x.bytes, At(joinRow, u*x.bytes), nil)))
	}
	x.replace(sums, next)
	x.emitItems()
	x.Op(Add, joinRow, OfGPR(joinStep))
	x.OpImm(Sub, OfGPR(joinLeft), 1)
	x.JumpIf(NotEqual, top)
	x.Place(done)
	for u := range sums {
		x.write(x.element(sums[u]), x.bytes, At(joinTo, u*x.bytes))
	}
	x.emitItems()
	for _, v := range sums {
		x.Vecs.Owner[x.Vals[v].Reg], x.Vals[v].Reg, x.Vals[v].Pinned = 0, -1, false
	}
}
