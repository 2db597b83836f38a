package native

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// indexing is a load through an index.
type indexing struct {
	index Value
	wide  bool // of 64 bits
	mode  ir.IndexMode
	same  bool // for all points of a row
}

// laneLoad reads the lanes of operand i one by one, through an index if there is one. It reads the
// lanes whose guard is set, and in the rest of a row only the valid ones. The others are 0.
func (c *code) laneLoad(i int, dt ir.DType, u int, guard Value, x *indexing) Value {
	size, n := dt.Size(), c.Lanes*SizeOf(dt)
	it := Item{D: c.Vec(n), Tmps: 1, Imm: NoImm}
	c.slow += slowLane * c.Lanes
	guardSize := 0
	if guard != 0 {
		if c.ISA.Masks {
			it.K = guard
		} else {
			it.S[1], guardSize = guard, c.Vals[guard].Size
		}
	}
	indexSize := 4
	if x != nil {
		it.S[0] = x.index
		if x.wide {
			indexSize = 8
		}
	}
	class := codegen.Contiguous // for a Reduce
	if i < len(c.v.Class) {
		class = c.v.Class[i]
	}
	tail, staged := c.Tail != 0, class == codegen.Staged
	whole := x != nil && class == codegen.Contiguous && (!tail || c.Partial(size))
	tail4, tail8 := c.Tail, c.tail8
	if whole && tail {
		if it.S[2] = c.Tail; c.ISA.Masks && it.K == 0 {
			it.S[2], it.K = 0, tail4 // works like a guard
		} else if size == 8 {
			it.S[2] = tail8
		}
	}
	it.Emit = func(r *Regs) {
		t := r.Tmp[0]
		done := c.NewLabel()
		if guard != 0 && x == nil && !tail && class == codegen.Contiguous {
			c.LoadIfAll(r, c.neighbours(i, dt, u), done)
		}
		if guard != 0 && c.ISA.Masks || it.K != 0 {
			c.MaskTo(RAX, r.K)
			c.Store(At(RDI, c.frame.lane(laneG)), RAX)
		} else if guard != 0 {
			c.saveVector(r.S[1], guardSize, c.frame.lane(laneG))
		}
		if x != nil {
			c.saveVector(r.S[0], c.Lanes*indexSize, c.frame.lane(laneA))
		}
		if whole {
			c.sameIndex(i, dt, u, r, x, guard != 0, guardSize, tail, indexSize, done)
		}
		c.ClearVec(t, 16)
		c.saveVector(t, n, c.frame.lane(laneR))
		top, next := c.NewLabel(), c.NewLabel()
		if staged {
			if g := c.pointer[i]; g != NoReg {
				c.Copy(R15, g)
			} else {
				c.Load(R15, operandWord(i, Address))
			}
		} else {
			c.along(i, u, R15, RBX)
		}
		c.Clear(RSI)
		c.Place(top)
		if it.K != 0 {
			c.Load(RAX, At(RDI, c.frame.lane(laneG)))
			c.TestBit(RAX, RSI)
			c.JumpIf(AboveEqual, next)
		} else if guard != 0 {
			c.Load32(RAX, c.laneAt(laneG, guardSize/c.Lanes))
			c.OpImm(Cmp, OfGPR(RAX), 0)
			c.JumpIf(Equal, next)
		}
		if x != nil {
			c.LoadSize(indexSize, true, RAX, c.laneAt(laneA, indexSize))
			c.inRange(i, x.mode, next)
			c.Imul(RAX, InMem(operandWord(i, IndexStep)))
			c.Op(Add, RAX, OfGPR(R15))
		} else {
			c.Copy(RAX, R15)
		}
		if staged {
			c.Load(RBX, operandWord(i, Positions))
			c.Lea(RBX, Mem{Base: RBX, Index: RCX, Scale: 8, Disp: int32(u * c.Lanes * 8)})
			c.Op(Add, RAX, InMem(Mem{Base: RBX, Index: RSI, Scale: 8}))
		}
		c.LoadSize(size, signedMemory(dt), RBX, At(RAX, 0))
		c.StoreSize(n/c.Lanes, c.laneAt(laneR, n/c.Lanes), RBX)
		c.Place(next)
		if !staged {
			c.Op(Add, R15, InMem(operandWord(i, Step)))
		}
		c.OpImm(Add, OfGPR(RSI), 1)
		if tail {
			c.Op(Cmp, RSI, InMem(At(RDI, frameCount)))
		} else {
			c.OpImm(Cmp, OfGPR(RSI), c.Lanes)
		}
		c.JumpIf(Less, top)
		c.loadVector(r.D, n, c.frame.lane(laneR))
		c.Place(done)
	}
	return c.Item(it)
}

// inRange brings the index in rax into the axis, or jumps to next.
func (c *code) inRange(i int, mode ir.IndexMode, next Label) {
	ok := c.NewLabel()
	size := operandWord(i, IndexSize)
	c.Op(Cmp, RAX, InMem(size))
	c.JumpIf(Below, ok)
	switch mode {
	case ir.IndexDrop:
		c.Jump(next)
	case ir.IndexClamp:
		low := c.NewLabel()
		c.OpImm(Cmp, InMem(size), 0)
		c.JumpIf(Equal, next) // an axis without elements
		c.OpImm(Cmp, OfGPR(RAX), 0)
		c.Set(RAX, 0) // keeps the flags
		c.JumpIf(Less, low)
		c.Load(RAX, size)
		c.Lea(RAX, At(RAX, -1))
		c.Place(low)
	default:
		c.noteFault(i)
		c.Jump(next)
	}
	c.Place(ok)
}

// noteFault records the index in rax if it is less than the recorded one, or equal and of an earlier
// operand.
func (c *code) noteFault(i int) {
	take, skip := c.NewLabel(), c.NewLabel()
	c.OpImm(Cmp, InMem(At(RDI, FrameFault)), 0)
	c.JumpIf(Equal, take)
	c.Op(Cmp, RAX, InMem(At(RDI, FrameFault+16)))
	c.JumpIf(Less, take)
	c.JumpIf(Greater, skip)
	c.OpImm(Cmp, InMem(At(RDI, FrameFault+8)), i)
	c.JumpIf(LessEqual, skip)
	c.Place(take)
	c.Store(At(RDI, FrameFault+16), RAX)
	c.Set(RBX, uint32(i))
	c.Store(At(RDI, FrameFault+8), RBX)
	c.Set(RBX, 1)
	c.Store(At(RDI, FrameFault), RBX)
	c.Place(skip)
}

// sameIndex loads a vector of neighbours if all lanes have the same index and no guard is unset, as
// when whole rows of a table are looked up. It then jumps to done.
func (c *code) sameIndex(i int, dt ir.DType, u int, r *Regs, x *indexing, guarded bool, guardSize int, tail bool, indexSize int, done Label) {
	other, top := c.NewLabel(), c.NewLabel()
	load := func(g GPR, m Mem) { c.LoadSize(indexSize, true, g, m) }
	load(RAX, At(RDI, c.frame.lane(laneA)))
	c.Op(Cmp, RAX, InMem(operandWord(i, IndexSize)))
	c.JumpIf(AboveEqual, other)
	c.Clear(RSI)
	c.Place(top)
	if guarded {
		c.Load32(RBX, At(RDI, c.frame.lane(laneG)))
		if guardSize > 0 {
			c.Load32(RBX, c.laneAt(laneG, guardSize/c.Lanes))
			c.OpImm(Cmp, OfGPR(RBX), 0)
			c.JumpIf(Equal, other)
		} else {
			c.TestBit(RBX, RSI)
			c.JumpIf(AboveEqual, other)
		}
	}
	if guarded || !x.same {
		load(RBX, c.laneAt(laneA, indexSize))
		c.Op(Cmp, RBX, OfGPR(RAX))
		c.JumpIf(NotEqual, other)
		c.OpImm(Add, OfGPR(RSI), 1)
		if tail {
			c.Op(Cmp, RSI, InMem(At(RDI, frameCount)))
		} else {
			c.OpImm(Cmp, OfGPR(RSI), c.Lanes)
		}
		c.JumpIf(Less, top)
	}
	c.Imul(RAX, InMem(operandWord(i, IndexStep)))
	c.along(i, u, RBX, RSI)
	c.Op(Add, RAX, OfGPR(RBX))
	c.LoadPart(r.D, Dense{Size: dt.Size(), Signed: signedMemory(dt), N: c.Lanes * SizeOf(dt), M: At(RAX, 0)}, tail, r.S[2])
	c.Jump(done)
	c.Place(other)
}

// indexValue is the low or high half of the positions of an index operand.
func (c *code) indexValue(in ir.Instr, u int) Value {
	i, n := int(in.Imm), c.Lanes*4
	high := in.Op == ir.IndexHi
	switch class := c.v.Class[i]; {
	case class == codegen.Splat:
		return c.Item(Item{D: c.Vec(n), Imm: NoImm, Emit: func(r *Regs) {
			c.Load(RAX, operandWord(i, Address))
			if high {
				c.Shift(Shr, true, RAX, 32)
			}
			c.Spread(r.D, n, 4, RAX)
		}})
	case class == codegen.Staged:
		return c.Item(Item{D: c.Vec(n), Imm: NoImm, Emit: func(r *Regs) {
			c.Load(RBX, operandWord(i, Positions))
			c.Lea(RBX, Mem{Base: RBX, Index: RCX, Scale: 8, Disp: int32(u * c.Lanes * 8)})
			c.positions(r.D, n, high, func() { c.Load(RAX, Mem{Base: RBX, Index: RSI, Scale: 8}) }, func() {})
		}})
	case high:
		return c.Item(Item{D: c.Vec(n), Imm: NoImm, Emit: func(r *Regs) {
			c.along(i, u, R15, RBX)
			each, done := c.NewLabel(), c.NewLabel()
			c.sameHigh(i, each)
			c.Spread(r.D, n, 4, RAX)
			c.Jump(done)
			c.Place(each)
			c.positions(r.D, n, true, func() { c.Copy(RAX, R15) }, func() { c.Op(Add, R15, InMem(operandWord(i, Step))) })
			c.Place(done)
		}})
	}
	steps := c.laneSteps[i]
	return c.Item(Item{D: c.Vec(n), S: [3]Value{steps}, Tmps: 1, Imm: NoImm, Emit: func(r *Regs) {
		c.along(i, u, RAX, RBX)
		c.Spread(r.Tmp[0], n, 4, RAX)
		c.VecOp(Add, n, r.D, r.Tmp[0], InReg(r.S[0]))
	}})
}

// sameHigh leaves the high half of the position in r15 in rax, or jumps where that of the last lane
// differs.
func (c *code) sameHigh(i int, differ Label) {
	c.Set(RBX, uint32(c.Lanes-1))
	c.Imul(RBX, InMem(operandWord(i, Step)))
	c.Op(Add, RBX, OfGPR(R15))
	c.Shift(Shr, true, RBX, 32)
	c.Copy(RAX, R15)
	c.Shift(Shr, true, RAX, 32)
	c.Op(Cmp, RAX, OfGPR(RBX))
	c.JumpIf(NotEqual, differ)
}

// positions fills a vector lane by lane with halves of the values that get leaves in rax.
func (c *code) positions(d uint8, n int, high bool, get, next func()) {
	top := c.NewLabel()
	c.Clear(RSI)
	c.Place(top)
	get()
	if high {
		c.Shift(Shr, true, RAX, 32)
	}
	c.StoreSize(4, c.laneAt(laneR, 4), RAX)
	next()
	c.OpImm(Add, OfGPR(RSI), 1)
	if c.Tail != 0 {
		c.Op(Cmp, RSI, InMem(At(RDI, frameCount)))
	} else {
		c.OpImm(Cmp, OfGPR(RSI), c.Lanes)
	}
	c.JumpIf(Less, top)
	c.loadVector(d, n, c.frame.lane(laneR))
}

// laneStore writes the lanes of a vector one by one, a step apart.
func (c *code) laneStore(i, size int, v Value, u int) {
	n := c.Vals[v].Size
	lanes, tail := c.Lanes, c.Tail != 0
	c.Item(Item{S: [3]Value{v}, Imm: NoImm, Emit: func(r *Regs) {
		c.saveVector(r.S[0], n, c.frame.lane(laneR))
		c.along(i, u, R15, RBX)
		one := func(from Mem) {
			if n/lanes == 8 {
				c.Load(RBX, from)
			} else {
				c.Load32(RBX, from)
			}
			c.StoreSize(size, At(R15, 0), RBX)
			c.Op(Add, R15, InMem(operandWord(i, Step)))
		}
		if !tail {
			for l := range lanes {
				one(At(RDI, c.frame.lane(laneR)+l*n/lanes))
			}
			return
		}
		top := c.NewLabel()
		c.Clear(RSI)
		c.Place(top)
		one(c.laneAt(laneR, n/lanes))
		c.OpImm(Add, OfGPR(RSI), 1)
		c.Op(Cmp, RSI, InMem(At(RDI, frameCount)))
		c.JumpIf(Less, top)
	}})
}
