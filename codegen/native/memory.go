package native

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// pointers hold the addresses of the most used operands; other addresses are read from the frame
// when they are needed. rcx counts the points of a row, rdx is their number. rax, rbx, rsi and r15
// are free between items.
var pointers = [...]gpr{r8, r9, r10, r11, r12, r13}

// base returns the register that holds an operand's address. If none does, pre loads the address
// into spare.
func (c *code) base(i int, spare gpr) (g gpr, pre func()) {
	if g := c.pointer[i]; g != noReg {
		return g, nil
	}
	return spare, func() { c.load(spare, operandWord(i, Address)) }
}

// dense returns the address of a vector of neighbouring elements: vector u of a step.
func (c *code) dense(i, size, u int) (m mem, pre func()) {
	g, pre := c.base(i, rax)
	return mem{base: g, index: rcx, scale: uint8(size), disp: int32(u * c.lanes * size)}, pre
}

// operandValue loads the elements of operand i for vector u of a step. guard may be 0.
func (c *code) operandValue(i int, dt ir.DType, guard value, u int) value {
	switch c.v.Class[i] {
	case codegen.Splat:
		if guard == 0 {
			return c.splatLoad(i, dt)
		}
	case codegen.Contiguous:
		if v := c.denseLoad(i, dt, guard, u); v != 0 {
			return v
		}
	case codegen.Strided:
		if guard == 0 && c.tail == 0 {
			return c.fromBytes(dt, c.apart(i, dt, u))
		}
	}
	return c.fromBytes(dt, c.laneLoad(i, dt, u, guard, nil))
}

// fromBytes converts a loaded vector: numbers to a mask for a Bool, else nothing.
func (c *code) fromBytes(dt ir.DType, v value) value {
	if dt != ir.Bool {
		return v
	}
	n := c.lanes * 4
	if c.isa.EVEX {
		return c.toMask(vptestmd, n, v, v, noImm)
	}
	return c.asMask(c.spell(ir.Instr{Op: ir.Neg, DT: ir.Int32}, []value{v}, nil))
}

func signedMemory(dt ir.DType) bool { return dt == ir.Int8 || dt == ir.Int16 || dt == ir.Int32 }

// loadOp is the load of a whole vector of elements of size bytes, extended by their sign if signed
// is set.
func loadOp(size int, signed bool) op {
	switch {
	case size == 1 && signed:
		return vpmovsxbd
	case size == 1:
		return vpmovzxbd
	case size == 2 && signed:
		return vpmovsxwd
	case size == 2:
		return vpmovzxwd
	case size == 8:
		return vmovupd
	}
	return vmovups
}

// AheadBytes is the distance from a load to the line that is prefetched with it. It is far enough
// for memory to answer in time, and near enough to stay in the first-level cache. Processors also
// prefetch themselves, but too little for a core that computes between its loads.
const AheadBytes = 2048

// askAhead prefetches the line that a later load needs. If several vectors share a line, only the
// first prefetches it.
func (c *code) askAhead(i int, m mem) {
	if !c.v.Far || c.tail != 0 || c.isa.A64 || c.pointer[i] == noReg || m.disp%cacheLine != 0 {
		return
	}
	m.disp += AheadBytes
	c.item(item{imm: noImm, emit: func(*regs) { c.ask(m) }})
}

// denseLoad loads neighbours. It returns 0 if they must be loaded lane by lane.
func (c *code) denseLoad(i int, dt ir.DType, guard value, u int) value {
	size := dt.Size()
	n := c.lanes * sizeOf(dt)
	m, pre := c.dense(i, size, u)
	if guard == 0 {
		c.askAhead(i, m)
	}
	it := item{o: loadOp(size, signedMemory(dt)), size: n, d: c.vec(n), mem: m, inMem: true, pre: pre, imm: noImm}
	lanes := c.tail
	switch {
	case !c.isa.A64:
	case guard != 0 || c.tail != 0:
		return 0
	default:
		return c.fromBytes(dt, c.neonLoad(it, size, signedMemory(dt)))
	}
	if guard != 0 {
		if lanes = guard; c.tail != 0 && c.isa.EVEX {
			lanes = c.toMask(kandw, c.lanes, guard, c.tail, noImm)
		}
	}
	switch {
	case lanes == 0:
	case c.isa.EVEX && guard == 0:
		it.k, it.zero = lanes, true
	case c.isa.EVEX:
		return c.fromBytes(dt, c.someLanes(it, lanes))
	case size < 4:
		return 0
	default:
		it.o = vmaskmovps
		if size == 8 {
			it.o = vmaskmovpd
		}
		if guard != 0 {
			if lanes = c.lanesAs(guard, n); c.tail != 0 {
				lanes = c.op3(vpand, n, lanes, c.tailOf(size))
			}
		} else {
			lanes = c.tailOf(size)
		}
		it.s[0] = lanes
	}
	return c.fromBytes(dt, c.item(it))
}

// tailOf is the mask of the valid lanes, if masks are vectors.
func (c *code) tailOf(size int) value {
	if size == 8 {
		return c.tail8
	}
	return c.tail
}

// someLanes loads the lanes of a mask. If the mask is empty, it skips the load: a masked load of
// memory that does not exist is slow, even with an empty mask.
func (c *code) someLanes(load item, lanes value) value {
	return c.item(item{d: load.d, k: lanes, size: load.size, imm: noImm, emit: func(r *regs) {
		skip := c.newLabel()
		c.vector(vpxor, load.size, args{reg: r.d, v: r.d, rm: inReg(r.d), imm: noImm})
		c.vector(kortestw, 16, args{reg: r.k, rm: inReg(r.k), imm: noImm})
		c.jumpIf(equal, skip)
		if load.pre != nil {
			load.pre()
		}
		c.vector(load.o, load.size, args{reg: r.d, rm: inMem(load.mem), k: r.k, zero: true, imm: noImm})
		c.asm.place(skip)
	}})
}

// splatLoad reads one element into all lanes.
func (c *code) splatLoad(i int, dt ir.DType) value {
	size := dt.Size()
	n := c.lanes * sizeOf(dt)
	return c.fromBytes(dt, c.item(item{d: c.vec(n), imm: noImm, emit: func(r *regs) {
		g, pre := c.base(i, rax)
		if pre != nil {
			pre()
		}
		switch size {
		case 4, 8:
			c.splatVec(r.d, n, size, at(g, 0))
		default:
			c.loadSize(size, signedMemory(dt), rax, at(g, 0))
			c.spread(r.d, n, 4, rax)
		}
	}}))
}

// spread fills a vector with a general register.
func (c *code) spread(d uint8, n, size int, g gpr) {
	switch {
	case c.isa.A64:
		c.dup(d, size, g)
	case c.isa.EVEX && size == 8:
		c.vector(vpbroadcastqR, n, args{reg: d, rm: ofGPR(g), imm: noImm})
	case c.isa.EVEX:
		c.vector(vpbroadcastdR, n, args{reg: d, rm: ofGPR(g), imm: noImm})
	case size == 8:
		c.vector(vmovqR, 16, args{reg: d, rm: ofGPR(g), imm: noImm})
		c.vector(vbroadcastsd, n, args{reg: d, rm: inReg(d), imm: noImm})
	default:
		c.vector(vmovd, 16, args{reg: d, rm: ofGPR(g), imm: noImm})
		c.vector(vbroadcastss, n, args{reg: d, rm: inReg(d), imm: noImm})
	}
}

// along sets r to the address of the first point of vector u of a step, for an operand whose points
// are not neighbours. It changes spare.
func (c *code) along(i, u int, r, spare gpr) {
	c.lea(r, at(rcx, u*c.lanes))
	c.imul(r, inMem(operandWord(i, Step)))
	if g := c.pointer[i]; g != noReg {
		c.op(add, r, ofGPR(g))
	} else {
		c.op(add, r, inMem(operandWord(i, Address)))
	}
}

// apart reads a whole vector of elements that are a step apart, four or two at a time.
func (c *code) apart(i int, dt ir.DType, u int) value {
	size, n := dt.Size(), c.lanes*sizeOf(dt)
	if c.isa.A64 {
		return c.neonApart(i, dt, u)
	}
	return c.item(item{d: c.vec(n), tmps: 1, imm: noImm, emit: func(r *regs) {
		c.along(i, u, rax, rbx)
		c.load(rsi, operandWord(i, Step))
		c.lea(rbx, mem{base: rsi, index: rsi, scale: 2})
		quarter := func(to uint8) {
			places := [...]mem{at(rax, 0), {base: rax, index: rsi, scale: 1}, {base: rax, index: rsi, scale: 2}, {base: rax, index: rbx, scale: 1}}
			if size == 8 {
				c.vector(vmovsd, 16, args{reg: to, rm: inMem(places[0]), imm: noImm})
				c.vector(vpinsrq, 16, args{reg: to, v: to, rm: inMem(places[1]), imm: 1})
				c.lea(rax, mem{base: rax, index: rsi, scale: 2})
				return
			}
			for j, m := range places {
				x := inMem(m)
				if size < 4 {
					c.loadSize(size, signedMemory(dt), r15, m)
					x = ofGPR(r15)
				}
				if j == 0 {
					c.vector(vmovd, 16, args{reg: to, rm: x, imm: noImm})
				} else {
					c.vector(vpinsrd, 16, args{reg: to, v: to, rm: x, imm: int16(j)})
				}
			}
			c.lea(rax, mem{base: rax, index: rsi, scale: 4})
		}
		quarter(r.d)
		for q := 1; q < n/16; q++ {
			quarter(r.tmp[0])
			o := vinserti128
			if c.isa.EVEX {
				o = vinserti32x4
			}
			c.vector(o, n, args{reg: r.d, v: r.d, rm: inReg(r.tmp[0]), imm: int16(q)})
		}
	}})
}

// storeValue writes a value through operand i.
func (c *code) storeValue(i int, dt ir.DType, v value, u int) {
	v = c.toBytes(dt, v)
	size, n := dt.Size(), c.lanes*sizeOf(dt)
	if i < len(c.v.Class) && c.v.Class[i] == codegen.Strided || !c.isa.EVEX && size < 4 && c.tail != 0 || c.isa.A64 && c.tail != 0 {
		c.laneStore(i, size, v, u)
		return
	}
	m, pre := c.dense(i, size, u)
	it := item{size: n, s: [3]value{v}, mem: m, inMem: true, pre: pre, imm: noImm}
	switch {
	case c.isa.A64:
		c.neonStore(it, size)
		return
	case size < 4 && !c.isa.EVEX:
		c.packed(it, size)
		return
	case size == 1:
		it.o = vpmovdb
	case size == 2:
		it.o = vpmovdw
	case c.tail == 0 && c.v.Past>>i&1 != 0:
		it.o = vmovntps
	case size == 8:
		it.o = vmovupdTo
	default:
		it.o = vmovupsTo
	}
	if c.tail != 0 && c.isa.EVEX {
		it.k = c.tail
	} else if c.tail != 0 {
		it.o, it.s[2] = vmaskmovpsTo, c.tailOf(size)
		if size == 8 {
			it.o = vmaskmovpdTo
		}
	}
	c.item(it)
}

// toBytes converts a mask to numbers.
func (c *code) toBytes(dt ir.DType, v value) value {
	if dt != ir.Bool {
		return v
	}
	return c.choice(v, c.lanes*4, 4, 1)
}

// packed stores the low bytes of 32-bit lanes on AVX2. It first packs them into one half of a
// register.
func (c *code) packed(it item, size int) {
	n := c.lanes * 4
	low := c.splat(4, 1<<(8*size)-1, n)
	x := c.op3(vpand, n, it.s[0], low)
	x = c.op3(vpackusdw, n, x, x)
	if n == 32 {
		x = c.op2i(vpermq, 32, 32, x, 8)
	}
	if size == 1 {
		x = c.op3(vpackuswb, 16, x, x)
	}
	it.size, it.s[0] = 16, x
	switch c.lanes * size {
	case 16:
		it.o = vmovupsTo
	case 8:
		it.o = vmovqTo
	default:
		it.o = vmovdTo
	}
	c.item(it)
}
