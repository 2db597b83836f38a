package native

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// CompileRowFold makes code that folds rows of memory, each to one element: f's elements are
// as wide in memory as in registers.
//
// In the frame operand 0 has the address of the first result and in RowStep the bytes to the
// next, operand 1 the same of rows, whose points are a multiple of ir.FoldLanes.
func CompileRowFold(f Fold, isa *ISA) (*Func, error) {
	k := f.Join
	if len(k.Operands) != 3 || len(k.Stores) != 1 || len(k.Scalars) > 0 {
		return nil, fmt.Errorf("codegen/native: no fold of rows of %d operands", len(k.Operands))
	}
	c := newCode(isa)
	defer c.recycle()
	c.kernel = kernel{k: k, v: Variant{Class: make([]codegen.AccessClass, 3)}}
	c.levels()
	dt := k.Operands[0].DT
	c.width = max(c.widest(), sizeOf(dt))
	c.lanes = isa.Bytes / c.width
	if dt.Size() != sizeOf(dt) {
		return nil, fmt.Errorf("codegen/native: no fold of rows of %v", dt)
	}
	c.frame = newFrame(2, 0)
	c.pointer = []gpr{noReg, noReg, noReg}
	x := rowFold{code: c, f: &f, dt: dt, size: dt.Size(), bytes: c.bytes(dt)}
	for i := range x.lanesAt {
		x.lanesAt[i] = c.frame.room(ir.FoldLanes * x.size)
	}
	x.function()
	code, err := c.finish()
	if err != nil {
		return nil, err
	}
	if len(c.cold) > 0 {
		return nil, fmt.Errorf("codegen/native: a fold of rows with a rare path")
	}
	return &Func{Frame: *c.frame, Code: code, Work: c.time(), Lanes: c.lanes}, nil
}

// rowFold is such code in the making.
type rowFold struct {
	*code
	f           *Fold
	dt          ir.DType
	size, bytes int             // of an element, and of a vector
	lanesAt     [sideBySide]int // of each row, in the frame
}

// sideBySide are the rows that are folded in turns where there are registers for their lanes:
// those of the first half and those of the second, so that there are two places in memory that
// processors fetch ahead of, which takes less time than one.
const sideBySide = 2

// passVectors are the lanes' vectors that are in registers at a time: beside them there is
// room for what joins them.
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
	for i := range 2 { // how far it is from the first half to the second
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

// rows folds n rows at a time, as often as a word of the frame says.
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

// pass joins so many vectors of each group of n rows, from number first on, to their lanes.
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
				v, lane := []value{x.load1(x.bytes, at(r, (first+u)*x.bytes), nil)}, lanes[u*n+i:][:1]
				if x.f.Image != nil {
					v = x.apply(x.f.Image, v, nil)
				}
				if join {
					v = x.apply(x.f.Join, lane, v)
				}
				x.replace(lane, v)
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
		r := x.take(&x.vecs)
		v := x.newValue(info{size: x.bytes})
		x.vecs.owner[r], x.vals[v].reg, x.vals[v].pinned = v, int16(r), true
		lanes = append(lanes, v)
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

// result joins the lanes of row i in halves and stores what they come to at rax.
func (x *rowFold) result(i int) {
	all := x.lanes
	v := x.lanesOf(i, 0, all)
	for w := all / 2; w > 0; w /= 2 {
		v = x.joinAt(x.f.Join, max(w, x.isa.leastLanes()), v, x.upper(v, w*x.size))
	}
	x.lanes = x.isa.leastLanes()
	if x.f.Element != nil {
		v = x.apply(x.f.Element, []value{v}, nil)[0]
	}
	it := item{o: vmovssTo, size: 16, s: [3]value{v}, mem: at(rax, 0), inMem: true, imm: noImm}
	if x.size == 8 {
		it.o = vmovqTo
	}
	x.store1(it, x.size)
	x.lanes = all
	x.emitItems()
}

// lanesOf is the vector of row i's lanes from l on when those that are w apart and more are
// joined.
func (x *rowFold) lanesOf(i, l, w int) value {
	if w == ir.FoldLanes {
		return x.load1(x.bytes, at(rdi, x.lanesAt[i]+l*x.size), nil)
	}
	return x.joinAt(x.f.Join, x.lanes, x.lanesOf(i, l, 2*w), x.lanesOf(i, l+w, 2*w))
}
