package amd64

import "github.com/millrace-go/millrace/codegen/native"

// Loads and stores of whole and partial vectors.

// loadOp is the load of a whole vector of elements of size bytes, extended by their sign if signed
// is set.
func loadOp(size int, signed bool) native.Op {
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

// Partial: AVX-512 masks elements of any size, AVX2 those of four and eight bytes.
func (c *machine) Partial(size int) bool { return c.evex || size >= 4 }

func (c *machine) LoadDense(d native.Dense, guard native.Value) native.Value {
	it := native.Item{O: loadOp(d.Size, d.Signed), Size: d.N, D: c.Vec(d.N), Mem: d.M, InMem: true, Pre: d.Pre, Imm: native.NoImm}
	lanes := c.Tail
	if guard != 0 {
		if lanes = guard; c.Tail != 0 && c.evex {
			lanes = c.toMask(kandw, c.Lanes, guard, c.Tail, native.NoImm)
		}
	}
	switch {
	case lanes == 0:
	case c.evex && guard == 0:
		it.K, it.Zero = lanes, true
	case c.evex:
		return c.someLanes(it, lanes)
	case d.Size < 4:
		return 0
	default:
		it.O = vmaskmovps
		if d.Size == 8 {
			it.O = vmaskmovpd
		}
		if guard != 0 {
			if lanes = c.LanesAs(guard, d.N); c.Tail != 0 {
				lanes = c.Op3(vpand, d.N, lanes, c.TailOf(d.Size))
			}
		} else {
			lanes = c.TailOf(d.Size)
		}
		it.S[0] = lanes
	}
	return c.Item(it)
}

// someLanes loads the lanes of a mask. If the mask is empty, it skips the load: a masked load of
// memory that does not exist is slow, even with an empty mask.
func (c *machine) someLanes(load native.Item, lanes native.Value) native.Value {
	return c.Item(native.Item{D: load.D, K: lanes, Size: load.Size, Imm: native.NoImm, Emit: func(r *native.Regs) {
		skip := c.NewLabel()
		c.vector(vpxor, load.Size, args{reg: r.D, v: r.D, RM: native.InReg(r.D), imm: native.NoImm})
		c.vector(kortestw, 16, args{reg: r.K, RM: native.InReg(r.K), imm: native.NoImm})
		c.JumpIf(native.Equal, skip)
		if load.Pre != nil {
			load.Pre()
		}
		c.vector(load.O, load.Size, args{reg: r.D, RM: native.InMem(load.Mem), k: r.K, zero: true, imm: native.NoImm})
		c.Place(skip)
	}})
}

// LoadApart reads four or two elements at a time.
func (c *machine) LoadApart(e native.Dense) native.Value {
	size, n := e.Size, e.N
	return c.Item(native.Item{D: c.Vec(n), Tmps: 1, Imm: native.NoImm, Emit: func(r *native.Regs) {
		e.Pre()
		c.Lea(native.RBX, native.Mem{Base: native.RSI, Index: native.RSI, Scale: 2})
		quarter := func(to uint8) {
			places := [...]native.Mem{native.At(native.RAX, 0), {Base: native.RAX, Index: native.RSI, Scale: 1}, {Base: native.RAX, Index: native.RSI, Scale: 2}, {Base: native.RAX, Index: native.RBX, Scale: 1}}
			if size == 8 {
				c.vector(vmovsd, 16, args{reg: to, RM: native.InMem(places[0]), imm: native.NoImm})
				c.vector(vpinsrq, 16, args{reg: to, v: to, RM: native.InMem(places[1]), imm: 1})
				c.Lea(native.RAX, native.Mem{Base: native.RAX, Index: native.RSI, Scale: 2})
				return
			}
			for j, m := range places {
				x := native.InMem(m)
				if size < 4 {
					c.LoadSize(size, e.Signed, native.R15, m)
					x = native.OfGPR(native.R15)
				}
				if j == 0 {
					c.vector(vmovd, 16, args{reg: to, RM: x, imm: native.NoImm})
				} else {
					c.vector(vpinsrd, 16, args{reg: to, v: to, RM: x, imm: int16(j)})
				}
			}
			c.Lea(native.RAX, native.Mem{Base: native.RAX, Index: native.RSI, Scale: 4})
		}
		quarter(r.D)
		for q := 1; q < n/16; q++ {
			quarter(r.Tmp[0])
			o := vinserti128
			if c.evex {
				o = vinserti32x4
			}
			c.vector(o, n, args{reg: r.D, v: r.D, RM: native.InReg(r.Tmp[0]), imm: int16(q)})
		}
	}})
}

func (c *machine) StoreDense(d native.Dense, v native.Value, past bool) {
	it := native.Item{Size: d.N, S: [3]native.Value{v}, Mem: d.M, InMem: true, Pre: d.Pre, Imm: native.NoImm}
	switch {
	case d.Size < 4 && !c.evex:
		c.packed(it, d.Size)
		return
	case d.Size == 1:
		it.O = vpmovdb
	case d.Size == 2:
		it.O = vpmovdw
	case c.Tail == 0 && past:
		it.O = vmovntps
	case d.Size == 8:
		it.O = vmovupdTo
	default:
		it.O = vmovupsTo
	}
	if c.Tail != 0 && c.evex {
		it.K = c.Tail
	} else if c.Tail != 0 {
		it.O, it.S[2] = vmaskmovpsTo, c.TailOf(d.Size)
		if d.Size == 8 {
			it.O = vmaskmovpdTo
		}
	}
	c.Item(it)
}

// packed stores the low bytes of 32-bit lanes on AVX2. It first packs them into one half of a
// register.
func (c *machine) packed(it native.Item, size int) {
	n := c.Lanes * 4
	low := c.Splat(4, 1<<(8*size)-1, n)
	x := c.Op3(vpand, n, it.S[0], low)
	x = c.Op3(vpackusdw, n, x, x)
	if n == 32 {
		x = c.Op2i(vpermq, 32, 32, x, 8)
	}
	if size == 1 {
		x = c.Op3(vpackuswb, 16, x, x)
	}
	it.Size, it.S[0] = 16, x
	switch c.Lanes * size {
	case 16:
		it.O = vmovupsTo
	case 8:
		it.O = vmovqTo
	default:
		it.O = vmovdTo
	}
	c.Item(it)
}

// LoadPart loads the valid lanes of neighbours, or all of them if mask is negative. mask is the
// register of the mask on AVX2.
func (c *machine) LoadPart(d uint8, e native.Dense, tail bool, mask uint8) {
	a := args{reg: d, RM: native.InMem(e.M), imm: native.NoImm}
	o := loadOp(e.Size, e.Signed)
	switch {
	case tail && c.evex:
		a.k, a.zero = 7, true
	case tail && e.Size == 8:
		o, a.v = vmaskmovpd, mask
	case tail:
		o, a.v = vmaskmovps, mask
	}
	c.vector(o, e.N, a)
}

// LoadIfAll does nothing, since loadDense loads any lanes whose guard is set.
func (c *machine) LoadIfAll(*native.Regs, native.Dense, native.Label) {}

// StoreValid stores the valid lanes of a vector and leaves the others in memory.
func (c *machine) StoreValid(v, _ native.Value, d native.Dense) {
	it := native.Item{O: vmovupsTo, Size: d.N, S: [3]native.Value{v}, Mem: d.M, InMem: true, Pre: d.Pre, Imm: native.NoImm}
	switch {
	case d.Size == 8 && c.evex:
		it.O, it.K = vmovupdTo, c.Tail
	case c.evex:
		it.K = c.Tail
	case c.Tail != 0 && d.Size == 8:
		it.O, it.S[2] = vmaskmovpdTo, c.TailOf(d.Size)
	case c.Tail != 0:
		it.O, it.S[2] = vmaskmovpsTo, c.TailOf(d.Size)
	}
	c.Item(it)
}

// StoreOne stores the first lane.
func (c *machine) StoreOne(v native.Value, d native.Dense) {
	it := native.Item{O: vmovssTo, Size: 16, S: [3]native.Value{v}, Mem: d.M, InMem: true, Pre: d.Pre, Imm: native.NoImm}
	switch d.Size {
	case 1:
		it = native.Item{S: it.S, Imm: native.NoImm, Emit: func(r *native.Regs) {
			c.vector(vmovdTo, 16, args{reg: r.S[0], RM: native.OfGPR(native.RBX), imm: native.NoImm})
			c.StoreSize(1, d.M, native.RBX)
		}}
	case 8:
		it.O = vmovqTo
	}
	c.Item(it)
}

// Upper shifts out the first bytes of a vector; only as many bytes again are valid afterwards.
func (c *machine) Upper(v native.Value, bytes int) native.Value {
	switch {
	case bytes == 32:
		return c.Item(native.Item{O: vextracti64x4, Size: 64, D: c.Vec(32), S: [3]native.Value{v}, Imm: 1})
	case bytes == 16 && c.evex:
		return c.Item(native.Item{O: vextracti32x4, Size: 32, D: c.Vec(16), S: [3]native.Value{v}, Imm: 1})
	case bytes == 16:
		return c.Item(native.Item{O: vextracti128, Size: 32, D: c.Vec(16), S: [3]native.Value{v}, Imm: 1})
	case bytes == 8:
		return c.Op2i(vpshufd, 16, 16, v, 0x4e)
	case bytes == 4:
		return c.Op2i(vpshufd, 16, 16, v, 0xb1)
	}
	return c.Op2i(vpsrld, 16, 16, v, int16(8*bytes))
}

// JumpIfSet jumps if a lane of a mask is set; vector masks have n bytes, of elem bytes a lane.
func (c *machine) JumpIfSet(mask uint8, n, elem int, to native.Label) {
	if c.evex {
		c.vector(kortestw, 16, args{reg: mask, RM: native.InReg(mask), imm: native.NoImm})
		c.JumpIf(native.NotEqual, to)
		return
	}
	o := vmovmskps
	if elem == 8 {
		o = vmovmskpd
	}
	c.vector(o, n, args{reg: uint8(native.RAX), RM: native.InReg(mask), imm: native.NoImm})
	c.OpImm(native.Cmp, native.OfGPR(native.RAX), 0)
	c.JumpIf(native.NotEqual, to)
}

// Merge sets d to the lanes of memory where the mask is set, and to those of x elsewhere.
func (c *machine) Merge(d, mask, x uint8, n, elem int, m native.Mem) {
	if !c.evex {
		o := vblendvps
		if elem == 8 {
			o = vblendvpd
		}
		c.vector(o, n, args{reg: d, v: x, RM: native.InMem(m), k: mask, imm: native.NoImm})
		return
	}
	c.vector(vmovaps, n, args{reg: d, RM: native.InReg(x), imm: native.NoImm})
	o := vmovups
	if elem == 8 {
		o = vmovupd
	}
	c.vector(o, n, args{reg: d, RM: native.InMem(m), k: mask, imm: native.NoImm})
}
