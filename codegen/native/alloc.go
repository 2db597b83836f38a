package native

// Registers are allocated while the code of a part is emitted, which is a straight line. If no
// register is free, the value whose next use is farthest gives up its own. A value with a home is
// read from there again; another value is spilled first.

const forever = 1 << 30

// nextUse returns the first item from item from on that uses a value.
func (c *code) nextUse(v value, from int32) int32 {
	x := &c.vals[v]
	for x.next < len(x.uses) && x.uses[x.next] < from {
		x.next++
	}
	if x.next < len(x.uses) {
		return x.uses[x.next]
	}
	return forever
}

func (c *code) fileOf(v value) *file {
	if c.vals[v].mask {
		return &c.masks
	}
	return &c.vecs
}

// take returns a free register, after evicting a value if necessary.
func (c *code) take(f *file) uint8 {
	best, last := -1, int32(-1)
	for r, v := range f.owner {
		if v == 0 && !f.lock[r] {
			return uint8(r)
		}
		if v <= 0 || f.lock[r] || c.vals[v].pinned {
			continue
		}
		if n := c.nextUse(v, c.pos); n > last {
			best, last = r, n
		}
	}
	if best < 0 {
		c.fail("no register is left")
		return 0
	}
	c.evict(f.owner[best])
	return uint8(best)
}

// evict frees a value's register.
func (c *code) evict(v value) {
	x := &c.vals[v]
	f := c.fileOf(v)
	if x.home == noHome && x.spill < 0 && c.nextUse(v, c.pos) != forever {
		x.spill = int32(c.frame.vector(c.isa))
		c.toMemory(v, uint8(x.reg), at(rdi, int(x.spill)))
	}
	f.owner[x.reg] = 0
	x.reg = -1
}

// toMemory stores a register unchanged.
func (c *code) toMemory(v value, reg uint8, m mem) {
	if c.vals[v].mask {
		c.vector(kmovwTo, 16, args{reg: reg, rm: inMem(m), imm: noImm})
		return
	}
	c.storeVec(m, max(c.vals[v].size, 16), reg)
}

// fromMemory loads a value into a register from its place.
func (c *code) fromMemory(v value, reg uint8) {
	x := &c.vals[v]
	switch {
	case x.home == anywhere: // a mask of all lanes or none
		o := kxorw
		if x.elem != 0 {
			o = kxnorw
		}
		c.vector(o, 16, args{reg: reg, v: reg, rm: inReg(reg), imm: noImm})
	case x.mask:
		c.vector(kmovw, 16, args{reg: reg, rm: inMem(c.place(v)), imm: noImm})
	case x.home == inPool && c.isa.EVEX && (x.elem == 4 || x.elem == 8 && x.size > 16):
		c.splatVec(reg, x.size, int(x.elem), x.mem)
	default:
		c.loadVec(reg, max(x.size, 16), c.place(v))
	}
}

// place returns the place of a value in memory.
func (c *code) place(v value) mem {
	x := &c.vals[v]
	if x.home != noHome {
		return x.mem
	}
	if x.spill < 0 {
		c.fail("a value is nowhere")
	}
	return at(rdi, int(x.spill))
}

// inRegister brings a value into a register and locks it there for the present item.
func (c *code) inRegister(v value) uint8 {
	x, f := &c.vals[v], c.fileOf(v)
	if x.reg < 0 {
		r := c.take(f)
		c.fromMemory(v, r)
		f.owner[r], x.reg = v, int16(r)
	}
	f.lock[x.reg] = true
	return uint8(x.reg)
}

// release frees the registers of operands with no further use.
func (c *code) release(it *item) {
	for _, s := range [...]value{it.s[0], it.s[1], it.s[2], it.k} {
		if s > 0 && c.vals[s].reg >= 0 && !c.vals[s].pinned && c.nextUse(s, c.pos+1) == forever {
			f := c.fileOf(s)
			f.owner[c.vals[s].reg], f.lock[c.vals[s].reg] = 0, false
			c.vals[s].reg = -1
		}
	}
}

// define gives the result of an item a register.
func (c *code) define(v value) uint8 {
	if v == 0 {
		return 0
	}
	f := c.fileOf(v)
	if x := &c.vals[v]; x.pinned { // it takes the register that another value held
		return uint8(x.reg)
	}
	r := c.take(f)
	f.owner[r], f.lock[r] = v, true
	c.vals[v].reg = int16(r)
	return r
}

// operand returns a value as ModRM.rm: in a register, or in memory if the instruction can read it
// there.
func (c *code) operand(o op, v value) rm {
	x := &c.vals[v]
	t := &opTable[o]
	if x.reg < 0 && !x.mask && t.form != formVMI && (x.home == inPool || x.home == inFrame || x.spill >= 0) {
		switch {
		case !c.isa.EVEX || x.home != inPool:
			if t.scalar == 0 && t.half == 0 && t.rhalf == 0 {
				return inMem(c.place(v))
			}
		case t.elem == x.elem && t.elem > 0:
			m := x.mem
			m.step = x.elem
			return inMem(m)
		}
	}
	return inReg(c.inRegister(v))
}

// emitItems emits the items of a part and removes them.
func (c *code) emitItems() {
	c.settle()
	for i := range c.items {
		it := &c.items[i]
		c.pos = int32(i)
		if it.note != "" {
			c.note("%s", it.note)
		}
		c.one(it)
		clear(c.vecs.lock)
		clear(c.masks.lock)
		if it.d > 0 && len(c.vals[it.d].uses) == 0 && c.vals[it.d].reg >= 0 && !c.vals[it.d].pinned {
			c.fileOf(it.d).owner[c.vals[it.d].reg] = 0
			c.vals[it.d].reg = -1
		}
		if c.err != nil {
			break
		}
	}
	c.items = c.items[:0]
	for _, f := range []*file{&c.vecs, &c.masks} { // only pinned values stay in registers for the next part
		for r, v := range f.owner {
			if v > 0 && !c.vals[v].pinned {
				c.vals[v].reg, f.owner[r] = -1, 0
			}
		}
	}
}

func (c *code) one(it *item) {
	switch {
	case it.emit != nil:
		c.byItself(it)
		return
	case c.isa.A64:
		c.oneA64(it)
		return
	case it.o == vfmadd231ps || it.o == vfmadd231pd:
		c.fma(it)
		return
	}
	t := &opTable[it.o]
	x := args{imm: it.imm, zero: it.zero}
	if t.commutes && !it.inMem && c.vals[it.s[0]].reg < 0 && c.vals[it.s[1]].reg >= 0 {
		it.s[0], it.s[1] = it.s[1], it.s[0]
	}
	if it.s[0] > 0 {
		x.v = c.inRegister(it.s[0])
	}
	if it.s[2] > 0 {
		x.k = c.inRegister(it.s[2])
	}
	if it.k > 0 {
		x.k = c.inRegister(it.k)
	}
	switch {
	case it.inMem:
		x.rm = inMem(it.mem)
	case it.s[1] > 0:
		x.rm = c.operand(it.o, it.s[1])
	}
	if it.pre != nil {
		it.pre()
	}
	c.release(it)
	switch t.form {
	case formMR, formMRI:
		x.reg = x.v
		if !it.inMem {
			x.rm = inReg(c.define(it.d))
		}
	case formMVR: // the data is s[0], the mask s[2]
		x.reg, x.v, x.k = x.v, x.k, 0
	default:
		x.reg = c.define(it.d)
	}
	c.vector(it.o, it.size, x)
}

// fma multiplies s[0] by s[1] and adds s[2]. The result takes the register of an operand with no
// further use, if there is one. One operand may be in memory.
func (c *code) fma(it *item) {
	wide := it.o == vfmadd231pd
	dies := func(v value) bool {
		return c.vals[v].reg >= 0 && !c.vals[v].pinned && c.nextUse(v, c.pos+1) == forever
	}
	a, b, s := it.s[0], it.s[1], it.s[2]
	if c.vals[a].reg < 0 && c.vals[b].reg >= 0 || dies(b) && !dies(a) {
		a, b = b, a
	}
	x := args{imm: noImm}
	o := vfmadd231ps
	take := func(v value) { // d takes the register of v
		x.reg = uint8(c.vals[v].reg)
	}
	var freed value
	switch {
	case dies(s) && s != a && s != b:
		c.inRegister(s)
		x.v = c.inRegister(a)
		x.rm = c.operand(it.o, b)
		take(s)
		freed = s
	case dies(a) && a != b && a != s:
		c.inRegister(a)
		if c.vals[b].reg < 0 { // 132: d = d*rm + v
			o = vfmadd132ps
			x.v = c.inRegister(s)
			x.rm = c.operand(it.o, b)
		} else { // 213: d = v*d + rm
			o = vfmadd213ps
			x.v = c.inRegister(b)
			x.rm = c.operand(it.o, s)
		}
		take(a)
		freed = a
	default:
		x.v = c.inRegister(a)
		x.rm = c.operand(it.o, b)
		r := c.take(&c.vecs)
		c.vecs.lock[r] = true
		if c.vals[s].reg >= 0 {
			c.vector(vmovaps, it.size, args{reg: r, rm: inReg(uint8(c.vals[s].reg)), imm: noImm})
		} else {
			c.fromMemory(s, r)
		}
		x.reg = r
	}
	if freed > 0 {
		c.vals[freed].reg = -1
	}
	c.vecs.owner[x.reg] = -1
	c.release(it)
	c.vecs.owner[x.reg], c.vals[it.d].reg = it.d, int16(x.reg)
	if wide {
		o++
	}
	c.vector(o, it.size, x)
}

// byItself runs an item with an emit function; all its operands are in registers.
func (c *code) byItself(it *item) {
	r := &regs{}
	for i, s := range it.s {
		if s > 0 {
			r.s[i] = c.inRegister(s)
		}
	}
	if it.k > 0 {
		r.k = c.inRegister(it.k)
	}
	for i := range it.tmps {
		r.tmp[i] = c.take(&c.vecs)
		c.vecs.lock[r.tmp[i]] = true
	}
	if it.d > 0 && it.atFirst {
		r.d = c.define(it.d)
	}
	c.release(it)
	if it.d > 0 && !it.atFirst {
		r.d = c.define(it.d)
	}
	it.emit(r)
}

// oneA64 emits an instruction of arm64's table, with all operands in registers. An instruction that
// also reads its destination has that operand in s[2].
func (c *code) oneA64(it *item) {
	var r [3]uint8
	for i, s := range it.s {
		if s > 0 {
			r[i] = c.inRegister(s)
		}
	}
	s := it.s[2]
	dies := s > 0 && s != it.s[0] && s != it.s[1] && !c.vals[s].pinned && c.nextUse(s, c.pos+1) == forever
	var d uint8
	switch {
	case s == 0:
		c.release(it)
		d = c.define(it.d)
	case dies:
		d = r[2]
		c.vals[s].reg = -1
		c.vecs.owner[d] = it.d
		c.release(it)
		c.vals[it.d].reg = int16(d)
	default:
		d = c.define(it.d)
		c.release(it)
		c.movA64(d, r[2])
	}
	if neonOf(it.o).shape == shape3 || s > 0 {
		c.neon(it.o, d, r[0], r[1], 0)
		return
	}
	c.neon(it.o, d, r[1], 0, int(max(it.imm, 0))) // see op2
}
