package native

// Moves of vectors between registers and memory, for all targets. The rest of the package uses these
// functions.

// loadVec loads a vector of size bytes.
func (a *asm) loadVec(r uint8, size int, m mem) {
	if a.isa.A64 {
		a.moveVec(r, size, m, true)
		return
	}
	a.vector(vmovups, size, args{reg: r, rm: inMem(m), imm: noImm})
}

// storeVec stores a vector of size bytes.
func (a *asm) storeVec(m mem, size int, r uint8) {
	if a.isa.A64 {
		a.moveVec(r, size, m, false)
		return
	}
	a.vector(vmovupsTo, size, args{reg: r, rm: inMem(m), imm: noImm})
}

func (a *asm) copyVec(to, from uint8, size int) {
	if a.isa.A64 {
		a.movA64(to, from)
		return
	}
	a.vector(vmovaps, size, args{reg: to, rm: inReg(from), imm: noImm})
}

func (a *asm) clearVec(r uint8, size int) {
	if a.isa.A64 {
		a.zeroA64(r)
		return
	}
	a.vector(vpxor, size, args{reg: r, v: r, rm: inReg(r), imm: noImm})
}

// splatVec reads an element of four or eight bytes into all lanes of a vector.
func (a *asm) splatVec(r uint8, size, elem int, m mem) {
	if a.isa.A64 {
		a.dupLoad(r, elem, m)
		return
	}
	o := vbroadcastss
	if elem == 8 {
		o = vbroadcastsd
	}
	a.vector(o, size, args{reg: r, rm: inMem(m), imm: noImm})
}

// write appends the store of size bytes of a value.
func (c *code) write(v value, size int, m mem) {
	c.store1(item{o: vmovupsTo, size: size, s: [3]value{v}, mem: m, inMem: true, imm: noImm}, size)
}

// store1 appends a store of so many bytes, which the caller gives as an item for amd64.
func (c *code) store1(it item, bytes int) {
	if !c.isa.A64 {
		c.item(it)
		return
	}
	c.item(item{s: [3]value{it.s[0]}, imm: noImm, emit: func(r *regs) {
		it.before()
		c.storeVec(it.mem, bytes, r.s[0])
	}})
}

// load1 appends the load of a whole vector.
func (c *code) load1(size int, m mem, pre func()) value {
	it := item{o: vmovups, size: size, d: c.vec(size), mem: m, inMem: true, pre: pre, imm: noImm}
	if !c.isa.A64 {
		return c.item(it)
	}
	return c.item(item{d: it.d, imm: noImm, emit: func(r *regs) {
		it.before()
		c.loadVec(r.d, size, m)
	}})
}

// before emits the instructions that must precede an item's memory access.
func (it *item) before() {
	if it.pre != nil {
		it.pre()
	}
}

// Operations on the 32-bit lanes of vectors of n bytes, for conversions.

func (c *code) bitAnd(n int, x, y value) value {
	o := vpand
	if c.isa.A64 {
		o = nAnd
	}
	return c.op3(o, n, x, y)
}

// extended shifts the bits of lanes left and back, which extends their sign.
func (c *code) extended(n int, x value, by int16) value {
	if c.isa.A64 {
		return c.nShifted(nSshr, n, c.nShifted(nShl, n, x, by), by)
	}
	return c.op2i(vpsrad, n, n, c.op2i(vpslld, n, n, x, by), by)
}
