package arm64

import "github.com/millrace-go/millrace/codegen/native"

// Loads and stores of arm64. There are no masked loads and stores, so partial vectors go lane by
// lane.

// loadLanes reads neighbours of size bytes into lanes of at least four bytes.
func (a *machine) loadLanes(d uint8, size int, signed bool, lanes int, m native.Mem) {
	a.LoadVec(d, size*lanes, m)
	if size == 1 {
		a.widenVec(nSxtl8, nUxtl8, signed, d)
	}
	if size < 4 {
		a.widenVec(nSxtl16, nUxtl16, signed, d)
	}
}

func (a *machine) widenVec(s, u native.Op, signed bool, d uint8) {
	if !signed {
		s = u
	}
	a.neon(s, d, d, 0, 0)
}

// Partial: there are no masked accesses.
func (c *machine) Partial(int) bool { return false }

func (c *machine) LoadDense(d native.Dense, guard native.Value) native.Value {
	if guard != 0 || c.Tail != 0 {
		return 0
	}
	lanes := c.Lanes
	return c.Item(native.Item{D: c.Vec(d.N), Imm: native.NoImm, Emit: func(r *native.Regs) {
		d.Before()
		c.loadLanes(r.D, d.Size, d.Signed, lanes, d.M)
	}})
}

func (c *machine) StoreDense(d native.Dense, v native.Value, _ bool) {
	lanes := c.Lanes
	c.Item(native.Item{S: [3]native.Value{v}, Imm: native.NoImm, Emit: func(r *native.Regs) {
		from := r.S[0]
		if d.Size < 4 {
			c.neon(nXtn16, v31, from, 0, 0)
			from = v31
		}
		if d.Size == 1 {
			c.neon(nXtn8, v31, v31, 0, 0)
		}
		d.Before()
		c.StoreVec(d.M, d.Size*lanes, from)
	}})
}

func (c *machine) LoadApart(d native.Dense) native.Value {
	lanes := c.Lanes
	return c.Item(native.Item{D: c.Vec(d.N), Imm: native.NoImm, Emit: func(r *native.Regs) {
		d.Pre()
		for l := range lanes {
			if d.Size >= 4 {
				c.loadLane(r.D, d.Size, l, native.RAX)
			} else {
				c.LoadSize(d.Size, d.Signed, native.R15, native.At(native.RAX, 0))
				c.ins(r.D, l, native.R15)
			}
			if l < lanes-1 {
				c.Op(native.Add, native.RAX, native.OfGPR(native.RSI))
			}
		}
	}})
}

func (c *machine) LoadPart(d uint8, e native.Dense, _ bool, _ uint8) {
	c.loadLanes(d, e.Size, e.Signed, c.Lanes, e.M)
}

// LoadIfAll loads neighbours as a vector if the guard is set for all of them, and then jumps to done.
func (c *machine) LoadIfAll(r *native.Regs, d native.Dense, done native.Label) {
	lanes := c.NewLabel()
	c.least(native.RAX, r.S[1])
	c.OpImm(native.Cmp, native.OfGPR(native.RAX), 0)
	c.JumpIf(native.Equal, lanes)
	d.Before()
	c.loadLanes(r.D, d.Size, d.Signed, c.Lanes, d.M)
	c.Jump(done)
	c.Place(lanes)
}

// JumpIfSet jumps if a lane of a mask is set.
func (c *machine) JumpIfSet(mask uint8, _, elem int, to native.Label) {
	if elem*c.Lanes < 16 {
		c.moveOut(native.RAX, mask)
	} else {
		c.largest(native.RAX, mask)
	}
	c.OpImm(native.Cmp, native.OfGPR(native.RAX), 0)
	c.JumpIf(native.NotEqual, to)
}

func (c *machine) StoreValid(v, before native.Value, d native.Dense) {
	if c.Tail != 0 {
		v = c.n3(nBsl, d.N, v, before, c.TailOf(d.Size))
	}
	c.StoreItem(native.Item{Size: d.N, S: [3]native.Value{v}, Mem: d.M, InMem: true, Pre: d.Pre, Imm: native.NoImm})
}

func (c *machine) StoreOne(v native.Value, d native.Dense) {
	c.StoreItem(native.Item{Size: d.Size, S: [3]native.Value{v}, Mem: d.M, InMem: true, Pre: d.Pre, Imm: native.NoImm})
}

func (c *machine) Upper(v native.Value, bytes int) native.Value {
	if bytes == 8 {
		return c.n2(nUzp2|wide, 16, v, v)
	}
	return c.n1(nRev64, 16, v)
}

func (c *machine) Merge(d, mask, x uint8, n, _ int, m native.Mem) {
	c.LoadVec(v31, n, m)
	c.pick(d, mask, v31, x)
}

// JumpIfAny changes r.
func (a *machine) JumpIfAny(r, bits uint8, to native.Label) {
	a.neon(nAnd, r, r, bits, 0)
	a.largest(native.RAX, r)
	a.OpImm(native.Cmp, native.OfGPR(native.RAX), 0)
	a.JumpIf(native.NotEqual, to)
}

func (a *machine) JoinGreater(sum, x, limit uint8) {
	o := nCmgt
	if a.dot.size == 8 {
		o |= wide
	}
	a.neon(o, x, x, limit, 0)
	a.neon(nOrr, sum, sum, x, 0)
}

func (a *machine) TestGreater(sum uint8) {
	a.largest(native.RBX, sum)
	a.OpImm(native.Cmp, native.OfGPR(native.RBX), 0)
}
