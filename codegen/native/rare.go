package native

import "github.com/millrace-go/millrace/ir"

// slowCall is the time to call a sub-program, in instructions.
const slowCall = 200

// rare is the slow path for a few lanes. The code tests for each vector whether any lane needs it.
// The slow path is not inline: it saves all registers in use, a function computes the sub-program's
// results for all lanes, and the results of the lanes that need them replace the fast ones.
func (c *code) rare(in ir.Instr, x []Value, dts []ir.DType) Value {
	p := ir.SubByID(in.Imm)
	if p == nil {
		c.Fail("sub-program %d does not exist", in.Imm)
		return x[1]
	}
	if len(p.Params) > maxParams || len(x) > 4 {
		c.Fail("sub-program %s has too many parameters: %d", p.Name, len(p.Params))
		return x[1]
	}
	c.slow += slowCall + 2*len(p.Code)*c.Lanes*8/c.ISA.Bytes
	n := c.Bytes(in.DT)
	isMask := in.DT == ir.Bool
	params := make([]Value, 0, 2)
	for i, v := range x[2:] {
		if dts[2+i] == ir.Bool {
			v = c.toBytes(ir.Bool, v)
		}
		params = append(params, v)
	}
	out := Info{Size: n, Mask: isMask && c.ISA.Masks}
	if isMask {
		c.Fail("sub-program %s cannot compute masks", p.Name)
		return x[1]
	}
	it := Item{D: c.NewValue(out), Imm: NoImm, AtFirst: true}
	it.S[0] = x[1]
	copy(it.S[1:], params)
	it.K = x[0]
	if !c.ISA.Masks {
		it.K = c.LanesAs(x[0], n)
	}
	f := c.subOf(in.Imm)
	lanes := c.Lanes
	it.Emit = func(r *Regs) {
		slow, back := c.NewLabel(), c.NewLabel()
		c.JumpIfSet(r.K, n, n/lanes, slow)
		c.CopyVec(r.D, r.S[0], n)
		c.Place(back)
		vecs, masks := used(c.Vecs), used(c.Masks)
		for i := range r.S {
			if it.S[i] > 0 {
				vecs[r.S[i]] = true
			}
		}
		if c.ISA.Masks {
			masks[r.K], masks[tailMaskReg] = true, true
		} else {
			vecs[r.K] = true
		}
		sizes := [3]int{}
		for i := range params {
			sizes[i] = c.Vals[params[i]].Size
		}
		c.Cold = append(c.Cold, func() {
			c.Place(slow)
			c.note("rarely: %s", p.Name)
			c.saveAll(vecs, masks, true)
			for i := range params {
				c.saveVector(r.S[1+i], sizes[i], c.frame.param(i))
			}
			ret := c.NewLabel()
			c.LeaLabel(RAX, ret)
			c.Store(At(RDI, frameReturn), RAX)
			c.Jump(f.entry)
			c.Place(ret)
			c.saveAll(vecs, masks, false)
			c.Merge(r.D, r.K, r.S[0], n, n/lanes, At(RDI, c.frame.param(maxParams)))
			c.Jump(back)
		})
	}
	return c.Item(it)
}

// used reports the registers of a file that hold a value.
func used(f file) []bool {
	u := make([]bool, len(f.Owner))
	for r, v := range f.Owner {
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
		if at := c.frame.register(r, c.ISA); out {
			c.saveVector(uint8(r), c.ISA.Bytes, at)
		} else {
			c.loadVector(uint8(r), c.ISA.Bytes, at)
		}
	}
	for r, is := range masks {
		if !is || r == 0 {
			continue
		}
		if m := At(RDI, c.frame.register(c.ISA.Regs, c.ISA)+8*r); out {
			c.StoreMask(m, uint8(r))
		} else {
			c.LoadMask(uint8(r), m)
		}
	}
}

// subOf returns the function of a sub-program, which is emitted behind its callers.
func (c *code) subOf(id uint64) *routine {
	if f, ok := c.subs[id]; ok {
		return f
	}
	f := &routine{id: id, entry: c.NewLabel()}
	c.subs[id] = f
	lanes := c.Lanes
	c.Cold = append(c.Cold, func() { c.subBody(f, lanes) })
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
		c.width = max(c.width, SizeOf(in.DT))
	}
	c.Lanes = min(c.ISA.Bytes/c.width, lanes)
	c.Place(f.entry)
	c.note("%s, %d lanes at a time", p.Name, c.Lanes)
	for first := 0; first < lanes; first += c.Lanes {
		vals := make([]Value, len(p.Code))
		for i, in := range p.Code {
			switch in.Op {
			case ir.Param:
				n := c.Lanes * SizeOf(in.DT)
				v := c.NewValue(Info{Size: n, Home: InFrame, Mem: At(RDI, c.frame.param(int(in.Imm))+first*SizeOf(in.DT))})
				vals[i] = c.fromBytes(in.DT, v)
				continue
			case ir.Const:
				vals[i] = c.literal(in)
				continue
			case ir.Rare:
				c.Fail("sub-program %s contains a rare path", p.Name)
				return
			}
			x := &c.args
			n := 0
			for ; n < len(in.Args) && in.Args[n] != ir.None; n++ {
				x.x[n], x.dts[n] = vals[in.Args[n]], p.Code[in.Args[n]].DT
			}
			vals[i] = c.spell(in, x.x[:n], x.dts[:n])
		}
		out := p.Results[0]
		size := SizeOf(p.Code[out].DT)
		c.write(vals[out], c.Lanes*size, At(RDI, c.frame.param(maxParams)+first*size))
		c.emitItems()
	}
	c.JumpTo(At(RDI, frameReturn))
}

// state is the part of a code's state that a sub-program has for itself.
type state struct {
	lanes, width int
	vecs, masks  file
	consts       map[Constant]Value
}

func (c *code) saveState() state {
	s := state{c.Lanes, c.width, c.Vecs, c.Masks, c.consts}
	c.Vecs, c.Masks, c.consts = newFile(c.ISA.Regs), newMasks(), map[Constant]Value{}
	return s
}

func (c *code) restoreState(s state) {
	c.Lanes, c.width, c.Vecs, c.Masks, c.consts = s.lanes, s.width, s.vecs, s.masks, s.consts
}
