package native

// Registers are allocated while the code of a part is emitted, which is a straight line. If no
// register is free, the value whose next use is farthest gives up its own. A value with a home is
// read from there again; another value is spilled first.

const Forever = 1 << 30

// NextUse returns the first item from item from on that uses a value.
func (c *Builder) NextUse(v Value, from int32) int32 {
	x := &c.Vals[v]
	if x.part != c.part {
		return Forever
	}
	for x.next < from {
		x.next = c.items[x.next].next(v)
	}
	return x.next
}

func (c *Builder) fileOf(v Value) *file {
	if c.Vals[v].Mask {
		return &c.Masks
	}
	return &c.Vecs
}

// Take returns a free register, after evicting a value if necessary.
func (c *Builder) Take(f *file) uint8 {
	best, last := -1, int32(-1)
	for r, v := range f.Owner {
		if v == 0 && !f.Lock[r] {
			return uint8(r)
		}
		if v <= 0 || f.Lock[r] || c.Vals[v].Pinned {
			continue
		}
		if n := c.NextUse(v, c.Pos); n > last {
			best, last = r, n
		}
	}
	if best < 0 {
		c.Fail("no register can be freed")
		return 0
	}
	c.evict(f.Owner[best])
	return uint8(best)
}

// evict frees a value's register.
func (c *Builder) evict(v Value) {
	x := &c.Vals[v]
	f := c.fileOf(v)
	if x.Home == noHome && x.Spill < 0 && c.NextUse(v, c.Pos) != Forever {
		x.Spill = int32(c.frame.vector(c.ISA))
		c.toMemory(v, uint8(x.Reg), At(RDI, int(x.Spill)))
	}
	f.Owner[x.Reg] = 0
	x.Reg = -1
}

// toMemory stores a register unchanged.
func (c *Builder) toMemory(v Value, reg uint8, m Mem) {
	if c.Vals[v].Mask {
		c.m.StoreMask(m, reg)
		return
	}
	c.m.StoreVec(m, max(c.Vals[v].Size, 16), reg)
}

// FromMemory loads a value into a register from its place.
func (c *Builder) FromMemory(v Value, reg uint8) {
	x := &c.Vals[v]
	switch {
	case x.Home == anywhere: // a mask of all lanes or none
		c.m.SetMask(reg, x.Elem != 0)
	case x.Mask:
		c.m.LoadMask(reg, c.PlaceOf(v))
	case x.one:
		c.m.SplatVec(reg, x.Size, int(x.Elem), x.Mem)
	default:
		c.m.LoadVec(reg, max(x.Size, 16), c.PlaceOf(v))
	}
}

// PlaceOf returns the place of a value in memory.
func (c *Builder) PlaceOf(v Value) Mem {
	x := &c.Vals[v]
	if x.Home != noHome {
		return x.Mem
	}
	if x.Spill < 0 {
		c.Fail("a value is neither in a register nor in memory")
	}
	return At(RDI, int(x.Spill))
}

// InRegister brings a value into a register and locks it there for the present item.
func (c *Builder) InRegister(v Value) uint8 {
	x, f := &c.Vals[v], c.fileOf(v)
	if x.Reg < 0 {
		r := c.Take(f)
		c.FromMemory(v, r)
		f.Owner[r], x.Reg = v, int16(r)
	}
	f.Lock[x.Reg] = true
	return uint8(x.Reg)
}

// Release frees the registers of operands with no further use.
func (c *Builder) Release(it *Item) {
	for _, s := range it.operands() {
		if s > 0 && c.Vals[s].Reg >= 0 && !c.Vals[s].Pinned && c.NextUse(s, c.Pos+1) == Forever {
			f := c.fileOf(s)
			f.Owner[c.Vals[s].Reg], f.Lock[c.Vals[s].Reg] = 0, false
			c.Vals[s].Reg = -1
		}
	}
}

// Define gives the result of an item a register.
func (c *Builder) Define(v Value) uint8 {
	if v == 0 {
		return 0
	}
	f := c.fileOf(v)
	if x := &c.Vals[v]; x.Pinned { // it takes the register that another value held
		return uint8(x.Reg)
	}
	r := c.Take(f)
	f.Owner[r], f.Lock[r] = v, true
	c.Vals[v].Reg = int16(r)
	return r
}

// emitItems emits the items of a part and removes them.
func (c *Builder) emitItems() {
	c.settle()
	for i := range c.items {
		it := &c.items[i]
		c.Pos = int32(i)
		if it.note != "" {
			c.note("%s", it.note)
		}
		if it.Emit != nil {
			c.byItself(it)
		} else {
			c.m.One(it)
		}
		clear(c.Vecs.Lock)
		clear(c.Masks.Lock)
		if it.D > 0 && c.uses(it.D) == 0 && c.Vals[it.D].Reg >= 0 && !c.Vals[it.D].Pinned {
			c.fileOf(it.D).Owner[c.Vals[it.D].Reg] = 0
			c.Vals[it.D].Reg = -1
		}
		if c.Err != nil {
			break
		}
	}
	c.items = c.items[:0]
	for _, f := range []*file{&c.Vecs, &c.Masks} { // only pinned values stay in registers for the next part
		for r, v := range f.Owner {
			if v > 0 && !c.Vals[v].Pinned {
				c.Vals[v].Reg, f.Owner[r] = -1, 0
			}
		}
	}
}

// byItself runs an item with an emit function; all its operands are in registers.
func (c *Builder) byItself(it *Item) {
	r := &Regs{}
	for i, s := range it.S {
		if s > 0 {
			r.S[i] = c.InRegister(s)
		}
	}
	if it.K > 0 {
		r.K = c.InRegister(it.K)
	}
	for i := range it.Tmps {
		r.Tmp[i] = c.Take(&c.Vecs)
		c.Vecs.Lock[r.Tmp[i]] = true
	}
	if it.D > 0 && it.AtFirst {
		r.D = c.Define(it.D)
	}
	c.Release(it)
	if it.D > 0 && !it.AtFirst {
		r.D = c.Define(it.D)
	}
	it.Emit(r)
}
