package native

import "github.com/millrace-go/millrace/ir"

// slowCall is the time to call a sub-program, in instructions.
const slowCall = 200

// rare is the slow path for a few lanes. The code tests for each vector whether any lane needs it.
// The slow path is not inline: it saves all registers in use, a function computes the sub-program's
// results for all lanes, and the results of the lanes that need them replace the fast ones.
func rare(c *code, in ir.Instr, x []value, dts []ir.DType) value {
	p := ir.SubByID(in.Imm)
	if p == nil {
		c.fail("no sub-program %d", in.Imm)
		return x[1]
	}
	if len(p.Params) > maxParams || len(x) > 4 {
		c.fail("sub-program %s of %d parameters", p.Name, len(p.Params))
		return x[1]
	}
	c.slow += slowCall + 2*len(p.Code)*c.lanes*8/c.isa.Bytes
	n := c.bytes(in.DT)
	isMask := in.DT == ir.Bool
	params := make([]value, 0, 2)
	for i, v := range x[2:] {
		if dts[2+i] == ir.Bool {
			v = c.toBytes(ir.Bool, v)
		}
		params = append(params, v)
	}
	out := info{size: n, mask: isMask && c.isa.EVEX}
	if isMask {
		c.fail("sub-program %s of masks", p.Name)
		return x[1]
	}
	it := item{d: c.newValue(out), imm: noImm, atFirst: true}
	it.s[0] = x[1]
	copy(it.s[1:], params)
	it.k = x[0]
	if !c.isa.EVEX {
		it.k = c.lanesAs(x[0], n)
	}
	f := c.subOf(in.Imm)
	lanes := c.lanes
	it.emit = func(r *regs) {
		slow, back := c.newLabel(), c.newLabel()
		switch {
		case c.isa.EVEX:
			c.vector(kortestw, 16, args{reg: r.k, rm: inReg(r.k), imm: noImm})
			c.jumpIf(notEqual, slow)
		case c.isa.A64:
			c.any(r.k, n/lanes, slow)
		default:
			o := vmovmskps
			if n/lanes == 8 {
				o = vmovmskpd
			}
			c.vector(o, n, args{reg: uint8(rax), rm: inReg(r.k), imm: noImm})
			c.opImm(cmp, ofGPR(rax), 0)
			c.jumpIf(notEqual, slow)
		}
		c.copyVec(r.d, r.s[0], n)
		c.asm.place(back)
		vecs, masks := used(c.vecs), used(c.masks)
		for i := range r.s {
			if it.s[i] > 0 {
				vecs[r.s[i]] = true
			}
		}
		if c.isa.EVEX {
			masks[r.k], masks[7] = true, true
		} else {
			vecs[r.k] = true
		}
		sizes := [3]int{}
		for i := range params {
			sizes[i] = c.vals[params[i]].size
		}
		c.cold = append(c.cold, func() {
			c.asm.place(slow)
			c.note("rarely: %s", p.Name)
			c.saveAll(vecs, masks, true)
			for i := range params {
				c.saveVector(r.s[1+i], sizes[i], c.frame.param(i))
			}
			ret := c.newLabel()
			c.leaLabel(rax, ret)
			c.store(at(rdi, frameReturn), rax)
			c.jump(f.entry)
			c.asm.place(ret)
			c.saveAll(vecs, masks, false)
			result := inMem(at(rdi, c.frame.param(maxParams)))
			switch {
			case c.isa.A64:
				c.loadVec(v31, n, result.mem)
				c.pick(r.d, r.k, v31, r.s[0])
			case c.isa.EVEX:
				c.vector(vmovaps, n, args{reg: r.d, rm: inReg(r.s[0]), imm: noImm})
				o := vmovups
				if n/lanes == 8 {
					o = vmovupd
				}
				c.vector(o, n, args{reg: r.d, rm: result, k: r.k, imm: noImm})
			default:
				c.vector(blendvs[kinds[in.DT]], n, args{reg: r.d, v: r.s[0], rm: result, k: r.k, imm: noImm})
			}
			c.jump(back)
		})
	}
	return c.item(it)
}

// used reports the registers of a file that hold a value.
func used(f file) []bool {
	u := make([]bool, len(f.owner))
	for r, v := range f.owner {
		u[r] = v > 0
	}
	return u
}

// saveAll stores registers, or loads them again.
func (c *code) saveAll(vecs, masks []bool, out bool) {
	for r, is := range vecs {
		if !is {
			continue
		}
		if at := c.frame.register(r, c.isa); out {
			c.saveVector(uint8(r), c.isa.Bytes, at)
		} else {
			c.loadVector(uint8(r), c.isa.Bytes, at)
		}
	}
	for r, is := range masks {
		if !is || r == 0 {
			continue
		}
		if m := at(rdi, c.frame.register(c.isa.Regs, c.isa)+8*r); out {
			c.vector(kmovwTo, 16, args{reg: uint8(r), rm: inMem(m), imm: noImm})
		} else {
			c.vector(kmovw, 16, args{reg: uint8(r), rm: inMem(m), imm: noImm})
		}
	}
}

// subOf returns the function of a sub-program, which is emitted behind its callers.
func (c *code) subOf(id uint64) *routine {
	if f, ok := c.subs[id]; ok {
		return f
	}
	f := &routine{id: id, entry: c.newLabel()}
	c.subs[id] = f
	lanes := c.lanes
	c.cold = append(c.cold, func() { c.subBody(f, lanes) })
	return f
}

// subBody computes a sub-program for so many lanes, with parameters and results in the frame. If its
// values are wider than the kernel's, it computes a part of the lanes at a time.
func (c *code) subBody(f *routine, lanes int) {
	p := ir.SubByID(f.id)
	save := c.saveState()
	defer c.restoreState(save)
	c.width = 4
	for _, in := range p.Code {
		c.width = max(c.width, sizeOf(in.DT))
	}
	c.lanes = min(c.isa.Bytes/c.width, lanes)
	c.asm.place(f.entry)
	c.note("%s, %d lanes at a time", p.Name, c.lanes)
	for first := 0; first < lanes; first += c.lanes {
		vals := make([]value, len(p.Code))
		for i, in := range p.Code {
			switch in.Op {
			case ir.Param:
				n := c.lanes * sizeOf(in.DT)
				v := c.newValue(info{size: n, home: inFrame, mem: at(rdi, c.frame.param(int(in.Imm))+first*sizeOf(in.DT))})
				vals[i] = c.fromBytes(in.DT, v)
				continue
			case ir.Const:
				vals[i] = c.constantOf(in)
				continue
			case ir.Rare:
				c.fail("a rare path within %s", p.Name)
				return
			}
			var x [4]value
			var dts [4]ir.DType
			n := 0
			for ; n < len(in.Args) && in.Args[n] != ir.None; n++ {
				x[n], dts[n] = vals[in.Args[n]], p.Code[in.Args[n]].DT
			}
			vals[i] = c.spell(in, x[:n], dts[:n])
		}
		out := p.Results[0]
		size := sizeOf(p.Code[out].DT)
		c.write(vals[out], c.lanes*size, at(rdi, c.frame.param(maxParams)+first*size))
		c.emitItems()
	}
	c.jumpTo(at(rdi, frameReturn))
}

// state is the part of a code's state that a sub-program has for itself.
type state struct {
	lanes, width int
	vecs, masks  file
	consts       map[constant]value
}

func (c *code) saveState() state {
	s := state{c.lanes, c.width, c.vecs, c.masks, c.consts}
	c.vecs, c.masks, c.consts = newFile(c.isa.Regs), newFile(8), map[constant]value{}
	c.masks.owner[0], c.masks.owner[7] = -1, -1
	return s
}

func (c *code) restoreState(s state) {
	c.lanes, c.width, c.vecs, c.masks, c.consts = s.lanes, s.width, s.vecs, s.masks, s.consts
}
