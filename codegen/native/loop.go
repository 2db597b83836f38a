package native

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// plan chooses how many vectors a step of the main loop computes. Their instructions take turns,
// which keeps a core's units busy while results are not ready, as long as there are enough
// registers. plan uses the remaining registers for the values that the loops read most.
func (c *code) plan() {
	unroll := 4
	switch n := c.work(); {
	case n > 160:
		unroll = 1
	case n > 64:
		unroll = 2
	}
	waitless := c.waitless()
	for ; ; unroll /= 2 {
		for _, c.order = range [][]int{waitless, nil} {
			before := c.slow
			c.values(perPoint, unroll)
			p := c.pressure()
			if p+3 <= c.ISA.Regs || unroll == 1 && c.order == nil {
				c.pins = c.mostUsed(c.choose(c.ISA.Regs-p-3, unroll) - 1)
				c.planned, c.items = c.items, c.planned[:0]
				c.unroll, c.step = unroll, (c.slow-before)/unroll
				return
			}
			c.items = c.items[:0]
		}
	}
}

// mostUsed lists the values with a home that the items read most.
func (c *code) mostUsed(n int) (list []Value) {
	for v := 1; v < len(c.Vals); v++ {
		if x := &c.Vals[v]; !x.Mask && (x.Home == InPool || x.Home == InFrame) && c.uses(Value(v)) > 0 {
			list = append(list, Value(v))
		}
	}
	slices.SortStableFunc(list, func(a, b Value) int { return c.uses(b) - c.uses(a) })
	return list[:max(0, min(n, len(list)))]
}

// pin keeps values in registers until unpin.
func (c *code) pin() {
	for _, v := range c.pins {
		r := c.Take(&c.Vecs)
		c.FromMemory(v, r)
		x := &c.Vals[v]
		c.Vecs.Owner[r], x.Reg, x.Pinned = v, int16(r), true
	}
}

// unpin frees the registers that pin took.
func (c *code) unpin() {
	for r, v := range c.Vecs.Owner {
		if v > 0 && c.Vals[v].Pinned {
			c.Vals[v].Pinned, c.Vals[v].Reg, c.Vecs.Owner[r] = false, -1, 0
		}
	}
}

// loop emits a loop over whole steps of n vectors. turns is the number of steps per iteration; 0:
// one.
func (c *code) loop(n, turns int) {
	top, out := c.NewLabel(), c.NewLabel()
	step := max(turns, 1) * n * c.Lanes
	c.Lea(RAX, At(RCX, step))
	c.Op(Cmp, RAX, OfGPR(RDX))
	c.JumpIf(Greater, out)
	if turns > 0 {
		c.open()
	}
	c.align()
	c.Place(top)
	c.note("%d vectors of %d", n, c.Lanes)
	c.inTurn = turns > 0
	for c.turn = range max(turns, 1) {
		c.ahead(n)
		if n == c.unroll && turns == 0 {
			c.planned, c.items = c.items, c.planned
		} else {
			c.values(perPoint, n)
		}
		c.emitItems()
		c.OpImm(Add, OfGPR(RCX), n*c.Lanes)
	}
	c.Lea(RAX, At(RCX, step))
	c.Op(Cmp, RAX, OfGPR(RDX))
	c.JumpIf(LessEqual, top)
	if c.inTurn = false; turns > 0 {
		c.close()
	}
	c.Place(out)
}

// ahead prefetches what a later step of n vectors needs. A function that computes on cached data
// leaves the memory idle, so prefetching is free then.
func (c *code) ahead(n int) {
	for i := range c.k.Operands {
		if c.v.Ahead>>i&1 == 0 || !c.inLoop(i) || !c.ISA.Prefetches {
			continue
		}
		size := c.k.Operands[i].DT.Size()
		c.Load(RSI, operandWord(i, Ahead))
		if g := c.pointer[i]; g != NoReg {
			c.Op(Add, RSI, OfGPR(g))
		} else {
			c.Op(Add, RSI, InMem(operandWord(i, Address)))
		}
		for b := 0; b < n*c.Lanes*size; b += cacheLine {
			c.Prefetch(Mem{Base: RSI, Index: RCX, Scale: uint8(size), Disp: int32(b)}, false)
		}
	}
}

// rest handles the remaining points, one vector at a time; the last vector is partial.
func (c *code) rest(tail4, tail8 Value, end Label) {
	top := c.NewLabel()
	c.Op(Cmp, RCX, OfGPR(RDX))
	c.JumpIf(GreaterEqual, end)
	c.Place(top)
	c.Copy(RAX, RDX)
	c.Op(Sub, RAX, OfGPR(RCX))
	whole := c.NewLabel()
	c.OpImm(Cmp, OfGPR(RAX), c.Lanes)
	c.JumpIf(LessEqual, whole)
	c.Set(RAX, uint32(c.Lanes))
	c.Place(whole)
	c.Store(At(RDI, frameCount), RAX)
	if c.ISA.Masks {
		c.FirstLanes(tailMaskReg, RBX, RAX)
	} else {
		c.tailMasks(tail4, tail8)
	}
	c.note("the rest of a row")
	c.Tail, c.tail8 = tail4, tail8
	c.values(perPoint, 1)
	c.emitItems()
	c.Tail, c.tail8 = 0, 0
	c.OpImm(Add, OfGPR(RCX), c.Lanes)
	c.Op(Cmp, RCX, OfGPR(RDX))
	c.JumpIf(Less, top)
}

// tailMasks writes masks of the first rax lanes to the frame.
func (c *code) tailMasks(tail4, tail8 Value) {
	r := c.Take(&c.Vecs)
	for _, t := range []struct {
		v    Value
		size int
	}{{tail4, 4}, {tail8, 8}} {
		n := c.Lanes * t.size
		if n > c.ISA.Bytes {
			continue
		}
		var b []byte
		for i := range 2 * n {
			x := byte(0)
			if i < n {
				x = 0xff
			}
			b = append(b, x)
		}
		// The mask is a part of a table of n bytes of ones and then n of zeros.
		c.Lea(RBX, c.Data(b))
		c.Copy(RSI, RAX)
		c.OpImm(Sub, OfGPR(RSI), c.Lanes)
		c.Negate(RSI)
		c.LoadVec(r, n, Mem{Base: RBX, Index: RSI, Scale: uint8(t.size)})
		c.StoreVec(c.Vals[t.v].Mem, n, r)
	}
}

// nextRow moves all operands to the next row, and jumps to row until none is left.
func (c *code) nextRow(row Label) {
	c.unpin()
	for i := range c.pointer {
		if i < len(c.k.Operands) && !c.inLoop(i) {
			continue
		}
		c.Load(RAX, operandWord(i, RowStep))
		c.OpTo(Add, operandWord(i, Address), RAX)
		if i < len(c.v.Class) && c.v.Class[i] == codegen.Staged {
			c.Load(RAX, At(RDI, FramePoints))
			c.Shift(Shl, true, RAX, 3)
			c.OpTo(Add, operandWord(i, Positions), RAX)
		}
	}
	c.OpImm(Sub, InMem(At(RDI, FrameRows)), 1)
	c.JumpIf(NotEqual, row)
	if c.v.Past != 0 {
		c.Fence()
	}
	c.Ret()
}

// inLoop reports operands that the function reads or writes.
func (c *code) inLoop(i int) bool {
	for j, in := range c.k.Body {
		switch in.Op {
		case ir.Load, ir.LoadAt, ir.IndexLo, ir.IndexHi:
			if c.need[j] && int(uint32(in.Imm)) == i {
				return true
			}
		}
	}
	return c.touched(i)
}

// align makes a loop begin at a multiple of 32 bytes, where processors fetch.
func (c *code) align() {
	for len(c.Buf)%32 != 0 {
		c.Nop(1)
	}
}
