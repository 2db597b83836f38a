package native

import "github.com/millrace-go/millrace/ir"

// Loads and stores of arm64. There are no masked loads and stores, so partial vectors go lane by
// lane.

// loadLanes reads neighbours of size bytes into lanes of at least four bytes.
func (a *asm) loadLanes(d uint8, size int, signed bool, lanes int, m mem) {
	a.loadVec(d, size*lanes, m)
	if size == 1 {
		a.widenVec(nSxtl8, nUxtl8, signed, d)
	}
	if size < 4 {
		a.widenVec(nSxtl16, nUxtl16, signed, d)
	}
}

func (a *asm) widenVec(s, u op, signed bool, d uint8) {
	if !signed {
		s = u
	}
	a.neon(s, d, d, 0, 0)
}

// neonLoad appends the load of an item; lanes are widened as needed.
func (c *code) neonLoad(it item, size int, signed bool) value {
	lanes := c.lanes
	return c.item(item{d: it.d, imm: noImm, emit: func(r *regs) {
		it.before()
		c.loadLanes(r.d, size, signed, lanes, it.mem)
	}})
}

// neonStore appends the store of an item's value.
func (c *code) neonStore(it item, size int) {
	lanes := c.lanes
	c.item(item{s: it.s, imm: noImm, emit: func(r *regs) {
		from := r.s[0]
		if size < 4 {
			c.neon(nXtn16, v31, from, 0, 0)
			from = v31
		}
		if size == 1 {
			c.neon(nXtn8, v31, v31, 0, 0)
		}
		it.before()
		c.storeVec(it.mem, size*lanes, from)
	}})
}

// neonApart reads a whole vector of elements that are a step apart.
func (c *code) neonApart(i int, dt ir.DType, u int) value {
	size, lanes := dt.Size(), c.lanes
	return c.item(item{d: c.vec(lanes * sizeOf(dt)), imm: noImm, emit: func(r *regs) {
		c.along(i, u, rax, rbx)
		c.load(rsi, operandWord(i, Step))
		for l := range lanes {
			if size >= 4 {
				c.laneLoadA64(r.d, size, l, rax)
			} else {
				c.loadSize(size, signedMemory(dt), r15, at(rax, 0))
				c.ins(r.d, l, r15)
			}
			if l < lanes-1 {
				c.op(add, rax, ofGPR(rsi))
			}
		}
	}})
}

// neonGuarded loads neighbours as a vector if the guard is set for all of them, and then jumps to
// done.
func (c *code) neonGuarded(i int, dt ir.DType, u int, r *regs, done label) {
	lanes := c.newLabel()
	size := dt.Size()
	c.least(rax, r.s[1])
	c.opImm(cmp, ofGPR(rax), 0)
	c.jumpIf(equal, lanes)
	m, pre := c.dense(i, size, u)
	if pre != nil {
		pre()
	}
	c.loadLanes(r.d, size, signedMemory(dt), c.lanes, m)
	c.jump(done)
	c.asm.place(lanes)
}

// any jumps if a lane of a mask is set.
func (c *code) any(mask uint8, elem int, to label) {
	if elem*c.lanes < 16 {
		c.moveOut(rax, mask)
	} else {
		c.largest(rax, mask)
	}
	c.opImm(cmp, ofGPR(rax), 0)
	c.jumpIf(notEqual, to)
}
