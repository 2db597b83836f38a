package native

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// memoryFold is code that is being made, which joins elements in their memory form.
type memoryFold struct {
	*code
	f           *Fold
	size, bytes int // of an element, and of a vector
	packed      Op  // the instruction that joins vectors of bytes
}

// JoinsBytes reports an operation that can join vectors of bytes in memory. The kernel of such a
// fold is not lowered.
func (t *ISA) JoinsBytes(o ir.Op) bool { return t.Bytewise[o] != OpNone }

func newMemoryFold(f *Fold, isa *ISA) (*memoryFold, error) {
	x := &memoryFold{code: newCode(isa), f: f, bytes: isa.Bytes}
	x.setKernel(kernel{k: f.Join, v: Variant{Class: make([]codegen.AccessClass, 3)}, pointer: []GPR{NoReg, NoReg, NoReg}})
	x.frame = newFrame(2, 0)
	k := f.Join
	if len(k.Operands) != 3 || len(k.Stores) != 1 || len(k.Scalars) > 0 {
		return nil, fmt.Errorf("codegen/native: a join needs a kernel of 3 operands and one store without scalars, this one has %d operands", len(k.Operands))
	}
	if in := k.Body[k.Stores[0].Value]; in.DT.Size() == 1 {
		if !isa.JoinsBytes(in.Op) {
			return nil, fmt.Errorf("codegen/native: joins of bytes by %v are not supported", in.Op)
		}
		x.size, x.Lanes, x.packed = 1, isa.Bytes, isa.Bytewise[in.Op]
		return x, nil
	}
	x.levels()
	dt := k.Operands[0].DT
	if dt.Size() != SizeOf(dt) {
		return nil, fmt.Errorf("codegen/native: joins of %v in memory are not supported", dt)
	}
	x.size, x.width = dt.Size(), max(x.widest(), SizeOf(dt))
	x.Lanes = isa.Bytes / x.width
	x.bytes = x.Lanes * x.size
	return x, nil
}

// end returns the function; joins is the number of joins per step.
func (x *memoryFold) end(joins int) (*Func, error) {
	code, err := x.finished(x.m)
	if err != nil {
		return nil, err
	}
	if len(x.Cold) > 0 {
		return nil, fmt.Errorf("codegen/native: a fold cannot have a rare path")
	}
	work := 1
	if x.packed == OpNone {
		work = x.time()
	}
	return &Func{Frame: *x.frame, Code: code, Work: work * joins, Lanes: x.Lanes}, nil
}

func (x *memoryFold) join(a, b Value) Value {
	if x.packed != OpNone {
		return x.Op3(x.packed, max(x.Lanes, 16), a, b)
	}
	return x.apply(x.f.Join, []Value{a}, []Value{b})[0]
}

// joinSome joins the first lanes of two vectors.
func (x *memoryFold) joinSome(lanes int, a, b Value) Value {
	all := x.Lanes
	x.Lanes = lanes
	defer func() { x.Lanes = all }()
	return x.join(a, b)
}

// leastLanes is the number of lanes of the smallest vectors that can be joined.
func (x *memoryFold) leastLanes() int {
	if x.packed != OpNone {
		return 16
	}
	return x.ISA.LeastLanes
}

func (x *memoryFold) image(v Value) Value {
	if x.f.Image == nil {
		return v
	}
	return x.apply(x.f.Image, []Value{v}, nil)[0]
}

func (x *memoryFold) element(v Value) Value {
	if x.f.Element == nil {
		return v
	}
	return x.apply(x.f.Element, []Value{v}, nil)[0]
}

// pinned is a vector that keeps its register.
func (x *memoryFold) pinned() Value {
	v := x.NewValue(Info{Size: x.bytes})
	r := x.Take(&x.Vecs)
	x.Vecs.Owner[r], x.Vals[v].Reg, x.Vals[v].Pinned = v, int16(r), true
	return v
}
