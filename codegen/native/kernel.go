package native

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Variant is what code may rely on beyond the kernel itself.
type Variant struct {
	// Class holds one class per operand, for the points of a row. Of a staged operand the
	// caller knows where each point is, see Positions. Outputs are dense or strided.
	Class []codegen.AccessClass
	// Past are operands, a bit each, that are stored past the caches: their rows begin at
	// multiples of 64 bytes, and so do rows of the next step.
	Past uint64
	// Far says that memory streams through: loops ask for the lines that they will come
	// to AheadBytes further on. It is for rows that are much longer, or go on in the next.
	Far bool
	// Folds, where there are any, are one for each Reduce, whose values are folded in place
	// of being stored: its operand has the address of the first row's result, and RowStep.
	Folds []Fold
	// Ahead are dense operands, a bit each, of which more is asked for while the loop runs:
	// what is as far behind each point as Ahead says. NEON's does not ask.
	Ahead uint64
	// Columns says that it is not rows that are folded: the value of each point is joined to
	// what lies at the operand of its Reduce, as Address, Step and RowStep say.
	Columns bool
}

// Func is a kernel as machine code: a function of a frame that does so many points of so
// many rows.
type Func struct {
	Frame
	Code []byte
	Work int // about how many vector instructions a step takes at worst, for a guess at how long
	// Lanes is the points of a step.
	Lanes int
	reads []bool
	text  *listing
}

// Reads tells operands that the code reads or writes.
func (f *Func) Reads(operand int) bool { return f.reads[operand] }

// Text is the assembly, the kernel's instructions beside it, where it was asked for.
func (f *Func) Text() string { return f.text.String() }

// level says how often a value is computed.
type level uint8

const (
	once level = iota // in a call
	perRow
	perPoint
)

// kernel is what a code is made of.
type kernel struct {
	k        *codegen.Kernel
	v        Variant
	level    []level
	need     []bool  // values that something reads
	kept     []value // of those of lower levels, in the frame
	steps    []value // of index operands, see makeSteps
	pointer  []gpr   // of operands, noReg where it is in none
	divisors map[ir.Ref]divisor
	// hidesDivisions says that a step computes so much else that its divisions take no time.
	hidesDivisions bool
	order          []int // in which the body is computed; nil: as it stands
}

// routine is a sub-program as code that is jumped to.
type routine struct {
	id    uint64
	entry label
}

// part is one straight line of code.
type part struct {
	at [][]value // of the vectors of a step, the value of each instruction
}

// Compile makes code of a lowered kernel. text says that it is to be read.
func Compile(k *codegen.Kernel, v Variant, isa *ISA, text bool) (*Func, error) {
	if len(v.Class) != len(k.Operands) {
		return nil, fmt.Errorf("codegen/native: %d classes for %d operands", len(v.Class), len(k.Operands))
	}
	c := newCode(isa)
	defer c.recycle()
	if text {
		c.lines = &listing{}
	}
	c.kernel = kernel{k: k, v: v}
	for i, o := range k.Operands {
		if o.Kind == codegen.Output && v.Class[i] != codegen.Contiguous && v.Class[i] != codegen.Strided {
			return nil, fmt.Errorf("codegen/native: output %d is %v", i, v.Class[i])
		}
	}
	c.levels()
	c.width = c.widest()
	c.lanes = isa.Bytes / c.width
	c.frame = newFrame(len(k.Operands)+len(k.Reduces), len(k.Scalars))
	c.function()
	for len(c.cold) > 0 {
		list := c.cold
		c.cold = nil
		for _, f := range list {
			f()
		}
	}
	code, err := c.finish()
	if err != nil {
		return nil, err
	}
	f := &Func{Frame: *c.frame, Code: code, Work: c.time(), Lanes: c.lanes, text: c.lines}
	for i := range k.Operands {
		f.reads = append(f.reads, c.inLoop(i))
	}
	return f, nil
}

// levels finds how often each value is computed, and which are.
func (c *code) levels() {
	body := c.k.Body
	c.level, c.need, c.kept = make([]level, len(body)), make([]bool, len(body)), make([]value, len(body))
	c.steps = make([]value, len(c.k.Operands))
	for i, in := range body {
		l := once
		switch in.Op {
		case ir.Load:
			if l = perPoint; in.Args[0] == ir.None && c.v.Class[in.Imm] == codegen.Splat {
				l = perRow
			}
		case ir.IndexLo, ir.IndexHi:
			if l = perPoint; c.v.Class[in.Imm] == codegen.Splat {
				l = perRow
			}
		case ir.LoadAt:
			l = perPoint
		}
		for _, a := range in.Args {
			if a != ir.None {
				l = max(l, c.level[a])
			}
		}
		c.level[i] = l
	}
	for _, s := range c.k.Stores {
		c.need[s.Value] = true
	}
	for _, r := range c.k.Reduces {
		c.need[r.Value] = true
	}
	for i := len(body) - 1; i >= 0; i-- {
		if !c.need[i] {
			continue
		}
		if r, a, b := c.extremum(body[i]); r != nil {
			c.need[a], c.need[b] = true, true
			continue
		}
		for _, a := range body[i].Args {
			if a != ir.None {
				c.need[a] = true
			}
		}
	}
}

// widest is the bytes of the widest value in vectors.
func (c *code) widest() int {
	w := 4
	for i, in := range c.k.Body {
		if c.need[i] {
			w = max(w, sizeOf(in.DT))
		}
	}
	return w
}

// work counts the values of a step.
func (c *code) work() int {
	n := 0
	for i := range c.k.Body {
		if c.need[i] && c.level[i] == perPoint {
			n++
		}
	}
	return n
}

// time is about how long a step takes at worst, in instructions.
func (c *code) time() int {
	n := c.work() + c.step
	for i := range c.v.Folds {
		n += len(c.v.Folds[i].Join.Body)
		if image := c.v.Folds[i].Image; image != nil {
			n += len(image.Body)
		}
	}
	for i, in := range c.k.Body {
		if c.need[i] && c.level[i] == perPoint && (in.Op == ir.FDiv || in.Op == ir.Sqrt) {
			n += slowUnit - 1
		}
	}
	return n
}

// slowUnit is what a division or a root takes, as so many instructions.
const slowUnit = 12

// outside tells values of a lower level that those of level l, or what is stored, read.
func (c *code) outside(l level) []ir.Ref {
	read := make([]bool, len(c.k.Body))
	for i, in := range c.k.Body {
		if !c.need[i] || c.level[i] <= l {
			continue
		}
		for _, a := range in.Args {
			if a != ir.None {
				read[a] = true
			}
		}
	}
	for _, s := range c.k.Stores {
		read[s.Value] = true
	}
	for _, r := range c.k.Reduces {
		read[r.Value] = true
	}
	var list []ir.Ref
	for i, in := range c.k.Body {
		if read[i] && c.need[i] && c.level[i] == l && in.Op != ir.Const {
			list = append(list, ir.Ref(i))
		}
	}
	return list
}

// give gives a value of the frame to what is computed once or for a row.
func (c *code) give(r ir.Ref) {
	dt := c.k.Body[r].DT
	n := c.bytes(dt)
	v := info{mask: dt == ir.Bool && c.isa.EVEX, size: n, home: inFrame, mem: at(rdi, c.frame.vector(c.isa))}
	c.kept[r] = c.newValue(v)
}

// function emits the whole.
func (c *code) function() {
	for l := once; l < perPoint; l++ {
		for _, r := range c.outside(l) {
			c.give(r)
		}
	}
	for _, in := range c.k.Body {
		if i := in.Imm; in.Op == ir.IndexLo && (c.v.Class[i] == codegen.Contiguous || c.v.Class[i] == codegen.Strided) && c.steps[i] == 0 {
			c.steps[i] = c.newValue(info{size: c.lanes * 4, home: inFrame, mem: at(rdi, c.frame.vector(c.isa))})
		}
	}
	c.findDivisors()
	tail4, tail8 := value(0), value(0)
	if c.isa.EVEX {
		tail4 = c.newValue(info{mask: true})
		c.vals[tail4].reg, c.vals[tail4].pinned = 7, true
	} else {
		tail4 = c.newValue(info{size: c.lanes * 4, home: inFrame, mem: at(rdi, c.frame.vector(c.isa))})
		tail8 = c.newValue(info{size: c.lanes * 8, home: inFrame, mem: at(rdi, c.frame.vector(c.isa))})
	}
	c.choosePointers()
	unroll := c.plan()
	c.note("once")
	c.straight(once, 1)
	row, end := c.newLabel(), c.newLabel()
	c.asm.place(row)
	for i, g := range c.pointer {
		if g != noReg {
			c.load(g, operandWord(i, Address))
		}
	}
	c.note("for a row")
	c.straight(perRow, 1)
	if !c.v.Columns {
		c.startFolds()
	}
	c.load(rdx, at(rdi, FramePoints))
	c.clear(rcx)
	c.pin()
	c.loop(unroll, c.turns)
	if unroll > 1 && !c.isa.EVEX {
		c.loop(1, 0)
	}
	c.rest(tail4, tail8, end)
	c.asm.place(end)
	if !c.v.Columns {
		c.endFolds()
	}
	c.nextRow(row)
}

// choosePointers gives registers to the operands whose addresses the loops read.
func (c *code) choosePointers() {
	n := len(c.k.Operands) + len(c.k.Reduces)
	c.pointer = slices.Repeat([]gpr{noReg}, n)
	next := 0
	for i := n - 1; i >= 0; i-- { // results first: there are few
		if next == len(pointers) {
			return
		}
		if i >= len(c.v.Class) && c.v.Folds != nil && !c.v.Columns || i < len(c.v.Class) && (c.k.Operands[i].Kind == codegen.Index || c.v.Class[i] == codegen.Splat || !c.touched(i)) {
			continue
		}
		c.pointer[i] = pointers[next]
		next++
	}
}

func (c *code) touched(i int) bool {
	for _, in := range c.k.Body {
		if (in.Op == ir.Load || in.Op == ir.LoadAt) && int(uint32(in.Imm)) == i {
			return true
		}
	}
	return slices.ContainsFunc(c.k.Stores, func(s codegen.Store) bool { return s.Operand == i })
}

// straight emits the values of a level, so many vectors of them in turns.
func (c *code) straight(l level, n int) {
	c.values(l, n)
	if l == once {
		for i, v := range c.steps {
			if v != 0 {
				c.makeSteps(i, v)
			}
		}
	}
	c.emitItems()
}

// values appends the items of a level.
func (c *code) values(l level, n int) {
	p := &part{}
	for range n {
		p.at = append(p.at, make([]value, len(c.k.Body)))
	}
	for i := range c.k.Body {
		if c.order != nil {
			i = c.order[i]
		}
		in := c.k.Body[i]
		if !c.need[i] || c.level[i] != l || in.Op == ir.Const {
			continue
		}
		for u := range n {
			first := len(c.items)
			v := value(0)
			if c.tail == 0 && c.divides(i) {
				v = c.divideBy(in.DT, c.valueOf(p, in.Args[0], u), c.valueOf(p, in.Args[1], u), c.divisors[in.Args[1]])
			} else {
				v = c.instr(p, in, u)
			}
			p.at[u][i] = v
			if u == 0 && c.lines != nil && len(c.items) > first {
				c.items[first].note = describe(i, in)
			}
			if k := c.kept[i]; k != 0 {
				c.keep(v, k)
			}
		}
	}
	if l < perPoint {
		c.makeDivisors(p, l)
		return
	}
	for u := range n {
		for j, r := range c.k.Reduces {
			v := c.valueOf(p, r.Value, u)
			switch {
			case c.v.Columns:
				v = c.joined(j, v, u)
			case c.v.Folds != nil:
				c.fold(j, v, u, n)
				continue
			}
			c.storeValue(len(c.k.Operands)+j, c.foldDType(j), v, u)
		}
		for _, s := range c.k.Stores {
			c.storeValue(s.Operand, c.k.Operands[s.Operand].DT, c.valueOf(p, s.Value, u), u)
		}
	}
}

// keep writes a value where others find it.
func (c *code) keep(v, kept value) {
	x := &c.vals[kept]
	if x.mask {
		c.item(item{size: 16, s: [3]value{v}, mem: x.mem, inMem: true, imm: noImm, o: kmovwTo})
		return
	}
	c.write(v, max(x.size, 16), x.mem)
}

// valueOf is the value of an instruction for vector u.
func (c *code) valueOf(p *part, r ir.Ref, u int) value {
	if in := c.k.Body[r]; in.Op == ir.Const {
		return c.constantOf(in)
	}
	if v := p.at[u][r]; v != 0 {
		return v
	}
	return c.kept[r]
}

// instr makes the value of one instruction.
func (c *code) instr(p *part, in ir.Instr, u int) value {
	switch in.Op {
	case ir.Load:
		guard := value(0)
		if in.Args[0] != ir.None {
			guard = c.valueOf(p, in.Args[0], u)
		}
		return c.operandValue(int(in.Imm), in.DT, guard, u)
	case ir.LoadAt:
		x := &indexing{index: c.valueOf(p, in.Args[0], u), wide: c.k.Body[in.Args[0]].DT == ir.Int64, mode: codegen.ModeOf(in)}
		x.same = c.level[in.Args[0]] < perPoint
		guard := value(0)
		if in.Args[1] != ir.None {
			guard = c.valueOf(p, in.Args[1], u)
		}
		return c.fromBytes(in.DT, c.laneLoad(int(uint32(in.Imm)), in.DT, u, guard, x))
	case ir.IndexLo, ir.IndexHi:
		return c.indexValue(in, u)
	case ir.Scalar:
		return c.scalar(in)
	}
	if r, a, b := c.extremum(in); r != nil {
		return c.op3(r[kinds[in.DT]], c.bytes(in.DT), c.valueOf(p, a, u), c.valueOf(p, b, u))
	}
	var x [4]value
	var dts [4]ir.DType
	n := 0
	for ; n < len(in.Args) && in.Args[n] != ir.None; n++ {
		x[n], dts[n] = c.valueOf(p, in.Args[n], u), c.k.Body[in.Args[n]].DT
	}
	return c.spell(in, x[:n], dts[:n])
}

// scalar reads a run-time scalar into all lanes.
func (c *code) scalar(in ir.Instr) value {
	size := sizeOf(in.DT)
	n := c.lanes * size
	m := at(rdi, c.frame.Scalars+8*int(in.Imm))
	v := c.item(item{d: c.vec(n), imm: noImm, emit: func(r *regs) {
		switch {
		case in.DT.Size() < 4:
			c.loadSize(in.DT.Size(), signedMemory(in.DT), rax, m)
			c.spread(r.d, n, 4, rax)
		default:
			c.splatVec(r.d, n, size, m)
		}
	}})
	return c.fromBytes(in.DT, v)
}

// makeSteps finds how far the lanes of a vector are from its first, the low halves.
func (c *code) makeSteps(i int, kept value) {
	n := c.lanes * 4
	var b []byte
	for l := range 16 {
		b = append(b, byte(l), 0, 0, 0)
	}
	iota := c.newValue(info{size: n, home: inFrame, mem: c.data(b)})
	step := c.item(item{d: c.vec(n), imm: noImm, emit: func(r *regs) {
		c.load(rax, operandWord(i, Step))
		c.spread(r.d, n, 4, rax)
	}})
	x := []value{step, iota}
	c.keep(c.spell(ir.Instr{Op: ir.Mul, DT: ir.Int32}, x, nil), kept)
}
