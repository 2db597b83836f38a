package native

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// indexing is a load through an index.
type indexing struct {
	index value
	wide  bool // of 64 bits
	mode  ir.IndexMode
	same  bool // for all points of a row
}

// laneLoad reads the lanes of operand i one by one, through an index if there is one. It reads the
// lanes whose guard is set, and in the rest of a row only the valid ones. The others are 0.
func (c *code) laneLoad(i int, dt ir.DType, u int, guard value, x *indexing) value {
	size, n := dt.Size(), c.lanes*sizeOf(dt)
	it := item{d: c.vec(n), tmps: 1, imm: noImm}
	c.slow += slowLane * c.lanes
	guardSize := 0
	if guard != 0 {
		if c.isa.EVEX {
			it.k = guard
		} else {
			it.s[1], guardSize = guard, c.vals[guard].size
		}
	}
	indexSize := 4
	if x != nil {
		it.s[0] = x.index
		if x.wide {
			indexSize = 8
		}
	}
	class := codegen.Contiguous // for a Reduce
	if i < len(c.v.Class) {
		class = c.v.Class[i]
	}
	tail, staged := c.tail != 0, class == codegen.Staged
	whole := x != nil && !(c.isa.A64 && tail) && class == codegen.Contiguous && (size >= 4 || c.isa.EVEX || !tail)
	tail4, tail8 := c.tail, c.tail8
	if whole && tail {
		if it.s[2] = c.tail; c.isa.EVEX && it.k == 0 {
			it.s[2], it.k = 0, tail4 // works like a guard
		} else if size == 8 {
			it.s[2] = tail8
		}
	}
	it.emit = func(r *regs) {
		t := r.tmp[0]
		done := c.newLabel()
		if c.isa.A64 && guard != 0 && x == nil && !tail && class == codegen.Contiguous {
			c.neonGuarded(i, dt, u, r, done)
		}
		if guard != 0 && c.isa.EVEX || it.k != 0 {
			c.vector(kmovwRTo, 16, args{reg: uint8(rax), rm: inReg(r.k), imm: noImm})
			c.store(at(rdi, c.frame.lane(laneG)), rax)
		} else if guard != 0 {
			c.saveVector(r.s[1], guardSize, c.frame.lane(laneG))
		}
		if x != nil {
			c.saveVector(r.s[0], c.lanes*indexSize, c.frame.lane(laneA))
		}
		if whole {
			c.sameIndex(i, dt, u, r, x, guard != 0, guardSize, tail, indexSize, done)
		}
		c.clearVec(t, 16)
		c.saveVector(t, n, c.frame.lane(laneR))
		top, next := c.newLabel(), c.newLabel()
		if staged {
			if g := c.pointer[i]; g != noReg {
				c.copy(r15, g)
			} else {
				c.load(r15, operandWord(i, Address))
			}
		} else {
			c.along(i, u, r15, rbx)
		}
		c.clear(rsi)
		c.asm.place(top)
		if it.k != 0 {
			c.load(rax, at(rdi, c.frame.lane(laneG)))
			c.testBit(rax, rsi)
			c.jumpIf(aboveEqual, next)
		} else if guard != 0 {
			c.load32(rax, c.laneAt(laneG, guardSize/c.lanes))
			c.opImm(cmp, ofGPR(rax), 0)
			c.jumpIf(equal, next)
		}
		if x != nil {
			c.loadSize(indexSize, true, rax, c.laneAt(laneA, indexSize))
			c.inRange(i, x.mode, next)
			c.imul(rax, inMem(operandWord(i, IndexStep)))
			c.op(add, rax, ofGPR(r15))
		} else {
			c.copy(rax, r15)
		}
		if staged {
			c.load(rbx, operandWord(i, Positions))
			c.lea(rbx, mem{base: rbx, index: rcx, scale: 8, disp: int32(u * c.lanes * 8)})
			c.op(add, rax, inMem(mem{base: rbx, index: rsi, scale: 8}))
		}
		c.loadSize(size, signedMemory(dt), rbx, at(rax, 0))
		c.storeSize(n/c.lanes, c.laneAt(laneR, n/c.lanes), rbx)
		c.asm.place(next)
		if !staged {
			c.op(add, r15, inMem(operandWord(i, Step)))
		}
		c.opImm(add, ofGPR(rsi), 1)
		if tail {
			c.op(cmp, rsi, inMem(at(rdi, frameCount)))
		} else {
			c.opImm(cmp, ofGPR(rsi), c.lanes)
		}
		c.jumpIf(less, top)
		c.loadVector(r.d, n, c.frame.lane(laneR))
		c.asm.place(done)
	}
	return c.item(it)
}

// inRange brings the index in rax into the axis, or jumps to next.
func (c *code) inRange(i int, mode ir.IndexMode, next label) {
	ok := c.newLabel()
	size := operandWord(i, IndexSize)
	c.op(cmp, rax, inMem(size))
	c.jumpIf(below, ok)
	switch mode {
	case ir.IndexDrop:
		c.jump(next)
	case ir.IndexClamp:
		low := c.newLabel()
		c.opImm(cmp, inMem(size), 0)
		c.jumpIf(equal, next) // an axis without elements
		c.opImm(cmp, ofGPR(rax), 0)
		c.set(rax, 0) // keeps the flags
		c.jumpIf(less, low)
		c.load(rax, size)
		c.lea(rax, at(rax, -1))
		c.asm.place(low)
	default:
		c.noteFault(i)
		c.jump(next)
	}
	c.asm.place(ok)
}

// noteFault records the index in rax if it is less than the recorded one, or equal and of an earlier
// operand.
func (c *code) noteFault(i int) {
	take, skip := c.newLabel(), c.newLabel()
	c.opImm(cmp, inMem(at(rdi, FrameFault)), 0)
	c.jumpIf(equal, take)
	c.op(cmp, rax, inMem(at(rdi, FrameFault+16)))
	c.jumpIf(less, take)
	c.jumpIf(greater, skip)
	c.opImm(cmp, inMem(at(rdi, FrameFault+8)), i)
	c.jumpIf(lessEqual, skip)
	c.asm.place(take)
	c.store(at(rdi, FrameFault+16), rax)
	c.set(rbx, uint32(i))
	c.store(at(rdi, FrameFault+8), rbx)
	c.set(rbx, 1)
	c.store(at(rdi, FrameFault), rbx)
	c.asm.place(skip)
}

// sameIndex loads a vector of neighbours if all lanes have the same index and no guard is unset, as
// when whole rows of a table are looked up. It then jumps to done.
func (c *code) sameIndex(i int, dt ir.DType, u int, r *regs, x *indexing, guarded bool, guardSize int, tail bool, indexSize int, done label) {
	size, n := dt.Size(), c.lanes*sizeOf(dt)
	other, top := c.newLabel(), c.newLabel()
	load := func(g gpr, m mem) { c.loadSize(indexSize, true, g, m) }
	load(rax, at(rdi, c.frame.lane(laneA)))
	c.op(cmp, rax, inMem(operandWord(i, IndexSize)))
	c.jumpIf(aboveEqual, other)
	c.clear(rsi)
	c.asm.place(top)
	if guarded {
		c.load32(rbx, at(rdi, c.frame.lane(laneG)))
		if guardSize > 0 {
			c.load32(rbx, c.laneAt(laneG, guardSize/c.lanes))
			c.opImm(cmp, ofGPR(rbx), 0)
			c.jumpIf(equal, other)
		} else {
			c.testBit(rbx, rsi)
			c.jumpIf(aboveEqual, other)
		}
	}
	if guarded || !x.same {
		load(rbx, c.laneAt(laneA, indexSize))
		c.op(cmp, rbx, ofGPR(rax))
		c.jumpIf(notEqual, other)
		c.opImm(add, ofGPR(rsi), 1)
		if tail {
			c.op(cmp, rsi, inMem(at(rdi, frameCount)))
		} else {
			c.opImm(cmp, ofGPR(rsi), c.lanes)
		}
		c.jumpIf(less, top)
	}
	c.imul(rax, inMem(operandWord(i, IndexStep)))
	c.along(i, u, rbx, rsi)
	c.op(add, rax, ofGPR(rbx))
	a := args{reg: r.d, rm: inMem(at(rax, 0)), imm: noImm}
	o := loadOp(size, signedMemory(dt))
	switch {
	case c.isa.A64:
		c.loadLanes(r.d, size, signedMemory(dt), c.lanes, at(rax, 0))
		c.jump(done)
		c.asm.place(other)
		return
	case tail && c.isa.EVEX:
		a.k, a.zero = 7, true
	case tail && size == 8:
		o, a.v = vmaskmovpd, r.s[2]
	case tail:
		o, a.v = vmaskmovps, r.s[2]
	}
	c.vector(o, n, a)
	c.jump(done)
	c.asm.place(other)
}

// indexValue is the low or high half of the positions of an index operand.
func (c *code) indexValue(in ir.Instr, u int) value {
	i, n := int(in.Imm), c.lanes*4
	high := in.Op == ir.IndexHi
	switch class := c.v.Class[i]; {
	case class == codegen.Splat:
		return c.item(item{d: c.vec(n), imm: noImm, emit: func(r *regs) {
			c.load(rax, operandWord(i, Address))
			if high {
				c.shift(shr, true, rax, 32)
			}
			c.spread(r.d, n, 4, rax)
		}})
	case class == codegen.Staged:
		return c.item(item{d: c.vec(n), imm: noImm, emit: func(r *regs) {
			c.load(rbx, operandWord(i, Positions))
			c.lea(rbx, mem{base: rbx, index: rcx, scale: 8, disp: int32(u * c.lanes * 8)})
			c.positions(r.d, n, high, func() { c.load(rax, mem{base: rbx, index: rsi, scale: 8}) }, func() {})
		}})
	case high:
		return c.item(item{d: c.vec(n), imm: noImm, emit: func(r *regs) {
			c.along(i, u, r15, rbx)
			each, done := c.newLabel(), c.newLabel()
			c.sameHigh(i, each)
			c.spread(r.d, n, 4, rax)
			c.jump(done)
			c.asm.place(each)
			c.positions(r.d, n, true, func() { c.copy(rax, r15) }, func() { c.op(add, r15, inMem(operandWord(i, Step))) })
			c.asm.place(done)
		}})
	}
	steps := c.steps[i]
	return c.item(item{d: c.vec(n), s: [3]value{steps}, tmps: 1, imm: noImm, emit: func(r *regs) {
		c.along(i, u, rax, rbx)
		c.spread(r.tmp[0], n, 4, rax)
		if c.isa.A64 {
			c.neon(nAdd, r.d, r.tmp[0], r.s[0], 0)
			return
		}
		c.vector(vpaddd, n, args{reg: r.d, v: r.tmp[0], rm: inReg(r.s[0]), imm: noImm})
	}})
}

// sameHigh leaves the high half of the position in r15 in rax, or jumps where that of the last lane
// differs.
func (c *code) sameHigh(i int, differ label) {
	c.set(rbx, uint32(c.lanes-1))
	c.imul(rbx, inMem(operandWord(i, Step)))
	c.op(add, rbx, ofGPR(r15))
	c.shift(shr, true, rbx, 32)
	c.copy(rax, r15)
	c.shift(shr, true, rax, 32)
	c.op(cmp, rax, ofGPR(rbx))
	c.jumpIf(notEqual, differ)
}

// positions fills a vector lane by lane with halves of the values that get leaves in rax.
func (c *code) positions(d uint8, n int, high bool, get, next func()) {
	top := c.newLabel()
	c.clear(rsi)
	c.asm.place(top)
	get()
	if high {
		c.shift(shr, true, rax, 32)
	}
	c.storeSize(4, c.laneAt(laneR, 4), rax)
	next()
	c.opImm(add, ofGPR(rsi), 1)
	if c.tail != 0 {
		c.op(cmp, rsi, inMem(at(rdi, frameCount)))
	} else {
		c.opImm(cmp, ofGPR(rsi), c.lanes)
	}
	c.jumpIf(less, top)
	c.loadVector(d, n, c.frame.lane(laneR))
}

// laneStore writes the lanes of a vector one by one, a step apart.
func (c *code) laneStore(i, size int, v value, u int) {
	n := c.vals[v].size
	lanes, tail := c.lanes, c.tail != 0
	c.item(item{s: [3]value{v}, imm: noImm, emit: func(r *regs) {
		c.saveVector(r.s[0], n, c.frame.lane(laneR))
		c.along(i, u, r15, rbx)
		one := func(from mem) {
			if n/lanes == 8 {
				c.load(rbx, from)
			} else {
				c.load32(rbx, from)
			}
			c.storeSize(size, at(r15, 0), rbx)
			c.op(add, r15, inMem(operandWord(i, Step)))
		}
		if !tail {
			for l := range lanes {
				one(at(rdi, c.frame.lane(laneR)+l*n/lanes))
			}
			return
		}
		top := c.newLabel()
		c.clear(rsi)
		c.asm.place(top)
		one(c.laneAt(laneR, n/lanes))
		c.opImm(add, ofGPR(rsi), 1)
		c.op(cmp, rsi, inMem(at(rdi, frameCount)))
		c.jumpIf(less, top)
	}})
}
