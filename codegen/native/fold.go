package native

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// foldVectors is the number of vectors of a fold's lanes that are processed together. There are
// enough of them that the sums of one do not wait for each other, and few enough to leave registers
// for the operation's own values.
const foldVectors = 4

// CompileFold makes code that folds groups of ir.FoldLanes elements into as many lanes. k is
// lowered. It joins an element, operand 1, to a lane, operand 0; its result is operand 2. All have
// the same dtype, which must be as wide in memory as in registers.
//
// image and element may be nil. image converts an element to the form that k joins, and element
// converts it back: comparing floats is faster as integers. Both have two operands and are applied
// to operand 0.
//
// In the frame operand 0 has the address of the lanes. Operand 1 has the address of the first group
// and, in RowStep, the bytes to the next; rows are groups.
func CompileFold(k, image, element *codegen.Kernel, isa *ISA) (*Func, error) {
	if len(k.Operands) != 3 || len(k.Stores) != 1 || len(k.Scalars) > 0 {
		return nil, fmt.Errorf("codegen/native: a fold needs a kernel of 3 operands and one store without scalars, this one has %d operands", len(k.Operands))
	}
	c := newCode(isa)
	defer c.recycle()
	c.setKernel(kernel{k: k, v: Variant{Class: make([]codegen.AccessClass, 3)}})
	c.levels()
	dt := k.Operands[0].DT
	c.width = max(c.widest(), SizeOf(dt))
	c.Lanes = isa.Bytes / c.width
	if dt.Size() != SizeOf(dt) {
		return nil, fmt.Errorf("codegen/native: folds of %v are not supported", dt)
	}
	c.frame = newFrame(3, 0)
	c.pointer = []GPR{R8, R9, NoReg}
	c.Clear(RCX)
	c.Load(r10, operandWord(1, RowStep))
	vectors := ir.FoldLanes / c.Lanes
	for first := 0; first < vectors; first += foldVectors {
		c.foldSome(&folding{k, image, element}, dt, first, min(foldVectors, vectors-first))
	}
	c.Ret()
	code, err := c.finished(c.m)
	if err != nil {
		return nil, err
	}
	if len(c.Cold) > 0 {
		return nil, fmt.Errorf("codegen/native: a fold cannot have a rare path")
	}
	return &Func{Frame: *c.frame, Code: code, Work: c.time(), Lanes: c.Lanes}, nil
}

// folding holds the kernels of a fold. join takes two elements, image and element take one.
type folding struct{ join, image, element *codegen.Kernel }

// foldSome folds n vectors of lanes, from vector first on, which stay in registers.
func (c *code) foldSome(f *folding, dt ir.DType, first, n int) {
	size := c.Bytes(dt)
	c.Load(R8, operandWord(0, Address))
	c.Load(R9, operandWord(1, Address))
	c.OpImm(Add, OfGPR(R8), first*size)
	c.OpImm(Add, OfGPR(R9), first*size)
	c.Load(RDX, At(RDI, FrameRows))
	lanes := make([]Value, n)
	for u := range lanes {
		r := c.Take(&c.Vecs)
		lanes[u] = c.NewValue(Info{Size: size})
		x := &c.Vals[lanes[u]]
		c.Vecs.Owner[r], x.Reg, x.Pinned = lanes[u], int16(r), true
		c.LoadVec(r, size, At(R8, u*size))
	}
	c.map1(f.image, lanes)
	top := c.NewLabel()
	c.align()
	c.Place(top)
	c.foldItems(f, lanes)
	c.emitItems()
	c.Op(Add, R9, OfGPR(r10))
	c.OpImm(Sub, OfGPR(RDX), 1)
	c.JumpIf(NotEqual, top)
	c.map1(f.element, lanes)
	for u, v := range lanes {
		c.StoreVec(At(R8, u*size), size, uint8(c.Vals[v].Reg))
	}
	c.unpin()
}

// foldItems appends the items that join a group to the lanes.
func (c *code) foldItems(f *folding, lanes []Value) {
	from := make([]Value, len(lanes))
	for u := range lanes {
		from[u] = c.operandValue(1, c.k.Operands[1].DT, 0, u)
	}
	if f.image != nil {
		from = c.apply(f.image, from, nil)
	}
	c.replace(lanes, c.apply(f.join, lanes, from))
}

// map1 applies a kernel with one operand to the lanes, in place.
func (c *code) map1(k *codegen.Kernel, lanes []Value) {
	if k != nil {
		c.replace(lanes, c.apply(k, lanes, nil))
		c.emitItems()
	}
}

// replace copies other values into the registers of lanes.
func (c *code) replace(lanes, by []Value) {
	for u, lane := range lanes {
		if by[u] == lane {
			continue
		}
		c.Item(Item{S: [3]Value{lane, by[u]}, Imm: NoImm, Emit: func(r *Regs) {
			c.CopyVec(r.S[0], r.S[1], c.Vals[lane].Size)
		}})
	}
}

// joinClasses are the classes of a join's operands.
var joinClasses [3]codegen.AccessClass

// apply appends the items of a kernel whose operands are the vectors x and y, and returns its
// results.
func (c *code) apply(k *codegen.Kernel, x, y []Value) []Value {
	own := c.kernel
	defer func() { c.setKernel(own) }()
	c.setKernel(kernel{k: k, v: own.v, pointer: own.pointer})
	c.v.Class = joinClasses[:len(k.Operands)]
	c.levels()
	p := &part{}
	for range x {
		p.at = append(p.at, make([]Value, len(k.Body)))
	}
	for i, in := range k.Body {
		if !c.need[i] || in.Op == ir.Const {
			continue
		}
		for u := range x {
			switch {
			case in.Op == ir.Load && in.Imm == 0:
				p.at[u][i] = x[u]
			case in.Op == ir.Load:
				p.at[u][i] = y[u]
			default:
				p.at[u][i] = c.instr(p, in, u)
			}
		}
	}
	results := make([]Value, len(x))
	for u := range x {
		results[u] = c.valueOf(p, k.Stores[0].Value, u)
	}
	return results
}
