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

const foldRow, foldNext, foldCount = R8, R9, RDX

func (x *rowFold) function() {
	if vectors := ir.FoldLanes / x.Lanes; sideBySide*vectors > x.ISA.passVectors() {
		x.rows(1, FrameRows)
		x.Ret()
		return
	}
	x.Load(foldCount, At(RDI, FrameRows))
	x.Shift(Shr, true, foldCount, 1)
	x.Store(At(RDI, frameCount), foldCount)
	for i := range 2 { // the distance from the first half to the second
		x.Load(RAX, operandWord(i, RowStep))
		x.Imul(RAX, OfGPR(foldCount))
		x.Store(operandWord(i, Step), RAX)
	}
	x.rows(sideBySide, frameCount)
	x.Load(RAX, At(RDI, FrameRows))
	x.OpImm(And, OfGPR(RAX), 1)
	x.Store(At(RDI, frameCount), RAX)
	for i := range 2 {
		x.Load(RAX, operandWord(i, Step))
		x.OpTo(Add, operandWord(i, Address), RAX)
	}
	x.rows(1, frameCount)
	x.Ret()
}

// rows folds n rows at a time, as often as the word count of the frame says.
func (x *rowFold) rows(n, count int) {
	top, end := x.NewLabel(), x.NewLabel()
	x.OpImm(Cmp, InMem(At(RDI, count)), 0)
	x.JumpIf(Equal, end)
	x.Place(top)
	vectors := ir.FoldLanes / x.Lanes
	each := min(vectors, x.ISA.passVectors()/n)
	for first := 0; first < vectors; first += each {
		x.pass(n, first, each)
	}
	x.Load(RAX, operandWord(0, Address))
	x.result(0)
	if n > 1 {
		x.Op(Add, RAX, InMem(operandWord(0, Step)))
		x.result(1)
	}
	for i := range 2 {
		x.Load(RAX, operandWord(i, RowStep))
		x.OpTo(Add, operandWord(i, Address), RAX)
	}
	x.OpImm(Sub, InMem(At(RDI, count)), 1)
	x.JumpIf(NotEqual, top)
	x.Place(end)
}

// pass joins each vectors of each group of n rows, from vector first on, to their lanes.
func (x *rowFold) pass(n, first, each int) {
	rows := []GPR{foldRow, foldNext}[:n]
	x.Load(foldRow, operandWord(1, Address))
	if n > 1 {
		x.Copy(foldNext, foldRow)
		x.Op(Add, foldNext, InMem(operandWord(1, Step)))
	}
	x.Load(foldCount, At(RDI, FramePoints))
	var lanes []Value
	group := func(join bool) {
		for u := range each {
			for i, r := range rows {
				v, lane := x.image(x.load1(x.bytes, At(r, (first+u)*x.bytes), nil)), lanes[u*n+i]
				if join {
					v = x.join(lane, v)
				}
				x.replace([]Value{lane}, []Value{v})
			}
		}
		x.emitItems()
	}
	onward := func() {
		for _, r := range rows {
			x.OpImm(Add, OfGPR(r), ir.FoldLanes*x.size)
		}
		x.OpImm(Sub, OfGPR(foldCount), ir.FoldLanes)
	}
	for range each * n {
		lanes = append(lanes, x.pinned())
	}
	top, done := x.NewLabel(), x.NewLabel()
	group(false)
	onward()
	x.JumpIf(Equal, done)
	x.align()
	x.Place(top)
	group(true)
	onward()
	x.JumpIf(NotEqual, top)
	x.Place(done)
	for i, v := range lanes {
		x.write(v, x.bytes, At(RDI, x.lanesAt[i%n]+(first+i/n)*x.bytes))
	}
	x.emitItems()
	x.unpin()
}

// result joins the lanes of row i in halves and stores the element at rax.
func (x *rowFold) result(i int) {
	all := x.Lanes
	v := x.lanesOf(i, 0, all)
	for w := all / 2; w > 0; w /= 2 {
		v = x.joinSome(max(w, x.leastLanes()), v, x.Upper(v, w*x.size))
	}
	x.Lanes = x.leastLanes()
	x.StoreOne(x.element(v), Dense{Size: x.size, M: At(RAX, 0)})
	x.Lanes = all
	x.emitItems()
}

// lanesOf is the vector of row i's lanes from l on, after joining lanes that are w or more apart.
func (x *rowFold) lanesOf(i, l, w int) Value {
	if w == ir.FoldLanes {
		return x.load1(x.bytes, At(RDI, x.lanesAt[i]+l*x.size), nil)
	}
	return x.join(x.lanesOf(i, l, 2*w), x.lanesOf(i, l+w, 2*w))
}
