package native

import "github.com/millrace-go/millrace/ir"

// CompileRowFold makes code that folds rows of memory to one element each. f's elements must be as
// wide in memory as in registers.
//
// In the frame operand 0 has the address of the first result and, in RowStep, the bytes to the next.
// Operand 1 has the same for rows, whose points are a multiple of ir.FoldLanes.
func CompileRowFold(f Fold, isa *ISA) (*Func, error) {
	m, err := newMemoryFold(&f, isa)
	if err != nil {
		return nil, err
	}
	defer m.recycle()
	x := rowFold{memoryFold: m}
	for i := range x.lanesAt {
		x.lanesAt[i] = m.frame.room(ir.FoldLanes * x.size)
	}
	x.function()
	return m.end(1)
}

// rowFold is the code of CompileRowFold that is being made.
type rowFold struct {
	*memoryFold
	lanesAt [sideBySide]int // by row: its lanes in the frame
}

// sideBySide is the number of rows that are folded in turns if their lanes fit into registers: one
// of the first half of the rows and one of the second. Processors then prefetch at two places in
// memory, which is faster than at one.
const sideBySide = 2

// passVectors is the number of vectors of lanes in registers at a time. The other registers are for
// the join.
func (t *ISA) passVectors() int {
	if t.Regs < 24 {
		return 8
	}
	return 16
}

const foldRow, foldNext, foldCount = r8, r9, rdx

func (x *rowFold) function() {
	if vectors := ir.FoldLanes / x.lanes; sideBySide*vectors > x.isa.passVectors() {
		x.rows(1, FrameRows)
		x.ret()
		return
	}
	x.load(foldCount, at(rdi, FrameRows))
	x.shift(shr, true, foldCount, 1)
	x.store(at(rdi, frameCount), foldCount)
	for i := range 2 { // the distance from the first half to the second
		x.load(rax, operandWord(i, RowStep))
		x.imul(rax, ofGPR(foldCount))
		x.store(operandWord(i, Step), rax)
	}
	x.rows(sideBySide, frameCount)
	x.load(rax, at(rdi, FrameRows))
	x.opImm(and, ofGPR(rax), 1)
	x.store(at(rdi, frameCount), rax)
	for i := range 2 {
		x.load(rax, operandWord(i, Step))
		x.opTo(add, operandWord(i, Address), rax)
	}
	x.rows(1, frameCount)
	x.ret()
}

// rows folds n rows at a time, as often as the word count of the frame says.
func (x *rowFold) rows(n, count int) {
	top, end := x.newLabel(), x.newLabel()
	x.opImm(cmp, inMem(at(rdi, count)), 0)
	x.jumpIf(equal, end)
	x.asm.place(top)
	vectors := ir.FoldLanes / x.lanes
	each := min(vectors, x.isa.passVectors()/n)
	for first := 0; first < vectors; first += each {
		x.pass(n, first, each)
	}
	x.load(rax, operandWord(0, Address))
	x.result(0)
	if n > 1 {
		x.op(add, rax, inMem(operandWord(0, Step)))
		x.result(1)
	}
	for i := range 2 {
		x.load(rax, operandWord(i, RowStep))
		x.opTo(add, operandWord(i, Address), rax)
	}
	x.opImm(sub, inMem(at(rdi, count)), 1)
	x.jumpIf(notEqual, top)
	x.asm.place(end)
}

// pass joins each vectors of each group of n rows, from vector first on, to their lanes.
func (x *rowFold) pass(n, first, each int) {
	rows := []gpr{foldRow, foldNext}[:n]
	x.load(foldRow, operandWord(1, Address))
	if n > 1 {
		x.copy(foldNext, foldRow)
		x.op(add, foldNext, inMem(operandWord(1, Step)))
	}
	x.load(foldCount, at(rdi, FramePoints))
	var lanes []value
	group := func(join bool) {
		for u := range each {
			for i, r := range rows {
				v, lane := x.image(x.load1(x.bytes, at(r, (first+u)*x.bytes), nil)), lanes[u*n+i]
				if join {
					v = x.join(lane, v)
				}
				x.replace([]value{lane}, []value{v})
			}
		}
		x.emitItems()
	}
	onward := func() {
		for _, r := range rows {
			x.opImm(add, ofGPR(r), ir.FoldLanes*x.size)
		}
		x.opImm(sub, ofGPR(foldCount), ir.FoldLanes)
	}
	for range each * n {
		lanes = append(lanes, x.pinned())
	}
	top, done := x.newLabel(), x.newLabel()
	group(false)
	onward()
	x.jumpIf(equal, done)
	x.align()
	x.asm.place(top)
	group(true)
	onward()
	x.jumpIf(notEqual, top)
	x.asm.place(done)
	for i, v := range lanes {
		x.write(v, x.bytes, at(rdi, x.lanesAt[i%n]+(first+i/n)*x.bytes))
	}
	x.emitItems()
	x.unpin()
}

// result joins the lanes of row i in halves and stores the element at rax.
func (x *rowFold) result(i int) {
	all := x.lanes
	v := x.lanesOf(i, 0, all)
	for w := all / 2; w > 0; w /= 2 {
		v = x.joinSome(max(w, x.leastLanes()), v, x.above(v, w*x.size))
	}
	x.lanes = x.leastLanes()
	x.one(x.element(v), at(rax, 0))
	x.lanes = all
	x.emitItems()
}

// lanesOf is the vector of row i's lanes from l on, after joining lanes that are w or more apart.
func (x *rowFold) lanesOf(i, l, w int) value {
	if w == ir.FoldLanes {
		return x.load1(x.bytes, at(rdi, x.lanesAt[i]+l*x.size), nil)
	}
	return x.join(x.lanesOf(i, l, 2*w), x.lanesOf(i, l+w, 2*w))
}
