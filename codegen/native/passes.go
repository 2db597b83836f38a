package native

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// passes make the function of a kernel, in this order. Passes 1 to 7 decide and emit nothing, passes 8
// to 13 emit the function from its start to its end, each with the registers allocated as it goes
// (alloc.go). Finish then fills in the distances.
var passes = [...]struct {
	name, does string
	run        func(c *code)
}{
	{"1 levels", "finds how often each value is computed and whether it is used", (*code).levels},
	{"2 lanes", "gives vectors as many lanes as the widest value allows", (*code).chooseLanes},
	{"3 frame", "places the values of the call and of a row that loops read", (*code).layOut},
	{"4 divisors", "prepares reciprocals of divisors that divide many elements", (*code).findDivisors},
	{"5 masks", "prepares a row's last, partial vector", (*code).makeTails},
	{"6 pointers", "gives registers to the addresses that loops use most", (*code).choosePointers},
	{"7 schedule", "chooses the vectors per step, the body's order and the values that keep registers", (*code).plan},
	{"8 call", "emits the values of the call", (*code).emitCall},
	{"9 row", "emits the values of a row and the start of its folds", (*code).emitRow},
	{"10 loop", "emits whole steps of several vectors", (*code).emitLoop},
	{"11 rest", "emits single vectors, the last one partial", (*code).emitRest},
	{"12 end", "emits the results of folds, then the next row or the return", (*code).emitEnd},
	{"13 cold", "emits slow paths behind the loops", (*code).emitCold},
}

// chooseLanes gives all vectors as many lanes as one of the widest value has.
func (c *code) chooseLanes() {
	c.width = c.widest()
	c.Lanes = c.ISA.Bytes / c.width
}

// layOut makes the frame. Values of lower levels that others read have a place there, and so do the
// distances of lanes from a vector's first index.
func (c *code) layOut() {
	c.frame = newFrame(len(c.k.Operands)+len(c.k.Reduces), len(c.k.Scalars))
	for l := once; l < perPoint; l++ {
		for _, r := range c.outside(l) {
			c.give(r)
		}
	}
	for _, in := range c.k.Body {
		if i := in.Imm; in.Op == ir.IndexLo && (c.v.Class[i] == codegen.Contiguous || c.v.Class[i] == codegen.Strided) && c.laneSteps[i] == 0 {
			c.laneSteps[i] = c.NewValue(Info{Size: c.Lanes * 4, Home: InFrame, Mem: At(RDI, c.frame.vector(c.ISA))})
		}
	}
}

// makeTails makes the masks of a row's last vector: a mask register, or a vector for each width of
// lanes.
func (c *code) makeTails() {
	if c.ISA.Masks {
		c.tails[0] = c.NewValue(Info{Mask: true})
		c.Vals[c.tails[0]].Reg, c.Vals[c.tails[0]].Pinned = tailMaskReg, true
		return
	}
	for i, size := range []int{4, 8} {
		c.tails[i] = c.NewValue(Info{Size: c.Lanes * size, Home: InFrame, Mem: At(RDI, c.frame.vector(c.ISA))})
	}
}

// emitCall computes what is the same for all rows.
func (c *code) emitCall() {
	c.note("once")
	c.straight(once, 1)
}

// emitRow begins a row: it loads the addresses, and computes what is the same for all points.
func (c *code) emitRow() {
	c.row = c.NewLabel()
	c.Place(c.row)
	for i, g := range c.pointer {
		if g != NoReg {
			c.Load(g, operandWord(i, Address))
		}
	}
	c.note("for a row")
	c.straight(perRow, 1)
	if !c.v.Columns {
		c.startFolds()
	}
	c.Load(RDX, At(RDI, FramePoints))
	c.Clear(RCX)
	c.pin()
}

// emitLoop emits the main loop. Without masks in registers, a loop of single whole vectors follows it.
func (c *code) emitLoop() {
	c.loop(c.unroll, c.turns)
	if c.unroll > 1 && !c.ISA.Masks {
		c.loop(1, 0)
	}
}

// emitRest handles the points that are no whole step.
func (c *code) emitRest() {
	end := c.NewLabel()
	c.rest(c.tails[0], c.tails[1], end)
	c.Place(end)
}

// emitEnd ends a row.
func (c *code) emitEnd() {
	if !c.v.Columns {
		c.endFolds()
	}
	c.nextRow(c.row)
}

// emitCold emits the slow paths, and those of the sub-programs that they call.
func (b *Builder) emitCold() {
	for len(b.Cold) > 0 {
		list := b.Cold
		b.Cold = nil
		for _, f := range list {
			f()
		}
	}
}
