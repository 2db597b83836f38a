package native

import "github.com/millrace-go/millrace/ir"

// Operations for which the vector units have no instruction are done lane by lane: the operands are
// stored, general registers process their lanes, and the result is loaded.

// slowLane is the time of one lane, in vector instructions. A division of 64 bits takes up to 90
// cycles.
const slowLane = 24

// laneAt is a lane of a scratch array; rsi counts lanes.
func (c *Builder) laneAt(array, size int) Mem {
	return Mem{Base: RDI, Index: RSI, Scale: uint8(size), Disp: int32(c.frame.lane(array))}
}

// saveVector stores a vector of size bytes unchanged.
func (c *Builder) saveVector(r uint8, size, at int) {
	c.m.StoreVec(Mem{Base: RDI, Index: NoReg, Scale: 1, Disp: int32(at)}, size, r)
}

func (c *Builder) loadVector(r uint8, size, at int) {
	c.m.LoadVec(r, size, Mem{Base: RDI, Index: NoReg, Scale: 1, Disp: int32(at)})
}

// EachLane makes a vector of dt lane by lane: body emits code that computes element d of a lane from
// its elements x. The code may use rax, rbx, rdx (which it must save), and the vector register
// laneReg.
func (c *Builder) EachLane(dt ir.DType, x []Value, body func(x []Mem, d Mem)) Value {
	n := c.Bytes(dt)
	lanes := c.Lanes
	c.slow += slowLane * c.Lanes
	it := Item{D: c.Vec(n), Tmps: 1}
	copy(it.S[:], x)
	sizes := make([]int, len(x))
	for i, v := range x {
		sizes[i] = c.Vals[v].Size
	}
	it.Emit = func(r *Regs) {
		var ms []Mem
		for i, size := range sizes {
			c.saveVector(r.S[i], size, c.frame.lane(laneA+i))
			ms = append(ms, c.laneAt(laneA+i, size/lanes))
		}
		c.LaneReg = r.Tmp[0]
		top := c.NewLabel()
		c.m.Clear(RSI)
		c.Place(top)
		body(ms, c.laneAt(laneR, n/lanes))
		c.m.OpImm(Add, OfGPR(RSI), 1)
		c.m.OpImm(Cmp, OfGPR(RSI), lanes)
		c.m.JumpIf(Less, top)
		c.loadVector(r.D, n, c.frame.lane(laneR))
	}
	return c.Item(it)
}

// lookup reads an entry of a table. In lanes whose result is not used an index may have any value,
// so the code brings indices into range.
func (c *code) lookup(in ir.Instr, x []Value) Value {
	t := ir.TableByID(in.Imm)
	if t == nil || len(t.Bits) == 0 {
		c.Fail("table %d does not exist or is empty", in.Imm)
		return x[0]
	}
	size := SizeOf(in.DT)
	table := c.table(in.Imm, t, size)
	n := len(t.Bits)
	return c.EachLane(in.DT, x, func(x []Mem, d Mem) {
		c.Load32(RAX, x[0])
		if n&(n-1) == 0 {
			c.OpImm(And, OfGPR(RAX), n-1)
		} else {
			ok := c.NewLabel()
			c.OpImm(Cmp, OfGPR(RAX), n)
			c.JumpIf(Below, ok)
			c.Clear(RAX)
			c.Place(ok)
		}
		c.Lea(RBX, table)
		entry := Mem{Base: RBX, Index: RAX, Scale: uint8(size)}
		if size == 8 {
			c.Load(RAX, entry)
			c.Store(d, RAX)
		} else {
			c.Load32(RAX, entry)
			c.StoreSize(4, d, RAX)
		}
	})
}

// table places a table behind the code, once.
func (c *code) table(id uint64, t *ir.Table, size int) Mem {
	if m, ok := c.tables[id]; ok {
		return m
	}
	var b []byte
	for _, bits := range t.Bits {
		for i := range size {
			b = append(b, byte(bits>>(8*i)))
		}
	}
	m := c.Data(b)
	c.tables[id] = m
	return m
}
