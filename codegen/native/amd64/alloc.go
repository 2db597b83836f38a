package amd64

import "github.com/millrace-go/millrace/codegen/native"

// operand returns a value as ModRM.rm: in a register, or in memory if the instruction can read it
// there.
func (c *machine) operand(o native.Op, v native.Value) native.RM {
	x := &c.Vals[v]
	t := &opTable[o]
	if x.Reg < 0 && !x.Mask && t.form != formVMI && (x.Home == native.InPool || x.Home == native.InFrame || x.Spill >= 0) {
		switch {
		case !c.evex || x.Home != native.InPool:
			if t.scalar == 0 && t.half == 0 && t.rhalf == 0 {
				return native.InMem(c.PlaceOf(v))
			}
		case t.elem == x.Elem && t.elem > 0:
			m := x.Mem
			m.Step = x.Elem
			return native.InMem(m)
		}
	}
	return native.InReg(c.InRegister(v))
}

func (c *machine) One(it *native.Item) {
	if it.O == vfmadd231ps || it.O == vfmadd231pd {
		c.fma(it)
		return
	}
	t := &opTable[it.O]
	x := args{imm: it.Imm, zero: it.Zero}
	if t.commutes && !it.InMem && c.Vals[it.S[0]].Reg < 0 && c.Vals[it.S[1]].Reg >= 0 {
		it.Swap()
	}
	if it.S[0] > 0 {
		x.v = c.InRegister(it.S[0])
	}
	if it.S[2] > 0 {
		x.k = c.InRegister(it.S[2])
	}
	if it.K > 0 {
		x.k = c.InRegister(it.K)
	}
	switch {
	case it.InMem:
		x.RM = native.InMem(it.Mem)
	case it.S[1] > 0:
		x.RM = c.operand(it.O, it.S[1])
	}
	if it.Pre != nil {
		it.Pre()
	}
	c.Release(it)
	switch t.form {
	case formMR, formMRI:
		x.reg = x.v
		if !it.InMem {
			x.RM = native.InReg(c.Define(it.D))
		}
	case formMVR: // the data is s[0], the mask s[2]
		x.reg, x.v, x.k = x.v, x.k, 0
	default:
		x.reg = c.Define(it.D)
	}
	c.vector(it.O, it.Size, x)
}

// fma multiplies s[0] by s[1] and adds s[2]. The result takes the register of an operand with no
// further use, if there is one. One operand may be in memory.
func (c *machine) fma(it *native.Item) {
	wide := it.O == vfmadd231pd
	dies := func(v native.Value) bool {
		return c.Vals[v].Reg >= 0 && !c.Vals[v].Pinned && c.NextUse(v, c.Pos+1) == native.Forever
	}
	a, b, s := it.S[0], it.S[1], it.S[2]
	if c.Vals[a].Reg < 0 && c.Vals[b].Reg >= 0 || dies(b) && !dies(a) {
		a, b = b, a
	}
	x := args{imm: native.NoImm}
	o := vfmadd231ps
	take := func(v native.Value) { // d takes the register of v
		x.reg = uint8(c.Vals[v].Reg)
	}
	var freed native.Value
	switch {
	case dies(s) && s != a && s != b:
		c.InRegister(s)
		x.v = c.InRegister(a)
		x.RM = c.operand(it.O, b)
		take(s)
		freed = s
	case dies(a) && a != b && a != s:
		c.InRegister(a)
		if c.Vals[b].Reg < 0 { // 132: d = d*rm + v
			o = vfmadd132ps
			x.v = c.InRegister(s)
			x.RM = c.operand(it.O, b)
		} else { // 213: d = v*d + rm
			o = vfmadd213ps
			x.v = c.InRegister(b)
			x.RM = c.operand(it.O, s)
		}
		take(a)
		freed = a
	default:
		x.v = c.InRegister(a)
		x.RM = c.operand(it.O, b)
		r := c.Take(&c.Vecs)
		c.Vecs.Lock[r] = true
		if c.Vals[s].Reg >= 0 {
			c.vector(vmovaps, it.Size, args{reg: r, RM: native.InReg(uint8(c.Vals[s].Reg)), imm: native.NoImm})
		} else {
			c.FromMemory(s, r)
		}
		x.reg = r
	}
	if freed > 0 {
		c.Vals[freed].Reg = -1
	}
	c.Vecs.Owner[x.reg] = -1
	c.Release(it)
	c.Vecs.Owner[x.reg], c.Vals[it.D].Reg = it.D, int16(x.reg)
	if wide {
		o++
	}
	c.vector(o, it.Size, x)
}

// toMask is an instruction whose result is in a mask register.
func (c *machine) toMask(o native.Op, size int, x, y native.Value, imm int16) native.Value {
	return c.Item(native.Item{O: o, Size: size, D: c.NewValue(native.Info{Mask: true, Size: size}), S: [3]native.Value{x, y}, Imm: imm})
}
