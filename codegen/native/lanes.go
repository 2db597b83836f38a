package native

import "github.com/millrace-go/millrace/ir"

// Operations for which the vector units have no instruction are done lane by lane: the operands are
// stored, general registers process their lanes, and the result is loaded.

// slowLane is the time of one lane, in vector instructions. A division of 64 bits takes up to 90
// cycles.
const slowLane = 24

// laneAt is a lane of a scratch array; rsi counts lanes.
func (c *code) laneAt(array, size int) mem {
	return mem{base: rdi, index: rsi, scale: uint8(size), disp: int32(c.frame.lane(array))}
}

// saveVector stores a vector of size bytes unchanged.
func (c *code) saveVector(r uint8, size, at int) {
	c.storeVec(mem{base: rdi, index: noReg, scale: 1, disp: int32(at)}, size, r)
}

func (c *code) loadVector(r uint8, size, at int) {
	c.loadVec(r, size, mem{base: rdi, index: noReg, scale: 1, disp: int32(at)})
}

// eachLane makes a vector of dt lane by lane: body emits code that computes element d of a lane from
// its elements x. The code may use rax, rbx, rdx (which it must save), and the vector register
// laneReg.
func (c *code) eachLane(dt ir.DType, x []value, body func(x []mem, d mem)) value {
	n := c.bytes(dt)
	lanes := c.lanes
	c.slow += slowLane * c.lanes
	it := item{d: c.vec(n), tmps: 1}
	copy(it.s[:], x)
	sizes := make([]int, len(x))
	for i, v := range x {
		sizes[i] = c.vals[v].size
	}
	it.emit = func(r *regs) {
		var ms []mem
		for i, size := range sizes {
			c.saveVector(r.s[i], size, c.frame.lane(laneA+i))
			ms = append(ms, c.laneAt(laneA+i, size/lanes))
		}
		c.laneReg = r.tmp[0]
		top := c.newLabel()
		c.clear(rsi)
		c.asm.place(top)
		body(ms, c.laneAt(laneR, n/lanes))
		c.opImm(add, ofGPR(rsi), 1)
		c.opImm(cmp, ofGPR(rsi), lanes)
		c.jumpIf(less, top)
		c.loadVector(r.d, n, c.frame.lane(laneR))
	}
	return c.item(it)
}

// quotient divides integers, or gives the remainder. A kernel makes sure that no divisor is 0, nor
// -1 if the quotient would overflow. But it may do so in an earlier phase, and lanes beyond a row's
// end hold any value. The processor faults on such divisions, so the code never divides by 0 or -1.
func quotient(c *code, in ir.Instr, x []value, _ []ir.DType) value {
	wide, signed := sizeOf(in.DT) == 8, in.DT.IsSigned()
	from := rax
	if in.Op == ir.Mod {
		from = rdx
	}
	size := sizeOf(in.DT)
	v := c.eachLane(in.DT, x, func(x []mem, d mem) {
		minus, done := c.newLabel(), c.newLabel()
		c.copy(r15, rdx)
		c.loadSize(size, signed, rax, x[0])
		c.loadSize(size, signed, rbx, x[1])
		c.clear(rdx)
		c.opImm(cmp, ofGPR(rbx), 0)
		c.jumpIf(equal, done)
		if signed {
			c.opImm(cmp, ofGPR(rbx), -1)
			c.jumpIf(equal, minus)
		}
		c.divide(signed, wide, x[1])
		if signed {
			over := c.newLabel()
			c.jump(over)
			c.asm.place(minus)
			c.negate(rax)
			c.asm.place(over)
		}
		c.asm.place(done)
		c.storeSize(size, d, from)
		c.copy(rdx, r15)
	})
	return v
}

// lookup reads an entry of a table. In lanes whose result is not used an index may have any value,
// so the code brings indices into range.
func lookup(c *code, in ir.Instr, x []value, _ []ir.DType) value {
	t := ir.TableByID(in.Imm)
	if t == nil || len(t.Bits) == 0 {
		c.fail("no table %d", in.Imm)
		return x[0]
	}
	size := sizeOf(in.DT)
	table := c.table(in.Imm, t, size)
	n := len(t.Bits)
	return c.eachLane(in.DT, x, func(x []mem, d mem) {
		c.load32(rax, x[0])
		if n&(n-1) == 0 {
			c.opImm(and, ofGPR(rax), n-1)
		} else {
			ok := c.newLabel()
			c.opImm(cmp, ofGPR(rax), n)
			c.jumpIf(below, ok)
			c.clear(rax)
			c.asm.place(ok)
		}
		c.lea(rbx, table)
		entry := mem{base: rbx, index: rax, scale: uint8(size)}
		if size == 8 {
			c.load(rax, entry)
			c.store(d, rax)
		} else {
			c.load32(rax, entry)
			c.storeSize(4, d, rax)
		}
	})
}

// table places a table behind the code, once.
func (c *code) table(id uint64, t *ir.Table, size int) mem {
	if m, ok := c.tables[id]; ok {
		return m
	}
	var b []byte
	for _, bits := range t.Bits {
		for i := range size {
			b = append(b, byte(bits>>(8*i)))
		}
	}
	m := c.data(b)
	c.tables[id] = m
	return m
}
