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
		c.folds = append(c.folds, c.frame.room(ir.FoldLanes*SizeOf(dt)))
	}
	return c.folds[j]
}

func (c *code) foldDType(j int) ir.DType { return c.k.Body[c.k.Reduces[j].Value].DT }

// startFolds emits the initialisation of the lanes at the start of a row.
func (c *code) startFolds() {
	for j := range c.v.Folds {
		size := SizeOf(c.foldDType(j))
		n := c.Lanes * size
		start := c.Splat(size, c.v.Folds[j].Start, n)
		for u := range ir.FoldLanes / c.Lanes {
			c.write(start, n, At(RDI, c.lanesOf(j)+u*n))
		}
	}
	c.emitItems()
}

// fold appends the items that join vector u of a step's values of Reduce j to their lanes.
func (c *code) fold(j int, v Value, u, vectors int) {
	f, size := &c.v.Folds[j], SizeOf(c.foldDType(j))
	n := c.Lanes * size
	if c.inTurn && c.accs[j] != nil {
		c.accumulate(j, v, u, vectors)
		return
	}
	if f.Image != nil {
		v = c.apply(f.Image, []Value{v}, nil)[0]
	}
	lanes := Mem{Base: RDI, Index: RBX, Scale: uint8(size), Disp: int32(c.lanesOf(j) + u*n)}
	which := func() { // points before this step; a step is a part of the lanes
		c.Copy(RBX, RCX)
		c.OpImm(And, OfGPR(RBX), ir.FoldLanes-1)
	}
	if c.inTurn {
		lanes, which = At(RDI, c.lanesOf(j)+(c.turn*vectors+u)*n), nil
	}
	before := c.load1(n, lanes, which)
	v = c.apply(f.Join, []Value{before}, []Value{v})[0]
	c.StoreValid(v, before, Dense{Size: size, N: n, M: lanes, Pre: which})
}

// joined appends the items that join vector u of a step's values of Reduce j to the memory's
// contents.
func (c *code) joined(j int, v Value, u int) Value {
	i, dt := len(c.k.Operands)+j, c.foldDType(j)
	before := c.denseLoad(i, dt, 0, u)
	if before == 0 {
		before = c.laneLoad(i, dt, u, 0, nil)
	}
	return c.apply(c.v.Folds[j].Join, []Value{before}, []Value{v})[0]
}

// endFolds joins the lanes of a row in halves and stores the element.
func (c *code) endFolds() {
	c.unpin()
	all := c.Lanes
	for j := range c.v.Folds {
		f, size := &c.v.Folds[j], SizeOf(c.foldDType(j))
		v := c.halves(j, 0, all)
		for w := all / 2; w > 0; w /= 2 {
			v = c.joinAt(f.Join, max(w, c.ISA.LeastLanes), v, c.Upper(v, w*size))
		}
		c.Lanes = c.ISA.LeastLanes
		if f.Element != nil {
			v = c.apply(f.Element, []Value{v}, nil)[0]
		}
		c.StoreOne(v, Dense{Size: size, M: At(RAX, 0), Pre: func() { c.Load(RAX, operandWord(len(c.k.Operands)+j, Address)) }})
		c.Lanes = all
	}
	c.emitItems()
}

// halves is the vector of lanes from i on, after joining lanes that are w or more apart.
func (c *code) halves(j, i, w int) Value {
	if size := SizeOf(c.foldDType(j)); w == ir.FoldLanes {
		n := c.Lanes * size
		return c.load1(n, At(RDI, c.lanesOf(j)+i*size), nil)
	}
	return c.joinAt(c.v.Folds[j].Join, c.Lanes, c.halves(j, i, 2*w), c.halves(j, i+w, 2*w))
}

// joinAt joins vectors of so many lanes.
func (c *code) joinAt(join *codegen.Kernel, lanes int, x, y Value) Value {
	all := c.Lanes
	c.Lanes = lanes
	defer func() { c.Lanes = all }()
	return c.apply(join, []Value{x}, []Value{y})[0]
}
