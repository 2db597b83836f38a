package native

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Fold says how the function that computes the values of a Reduce folds them, each row by itself. A
// row has at most ir.FoldBlock points.
type Fold struct {
	// Join joins an element, operand 1, to a lane, operand 0; its result is operand 2. All have the
	// same dtype, which is as wide in memory as in registers.
	Join *codegen.Kernel
	// Image and Element may be nil. Image converts an element to the form that Join joins, Element
	// converts it back.
	Image, Element *codegen.Kernel
	// Extremum is ir.Maximum or ir.Minimum if elements have images: the op on elements to which Join
	// on images corresponds.
	Extremum ir.Op
	Start    uint64 // the image of the neutral element
}

// lanesOf returns the place of a fold's lanes in the frame, from which any vector of a step finds
// its own lanes.
func (c *code) lanesOf(j int) int {
	for len(c.folds) <= j {
		dt := c.k.Body[c.k.Reduces[len(c.folds)].Value].DT
		c.folds = append(c.folds, c.frame.room(ir.FoldLanes*sizeOf(dt)))
	}
	return c.folds[j]
}

func (c *code) foldDType(j int) ir.DType { return c.k.Body[c.k.Reduces[j].Value].DT }

// startFolds emits the initialisation of the lanes at the start of a row.
func (c *code) startFolds() {
	for j := range c.v.Folds {
		size := sizeOf(c.foldDType(j))
		n := c.lanes * size
		start := c.splat(size, c.v.Folds[j].Start, n)
		for u := range ir.FoldLanes / c.lanes {
			c.write(start, n, at(rdi, c.lanesOf(j)+u*n))
		}
	}
	c.emitItems()
}

// fold appends the items that join vector u of a step's values of Reduce j to their lanes.
func (c *code) fold(j int, v value, u, vectors int) {
	f, size := &c.v.Folds[j], sizeOf(c.foldDType(j))
	n := c.lanes * size
	if c.inTurn && c.accs[j] != nil {
		c.accumulate(j, v, u, vectors)
		return
	}
	if f.Image != nil {
		v = c.apply(f.Image, []value{v}, nil)[0]
	}
	lanes := mem{base: rdi, index: rbx, scale: uint8(size), disp: int32(c.lanesOf(j) + u*n)}
	which := func() { // points before this step; a step is a part of the lanes
		c.copy(rbx, rcx)
		c.opImm(and, ofGPR(rbx), ir.FoldLanes-1)
	}
	if c.inTurn {
		lanes, which = at(rdi, c.lanesOf(j)+(c.turn*vectors+u)*n), nil
	}
	before := c.load1(n, lanes, which)
	v = c.apply(f.Join, []value{before}, []value{v})[0]
	it := item{o: vmovupsTo, size: n, s: [3]value{v}, mem: lanes, inMem: true, pre: which, imm: noImm}
	switch {
	case c.isa.A64 && c.tail != 0:
		it.s[0] = c.n3(nBsl, n, v, before, c.tailOf(size))
	case size == 8 && c.isa.EVEX:
		it.o, it.k = vmovupdTo, c.tail
	case c.isa.EVEX:
		it.k = c.tail
	case c.tail != 0 && size == 8:
		it.o, it.s[2] = vmaskmovpdTo, c.tailOf(size)
	case c.tail != 0:
		it.o, it.s[2] = vmaskmovpsTo, c.tailOf(size)
	}
	c.store1(it, n)
}

// leastLanes is the number of lanes of the smallest vectors that can be joined: amd64 has no
// instruction that broadcasts a float64 to 16 bytes.
func (t *ISA) leastLanes() int {
	if t.A64 {
		return 2
	}
	return 4
}

// joined appends the items that join vector u of a step's values of Reduce j to the memory's
// contents.
func (c *code) joined(j int, v value, u int) value {
	i, dt := len(c.k.Operands)+j, c.foldDType(j)
	before := c.denseLoad(i, dt, 0, u)
	if before == 0 {
		before = c.laneLoad(i, dt, u, 0, nil)
	}
	return c.apply(c.v.Folds[j].Join, []value{before}, []value{v})[0]
}

// endFolds joins the lanes of a row in halves and stores the element.
func (c *code) endFolds() {
	c.unpin()
	all := c.lanes
	for j := range c.v.Folds {
		f, size := &c.v.Folds[j], sizeOf(c.foldDType(j))
		v := c.halves(j, 0, all)
		for w := all / 2; w > 0; w /= 2 {
			v = c.joinAt(f.Join, max(w, c.isa.leastLanes()), v, c.upper(v, w*size))
		}
		c.lanes = c.isa.leastLanes()
		if f.Element != nil {
			v = c.apply(f.Element, []value{v}, nil)[0]
		}
		it := item{o: vmovssTo, size: 16, s: [3]value{v}, mem: at(rax, 0), inMem: true, imm: noImm, pre: func() {
			c.load(rax, operandWord(len(c.k.Operands)+j, Address))
		}}
		if size == 8 {
			it.o = vmovqTo
		}
		c.store1(it, size)
		c.lanes = all
	}
	c.emitItems()
}

// halves is the vector of lanes from i on, after joining lanes that are w or more apart.
func (c *code) halves(j, i, w int) value {
	if size := sizeOf(c.foldDType(j)); w == ir.FoldLanes {
		n := c.lanes * size
		return c.load1(n, at(rdi, c.lanesOf(j)+i*size), nil)
	}
	return c.joinAt(c.v.Folds[j].Join, c.lanes, c.halves(j, i, 2*w), c.halves(j, i+w, 2*w))
}

// joinAt joins vectors of so many lanes.
func (c *code) joinAt(join *codegen.Kernel, lanes int, x, y value) value {
	all := c.lanes
	c.lanes = lanes
	defer func() { c.lanes = all }()
	return c.apply(join, []value{x}, []value{y})[0]
}

// upper shifts out the first bytes of a vector; only as many bytes again are valid afterwards.
func (c *code) upper(v value, bytes int) value {
	switch {
	case c.isa.A64 && bytes == 8:
		return c.n2(nUzp2|wide, 16, v, v)
	case c.isa.A64:
		return c.n1(nRev64, 16, v)
	case bytes == 32:
		return c.item(item{o: vextracti64x4, size: 64, d: c.vec(32), s: [3]value{v}, imm: 1})
	case bytes == 16 && c.isa.EVEX:
		return c.item(item{o: vextracti32x4, size: 32, d: c.vec(16), s: [3]value{v}, imm: 1})
	case bytes == 16:
		return c.item(item{o: vextracti128, size: 32, d: c.vec(16), s: [3]value{v}, imm: 1})
	case bytes == 8:
		return c.op2i(vpshufd, 16, 16, v, 0x4e)
	}
	return c.op2i(vpshufd, 16, 16, v, 0xb1)
}
