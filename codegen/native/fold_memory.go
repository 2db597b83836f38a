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
	packed      op  // the instruction that joins vectors of bytes
}

// packedOps join vectors of bytes.
var packedOps = map[ir.Op]op{ir.Add: vpaddb, ir.Maximum: vpmaxub, ir.Minimum: vpminub, ir.Or: vpor, ir.And: vpand}

// JoinsBytes reports an operation that can join vectors of bytes in memory. The kernel of such a
// fold is not lowered.
func (t *ISA) JoinsBytes(o ir.Op) bool { return !t.A64 && packedOps[o] != opNone }

func newMemoryFold(f *Fold, isa *ISA) (*memoryFold, error) {
	x := &memoryFold{code: newCode(isa), f: f, bytes: isa.Bytes}
	x.kernel = kernel{k: f.Join, v: Variant{Class: make([]codegen.AccessClass, 3)}, pointer: []gpr{noReg, noReg, noReg}}
	x.frame = newFrame(2, 0)
	k := f.Join
	if len(k.Operands) != 3 || len(k.Stores) != 1 || len(k.Scalars) > 0 {
		return nil, fmt.Errorf("codegen/native: no join of %d operands", len(k.Operands))
	}
	if in := k.Body[k.Stores[0].Value]; in.DT.Size() == 1 {
		if !isa.JoinsBytes(in.Op) {
			return nil, fmt.Errorf("codegen/native: no join of bytes by %v", in.Op)
		}
		x.size, x.lanes, x.packed = 1, isa.Bytes, packedOps[in.Op]
		return x, nil
	}
	x.levels()
	dt := k.Operands[0].DT
	if dt.Size() != sizeOf(dt) {
		return nil, fmt.Errorf("codegen/native: no join of %v in memory", dt)
	}
	x.size, x.width = dt.Size(), max(x.widest(), sizeOf(dt))
	x.lanes = isa.Bytes / x.width
	x.bytes = x.lanes * x.size
	return x, nil
}

// end returns the function; joins is the number of joins per step.
func (x *memoryFold) end(joins int) (*Func, error) {
	code, err := x.finish()
	if err != nil {
		return nil, err
	}
	if len(x.cold) > 0 {
		return nil, fmt.Errorf("codegen/native: a fold with a rare path")
	}
	work := 1
	if x.packed == opNone {
		work = x.time()
	}
	return &Func{Frame: *x.frame, Code: code, Work: work * joins, Lanes: x.lanes}, nil
}

func (x *memoryFold) join(a, b value) value {
	if x.packed != opNone {
		return x.op3(x.packed, max(x.lanes, 16), a, b)
	}
	return x.apply(x.f.Join, []value{a}, []value{b})[0]
}

// joinSome joins the first lanes of two vectors.
func (x *memoryFold) joinSome(lanes int, a, b value) value {
	all := x.lanes
	x.lanes = lanes
	defer func() { x.lanes = all }()
	return x.join(a, b)
}

// leastLanes is the number of lanes of the smallest vectors that can be joined.
func (x *memoryFold) leastLanes() int {
	if x.packed != opNone {
		return 16
	}
	return x.isa.leastLanes()
}

func (x *memoryFold) image(v value) value {
	if x.f.Image == nil {
		return v
	}
	return x.apply(x.f.Image, []value{v}, nil)[0]
}

func (x *memoryFold) element(v value) value {
	if x.f.Element == nil {
		return v
	}
	return x.apply(x.f.Element, []value{v}, nil)[0]
}

// pinned is a vector that keeps its register.
func (x *memoryFold) pinned() value {
	v := x.newValue(info{size: x.bytes})
	r := x.take(&x.vecs)
	x.vecs.owner[r], x.vals[v].reg, x.vals[v].pinned = v, int16(r), true
	return v
}

// above shifts out the first bytes of a vector; only as many bytes again are valid afterwards.
func (x *memoryFold) above(v value, bytes int) value {
	if bytes < 4 {
		return x.op2i(vpsrld, 16, 16, v, int16(8*bytes))
	}
	return x.upper(v, bytes)
}

// one stores the first lane.
func (x *memoryFold) one(v value, to mem) {
	it := item{o: vmovssTo, size: 16, s: [3]value{v}, mem: to, inMem: true, imm: noImm}
	switch x.size {
	case 1:
		it = item{s: it.s, imm: noImm, emit: func(r *regs) {
			x.vector(vmovdTo, 16, args{reg: r.s[0], rm: ofGPR(rbx), imm: noImm})
			x.storeSize(1, to, rbx)
		}}
	case 8:
		it.o = vmovqTo
	}
	x.store1(it, x.size)
}
