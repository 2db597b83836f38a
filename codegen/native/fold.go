package native

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// foldVectors are the lanes of a fold that are worked on together, in vectors: enough for
// the sums of one not to wait for each other, few enough for the operation's own values.
const foldVectors = 4

// CompileFold makes code that folds groups of ir.FoldLanes elements into as many lanes. k
// is lowered and says how an element, operand 1, joins a lane, operand 0; its result is
// operand 2 and of the same dtype, which is as wide in memory as in registers.
//
// In the frame operand 0 has the lanes' address, operand 1 that of the first group and, in
// RowStep, the bytes to the next; rows are groups.
func CompileFold(k *codegen.Kernel, isa *ISA) (*Func, error) {
	if len(k.Operands) != 3 || len(k.Stores) != 1 || len(k.Scalars) > 0 {
		return nil, fmt.Errorf("codegen/native: no fold of %d operands", len(k.Operands))
	}
	c := newCode(isa)
	c.kernel = kernel{k: k, v: Variant{Class: make([]codegen.AccessClass, 3)}}
	c.levels()
	dt := k.Operands[0].DT
	c.width = max(c.widest(), sizeOf(dt))
	c.lanes = isa.Bytes / c.width
	if dt.Size() != sizeOf(dt) {
		return nil, fmt.Errorf("codegen/native: no fold of %v", dt)
	}
	c.frame = newFrame(3, 0)
	c.pointer = []gpr{r8, r9, noReg}
	c.clear(rcx)
	c.load(r10, operandWord(1, RowStep))
	vectors := ir.FoldLanes / c.lanes
	for first := 0; first < vectors; first += foldVectors {
		c.foldSome(dt, first, min(foldVectors, vectors-first))
	}
	c.ret()
	code, err := c.finish()
	if err != nil {
		return nil, err
	}
	if len(c.cold) > 0 {
		return nil, fmt.Errorf("codegen/native: a fold with a rare path")
	}
	return &Func{Frame: *c.frame, Code: code, Work: c.work(), Lanes: c.lanes, Slow: c.slow}, nil
}

// foldSome folds n vectors of lanes from number first on, which stay in registers.
func (c *code) foldSome(dt ir.DType, first, n int) {
	size := c.bytes(dt)
	c.load(r8, operandWord(0, Address))
	c.load(r9, operandWord(1, Address))
	c.opImm(add, ofGPR(r8), first*size)
	c.opImm(add, ofGPR(r9), first*size)
	c.load(rdx, at(rdi, FrameRows))
	lanes := make([]value, n)
	for u := range lanes {
		r := c.take(&c.vecs)
		lanes[u] = c.newValue(info{size: size})
		x := &c.vals[lanes[u]]
		c.vecs.owner[r], x.reg, x.pinned = lanes[u], int16(r), true
		c.vector(vmovups, size, args{reg: r, rm: inMem(at(r8, u*size)), imm: noImm})
	}
	top := c.newLabel()
	c.align()
	c.asm.place(top)
	c.foldItems(lanes)
	c.emitItems()
	c.op(add, r9, ofGPR(r10))
	c.opImm(sub, ofGPR(rdx), 1)
	c.jumpIf(notEqual, top)
	for u, v := range lanes {
		c.vector(vmovupsTo, size, args{reg: uint8(c.vals[v].reg), rm: inMem(at(r8, u*size)), imm: noImm})
	}
	c.unpin()
}

// foldItems appends what a group does to the lanes.
func (c *code) foldItems(lanes []value) {
	p := &part{}
	for range lanes {
		p.at = append(p.at, make([]value, len(c.k.Body)))
	}
	for i, in := range c.k.Body {
		if !c.need[i] || in.Op == ir.Const {
			continue
		}
		for u := range lanes {
			if in.Op == ir.Load && in.Imm == 0 {
				p.at[u][i] = lanes[u]
			} else {
				p.at[u][i] = c.instr(p, in, u)
			}
		}
	}
	for u, lane := range lanes {
		result := c.valueOf(p, c.k.Stores[0].Value, u)
		if result == lane {
			continue
		}
		c.item(item{s: [3]value{lane, result}, imm: noImm, emit: func(r *regs) {
			c.vector(vmovaps, c.vals[lane].size, args{reg: r.s[0], rm: inReg(r.s[1]), imm: noImm})
		}})
	}
}
