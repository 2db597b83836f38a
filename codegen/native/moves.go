package native

// What moves vectors between registers and memory, for all targets: the rest of the
// package asks for it by these names.

// loadVec loads a vector of so many bytes.
func (a *asm) loadVec(r uint8, size int, m mem) {
	a.vector(vmovups, size, args{reg: r, rm: inMem(m), imm: noImm})
}

// storeVec stores one.
func (a *asm) storeVec(m mem, size int, r uint8) {
	a.vector(vmovupsTo, size, args{reg: r, rm: inMem(m), imm: noImm})
}

func (a *asm) copyVec(to, from uint8, size int) {
	a.vector(vmovaps, size, args{reg: to, rm: inReg(from), imm: noImm})
}

func (a *asm) clearVec(r uint8, size int) {
	a.vector(vpxor, size, args{reg: r, v: r, rm: inReg(r), imm: noImm})
}

// splatVec reads an element of four or eight bytes into all lanes of a vector.
func (a *asm) splatVec(r uint8, size, elem int, m mem) {
	o := vbroadcastss
	if elem == 8 {
		o = vbroadcastsd
	}
	a.vector(o, size, args{reg: r, rm: inMem(m), imm: noImm})
}

// write appends the store of a value, of so many bytes.
func (c *code) write(v value, size int, m mem) {
	c.item(item{o: vmovupsTo, size: size, s: [3]value{v}, mem: m, inMem: true, imm: noImm})
}

// Operations on the 32-bit lanes of vectors of n bytes that conversions are made of.

func (c *code) bitAnd(n int, x, y value) value { return c.op3(vpand, n, x, y) }

// extended moves the bits of lanes to the left and back, as signed numbers.
func (c *code) extended(n int, x value, by int16) value {
	return c.op2i(vpsrad, n, n, c.op2i(vpslld, n, n, x, by), by)
}
