package native

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Variant is what the code may assume beyond the kernel itself.
type Variant struct {
	// Class has one class per operand, for the points of a row. For a staged operand the caller
	// gives the place of each point, see Positions. Outputs are dense or strided.
	Class []codegen.AccessClass
	// Past has one bit per operand: 1 to store it past the caches. Rows of such an operand begin at
	// multiples of 64 bytes, and so do the rows of the next step.
	Past uint64
	// Far says that memory streams through. Loops then prefetch the lines AheadBytes further on. It
	// is for rows that are much longer than that, or that continue in the next row.
	Far bool
	// Folds is empty, or has one Fold per Reduce. The values of that Reduce are then folded instead
	// of stored. Its operand has the address of the first row's result, and RowStep.
	Folds []Fold
	// Ahead has one bit per dense operand: 1 to prefetch it while the loop runs, at the distance
	// behind each point that the word Ahead says. NEON code does not prefetch.
	Ahead uint64
	// Columns says that columns are folded, not rows: the value of each point is joined to the value
	// in memory at the operand of its Reduce, found by Address, Step and RowStep.
	Columns bool
}

// Func is a kernel as machine code. The function takes a frame, which gives the number of rows and
// of points per row to compute.
type Func struct {
	Frame
	Code []byte
	Work int // rough number of vector instructions per step at worst, to estimate times
	// Lanes is the number of points per step.
	Lanes int
	reads []bool
	text  *Listing
}

// Reads reports operands that the code reads or writes.
func (f *Func) Reads(operand int) bool { return f.reads[operand] }

// Text is the assembly with the kernel's instructions beside it, if Compile was told to keep it.
func (f *Func) Text() string { return f.text.String() }

// level says how often a value is computed.
type level uint8

const (
	once level = iota // in one call
	perRow
	perPoint
)

// kernel is the input of a code and what is derived from it.
type kernel struct {
	k         *codegen.Kernel
	v         Variant
	level     []level
	need      []bool  // values that are used
	literals  []Value // of constants that are used
	kept      []Value // values of lower levels that others read, in the frame
	laneSteps []Value // of index operands, see makeSteps
	pointer   []GPR   // by operand: the register of its address, or noReg
	divisors  map[ir.Ref]divisor
	// hidesDivisions says that a step computes so much else that its divisions take no extra time.
	hidesDivisions bool
	order          []int    // the order in which the body is computed; nil: its own
	unroll         int      // vectors of a step of the main loop
	tails          [2]Value // masks of a row's last vector for lanes of four and eight bytes
	row            Label    // where a row begins
}

// routine is the code of a sub-program, called with jumps.
type routine struct {
	id    uint64
	entry Label
}

// part is one straight line of code.
type part struct {
	at [][]Value // by vector of a step, then by instruction: the value
}

// Compile makes code of a lowered kernel. With text it also keeps the assembly.
func Compile(k *codegen.Kernel, v Variant, isa *ISA, text bool) (*Func, error) {
	if len(v.Class) != len(k.Operands) {
		return nil, fmt.Errorf("codegen/native: the variant has %d access classes, the kernel %d operands", len(v.Class), len(k.Operands))
	}
	c := newCode(isa)
	defer c.recycle()
	if text {
		c.Lines = &Listing{}
	}
	c.setKernel(kernel{k: k, v: v})
	for i, o := range k.Operands {
		if o.Kind == codegen.Output && v.Class[i] != codegen.Contiguous && v.Class[i] != codegen.Strided {
			return nil, fmt.Errorf("codegen/native: output %d has access class %v, it must be contiguous or strided", i, v.Class[i])
		}
	}
	for _, p := range passes {
		if p.run(c); c.Err != nil {
			return nil, fmt.Errorf("%w (pass %s, which %s)", c.Err, p.name, p.does)
		}
	}
	code, err := c.finished(c.m)
	if err != nil {
		return nil, err
	}
	f := &Func{Frame: *c.frame, Code: code, Work: c.time(), Lanes: c.Lanes, text: c.Lines}
	for i := range k.Operands {
		f.reads = append(f.reads, c.inLoop(i))
	}
	return f, nil
}

// levels finds how often each value is computed, and which values are used.
func (c *code) levels() {
	body := c.k.Body
	c.level, c.need = make([]level, len(body)), make([]bool, len(body))
	c.literals, c.kept = make([]Value, len(body)), make([]Value, len(body))
	c.laneSteps = make([]Value, len(c.k.Operands))
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
		if o, a, b := c.extremum(body[i]); o != OpNone {
			c.need[a], c.need[b] = true, true
			continue
		}
		if _, _, ok := c.scalarHalf(body[i]); ok {
			continue
		}
		for _, a := range body[i].Args {
			if a != ir.None {
				c.need[a] = true
			}
		}
	}
}

// widest returns the bytes per lane of the widest value.
func (c *code) widest() int {
	w := 4
	for i, in := range c.k.Body {
		if c.need[i] {
			w = max(w, SizeOf(in.DT))
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

// time estimates the time of a step at worst, in instructions.
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

// slowUnit is the time of a division or a square root, in instructions.
const slowUnit = 12

// outside lists the values of level l that values of higher levels read, or that are stored or
// reduced.
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

// give gives a value that is computed once or per row a place in the frame.
func (c *code) give(r ir.Ref) {
	dt := c.k.Body[r].DT
	n := c.Bytes(dt)
	v := Info{Mask: dt == ir.Bool && c.ISA.Masks, Size: n, Home: InFrame, Mem: At(RDI, c.frame.vector(c.ISA))}
	c.kept[r] = c.NewValue(v)
}

// choosePointers gives registers to the addresses of operands that the loops use.
func (c *code) choosePointers() {
	n := len(c.k.Operands) + len(c.k.Reduces)
	c.pointer = slices.Repeat([]GPR{NoReg}, n)
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

// straight emits the values of a level for n vectors, whose instructions take turns.
func (c *code) straight(l level, n int) {
	c.values(l, n)
	if l == once {
		for i, v := range c.laneSteps {
			if v != 0 {
				c.makeSteps(i, v)
			}
		}
	}
	c.emitItems()
}

// values appends the items of a level.
func (c *code) values(l level, n int) {
	p, body := &part{}, len(c.k.Body)
	c.parts = slices.Grow(c.parts[:0], n*body)[:n*body]
	clear(c.parts)
	for u := range n {
		p.at = append(p.at, c.parts[u*body:(u+1)*body])
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
			v := Value(0)
			if c.Tail == 0 && c.divides(i) {
				d := c.divisors[in.Args[1]]
				v = c.DivideBy(in.DT, c.valueOf(p, in.Args[0], u), c.valueOf(p, in.Args[1], u), d.reciprocal, d.span)
			} else {
				v = c.instr(p, in, u)
			}
			p.at[u][i] = v
			if u == 0 && c.Lines != nil && len(c.items) > first {
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

// keep writes a value to its place in the frame.
func (c *code) keep(v, kept Value) {
	x := &c.Vals[kept]
	if x.Mask {
		m := x.Mem
		c.Item(Item{S: [3]Value{v}, Imm: NoImm, Emit: func(r *Regs) { c.StoreMask(m, r.S[0]) }})
		return
	}
	c.write(v, max(x.Size, 16), x.Mem)
}

// valueOf returns the value of instruction r for vector u.
func (c *code) valueOf(p *part, r ir.Ref, u int) Value {
	if in := c.k.Body[r]; in.Op == ir.Const {
		if c.literals[r] == 0 {
			c.literals[r] = c.literal(in)
		}
		return c.literals[r]
	}
	if v := p.at[u][r]; v != 0 {
		return v
	}
	return c.kept[r]
}

// instr makes the value of one instruction.
func (c *code) instr(p *part, in ir.Instr, u int) Value {
	switch in.Op {
	case ir.Load:
		guard := Value(0)
		if in.Args[0] != ir.None {
			guard = c.valueOf(p, in.Args[0], u)
		}
		return c.operandValue(int(in.Imm), in.DT, guard, u)
	case ir.LoadAt:
		x := &indexing{index: c.valueOf(p, in.Args[0], u), wide: c.k.Body[in.Args[0]].DT == ir.Int64, mode: codegen.ModeOf(in)}
		x.same = c.level[in.Args[0]] < perPoint
		guard := Value(0)
		if in.Args[1] != ir.None {
			guard = c.valueOf(p, in.Args[1], u)
		}
		return c.fromBytes(in.DT, c.laneLoad(int(uint32(in.Imm)), in.DT, u, guard, x))
	case ir.IndexLo, ir.IndexHi:
		return c.indexValue(in, u)
	case ir.Scalar:
		return c.scalar(in)
	}
	if o, a, b := c.extremum(in); o != OpNone {
		return c.Op3(o, c.Bytes(in.DT), c.valueOf(p, a, u), c.valueOf(p, b, u))
	}
	if slot, high, ok := c.scalarHalf(in); ok {
		return c.scalarWord(slot, high)
	}
	x := &c.args
	n := 0
	for ; n < len(in.Args) && in.Args[n] != ir.None; n++ {
		x.x[n], x.dts[n] = c.valueOf(p, in.Args[n], u), c.k.Body[in.Args[n]].DT
	}
	return c.spell(in, x.x[:n], x.dts[:n])
}

// scalar reads a run-time scalar into all lanes.
func (c *code) scalar(in ir.Instr) Value {
	size := SizeOf(in.DT)
	n := c.Lanes * size
	m := At(RDI, c.frame.Scalars+8*int(in.Imm))
	v := c.Item(Item{D: c.Vec(n), Imm: NoImm, Emit: func(r *Regs) {
		switch {
		case in.DT.Size() < 4:
			c.LoadSize(in.DT.Size(), signedMemory(in.DT), RAX, m)
			c.Spread(r.D, n, 4, RAX)
		default:
			c.SplatVec(r.D, n, size, m)
		}
	}})
	return c.fromBytes(in.DT, v)
}

// scalarHalf recognizes an instruction that takes half of a scalar of 64 bits, as of the seed of random
// numbers. With no other value of 64 bits, a vector has twice as many lanes.
func (c *code) scalarHalf(in ir.Instr) (slot int, high, ok bool) {
	body := c.k.Body
	if in.Op != ir.Convert || in.DT != ir.Uint32 {
		return 0, false, false
	}
	is := func(scalar, constant ir.Ref, bits uint64) bool {
		x, y := body[scalar], body[constant]
		slot = int(x.Imm)
		return x.Op == ir.Scalar && x.DT == ir.Uint64 && y.Op == ir.Const && y.Imm == bits
	}
	switch from := body[in.Args[0]]; from.Op {
	case ir.And:
		ok = is(from.Args[0], from.Args[1], 1<<32-1) || is(from.Args[1], from.Args[0], 1<<32-1)
	case ir.ShrRaw:
		high, ok = true, is(from.Args[0], from.Args[1], 32)
	}
	return slot, high, ok
}

// scalarWord reads half a scalar of 64 bits into all lanes.
func (c *code) scalarWord(slot int, high bool) Value {
	n := c.Lanes * 4
	m := At(RDI, c.frame.Scalars+8*slot)
	if high {
		m.Disp += 4
	}
	return c.Item(Item{D: c.Vec(n), Imm: NoImm, Emit: func(r *Regs) { c.SplatVec(r.D, n, 4, m) }})
}

// makeSteps computes the distance of each lane of an index operand from the first lane, as 32-bit
// low halves.
func (c *code) makeSteps(i int, kept Value) {
	n := c.Lanes * 4
	var b []byte
	for l := range 16 {
		b = append(b, byte(l), 0, 0, 0)
	}
	iota := c.NewValue(Info{Size: n, Home: InFrame, Mem: c.Data(b)})
	step := c.Item(Item{D: c.Vec(n), Imm: NoImm, Emit: func(r *Regs) {
		c.Load(RAX, operandWord(i, Step))
		c.Spread(r.D, n, 4, RAX)
	}})
	x := []Value{step, iota}
	c.keep(c.spell(ir.Instr{Op: ir.Mul, DT: ir.Int32}, x, nil), kept)
}
