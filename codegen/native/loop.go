package native

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// plan chooses how many vectors a step of the main loop computes. Their instructions take turns,
// which keeps a core's units busy while results are not ready, as long as there are enough
// registers. plan uses the remaining registers for the values that the loops read most.
func (c *code) plan() (unroll int) {
	unroll = 4
	switch n := c.work(); {
	case n > 160:
		unroll = 1
	case n > 64:
		unroll = 2
	}
	waitless := c.waitless()
	for ; ; unroll /= 2 {
		for _, c.order = range [][]int{waitless, nil} {
			c.values(perPoint, unroll)
			p := c.pressure()
			if p+3 <= c.isa.Regs || unroll == 1 && c.order == nil {
				c.pins = c.mostUsed(c.choose(c.isa.Regs-p-3, unroll) - 1)
				c.items = c.items[:0]
				return unroll
			}
			c.items = c.items[:0]
		}
	}
}

// mostUsed lists the values with a home that the items read most.
func (c *code) mostUsed(n int) (list []value) {
	for v := 1; v < len(c.vals); v++ {
		if x := &c.vals[v]; !x.mask && (x.home == inPool || x.home == inFrame) && len(x.uses) > 0 {
			list = append(list, value(v))
		}
	}
	slices.SortStableFunc(list, func(a, b value) int { return len(c.vals[b].uses) - len(c.vals[a].uses) })
	return list[:max(0, min(n, len(list)))]
}

// pin keeps values in registers until unpin.
func (c *code) pin() {
	for _, v := range c.pins {
		r := c.take(&c.vecs)
		c.fromMemory(v, r)
		x := &c.vals[v]
		c.vecs.owner[r], x.reg, x.pinned = v, int16(r), true
	}
}

// unpin frees the registers that pin took.
func (c *code) unpin() {
	for r, v := range c.vecs.owner {
		if v > 0 && c.vals[v].pinned {
			c.vals[v].pinned, c.vals[v].reg, c.vecs.owner[r] = false, -1, 0
		}
	}
}

// loop emits a loop over whole steps of n vectors. turns is the number of steps per iteration; 0:
// one.
func (c *code) loop(n, turns int) {
	top, out := c.newLabel(), c.newLabel()
	step := max(turns, 1) * n * c.lanes
	c.lea(rax, at(rcx, step))
	c.op(cmp, rax, ofGPR(rdx))
	c.jumpIf(greater, out)
	if turns > 0 {
		c.open()
	}
	c.align()
	c.asm.place(top)
	c.note("%d vectors of %d", n, c.lanes)
	c.inTurn = turns > 0
	for c.turn = range max(turns, 1) {
		before := c.slow
		c.ahead(n)
		c.values(perPoint, n)
		c.step = (c.slow - before) / n
		c.emitItems()
		c.opImm(add, ofGPR(rcx), n*c.lanes)
	}
	c.lea(rax, at(rcx, step))
	c.op(cmp, rax, ofGPR(rdx))
	c.jumpIf(lessEqual, top)
	if c.inTurn = false; turns > 0 {
		c.close()
	}
	c.asm.place(out)
}

// ahead prefetches what a later step of n vectors needs. A function that computes on cached data
// leaves the memory idle, so prefetching is free then.
func (c *code) ahead(n int) {
	for i := range c.k.Operands {
		if c.v.Ahead>>i&1 == 0 || !c.inLoop(i) || c.isa.A64 {
			continue
		}
		size := c.k.Operands[i].DT.Size()
		c.load(rsi, operandWord(i, Ahead))
		if g := c.pointer[i]; g != noReg {
			c.op(add, rsi, ofGPR(g))
		} else {
			c.op(add, rsi, inMem(operandWord(i, Address)))
		}
		for b := 0; b < n*c.lanes*size; b += cacheLine {
			c.prefetch(mem{base: rsi, index: rcx, scale: uint8(size), disp: int32(b)})
		}
	}
}

// rest handles the remaining points, one vector at a time; the last vector is partial.
func (c *code) rest(tail4, tail8 value, end label) {
	top := c.newLabel()
	c.op(cmp, rcx, ofGPR(rdx))
	c.jumpIf(greaterEqual, end)
	c.asm.place(top)
	c.copy(rax, rdx)
	c.op(sub, rax, ofGPR(rcx))
	whole := c.newLabel()
	c.opImm(cmp, ofGPR(rax), c.lanes)
	c.jumpIf(lessEqual, whole)
	c.set(rax, uint32(c.lanes))
	c.asm.place(whole)
	c.store(at(rdi, frameCount), rax)
	switch {
	case c.isa.EVEX:
		c.set(rbx, 0xffffffff)
		c.bzhi(rbx, rbx, rax)
		c.vector(kmovwR, 16, args{reg: 7, rm: ofGPR(rbx), imm: noImm})
	default:
		c.tailMasks(tail4, tail8)
	}
	c.note("what is left of a row")
	c.tail, c.tail8 = tail4, tail8
	c.values(perPoint, 1)
	c.emitItems()
	c.tail, c.tail8 = 0, 0
	c.opImm(add, ofGPR(rcx), c.lanes)
	c.op(cmp, rcx, ofGPR(rdx))
	c.jumpIf(less, top)
}

// tailMasks writes masks of the first rax lanes to the frame.
func (c *code) tailMasks(tail4, tail8 value) {
	r := c.take(&c.vecs)
	for _, t := range []struct {
		v    value
		size int
	}{{tail4, 4}, {tail8, 8}} {
		n := c.lanes * t.size
		if n > c.isa.Bytes {
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
		c.lea(rbx, c.data(b))
		c.copy(rsi, rax)
		c.opImm(sub, ofGPR(rsi), c.lanes)
		c.negate(rsi)
		c.loadVec(r, n, mem{base: rbx, index: rsi, scale: uint8(t.size)})
		c.storeVec(c.vals[t.v].mem, n, r)
	}
}

// nextRow moves all operands to the next row, and jumps to row until none is left.
func (c *code) nextRow(row label) {
	c.unpin()
	for i := range c.pointer {
		if i < len(c.k.Operands) && !c.inLoop(i) {
			continue
		}
		c.load(rax, operandWord(i, RowStep))
		c.opTo(add, operandWord(i, Address), rax)
		if i < len(c.v.Class) && c.v.Class[i] == codegen.Staged {
			c.load(rax, at(rdi, FramePoints))
			c.shift(shl, true, rax, 3)
			c.opTo(add, operandWord(i, Positions), rax)
		}
	}
	c.opImm(sub, inMem(at(rdi, FrameRows)), 1)
	c.jumpIf(notEqual, row)
	if c.v.Past != 0 && !c.isa.A64 {
		c.sfence()
	}
	c.ret()
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
	for c.isa.A64 && len(c.buf)%32 != 0 {
		c.emit32(nopA64)
	}
	for len(c.buf)%32 != 0 {
		c.emit(0x90)
	}
}
