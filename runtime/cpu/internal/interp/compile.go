package interp

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Lower lowers the ops of a kernel that have no block function to the primitives of their
// expansions, and removes duplicate computations. If soft is set, denormals are flushed by software:
// then everything is lowered to primitives.
func Lower(k *codegen.Kernel, soft bool) (*codegen.Kernel, error) {
	return codegen.LowerFor(k, func(in ir.Instr, first ir.DType) bool {
		return (!soft || in.Op == ir.Flush) && blockFn(keyOf(in, first)) != 0
	})
}

// Compile compiles a kernel that Lower returned, or a part of one, to a block program. That takes
// microseconds.
func Compile(k *codegen.Kernel, soft bool) (*Program, error) {
	c := blockCompiler{k: k, value: make([]int32, len(k.Body))}
	for i := range c.value {
		c.value[i] = -1
	}
	c.instrs = make([]instr, 0, len(k.Body)+4)
	c.dts = make([]ir.DType, 0, len(k.Body)+4)
	for i, live := range liveBody(k) {
		// Leaves are emitted at their first use, which keeps the live ranges of loaded blocks
		// short.
		if !live || isLeaf(k.Body[i]) {
			continue
		}
		if err := c.instr(i); err != nil {
			return nil, err
		}
	}
	t := &Program{nops: len(k.Operands), work: c.work, fns: blockFns}
	if soft {
		t.fns = softFns()
	}
	for _, s := range k.Stores {
		t.stores = append(t.stores, store{value: c.use(s.Value), slot: int32(s.Operand)})
	}
	for i, r := range k.Reduces {
		t.stores = append(t.stores, store{value: c.use(r.Value), slot: int32(i), reduce: 1})
	}
	t.instrs = c.instrs
	t.allocate()
	return t, nil
}

// liveBody marks the instructions that a store or a reduction depends on.
func liveBody(k *codegen.Kernel) []bool {
	live := make([]bool, len(k.Body))
	for _, s := range k.Stores {
		live[s.Value] = true
	}
	for _, r := range k.Reduces {
		live[r.Value] = true
	}
	for i := len(k.Body) - 1; i >= 0; i-- {
		if !live[i] {
			continue
		}
		for _, a := range k.Body[i].Args {
			if a != ir.None {
				live[a] = true
			}
		}
	}
	return live
}

// isLeaf reports values without arguments.
func isLeaf(in ir.Instr) bool {
	switch in.Op {
	case ir.Const, ir.Scalar, ir.IndexLo, ir.IndexHi:
		return true
	}
	return in.Op == ir.Load && in.Args[0] == ir.None
}

type blockCompiler struct {
	k      *codegen.Kernel
	instrs []instr
	dts    []ir.DType // of instrs
	work   int
	value  []int32 // of an instruction of the body, -1 if not emitted yet
}

func (c *blockCompiler) add(in instr, dt ir.DType) int32 {
	in.dst = int32(len(c.instrs))
	in.size = int32(dt.Size())
	c.instrs = append(c.instrs, in)
	c.dts = append(c.dts, dt)
	return in.dst
}

// use returns the value of an instruction of the body. It emits a leaf at its first use.
func (c *blockCompiler) use(r ir.Ref) int32 {
	if c.value[r] < 0 {
		c.value[r] = c.leaf(c.k.Body[r])
	}
	return c.value[r]
}

var leafFns = map[ir.Op]int32{ir.Const: fnConst, ir.Scalar: fnScalar, ir.Load: fnLoad, ir.IndexLo: fnIndexLo, ir.IndexHi: fnIndexHi}

// leaf emits a leaf, or returns an equal one that was emitted before.
func (c *blockCompiler) leaf(in ir.Instr) int32 {
	n := instr{fn: leafFns[in.Op], src: [4]int32{-1, -1, -1, -1}}
	if in.Op == ir.Const {
		n.imm = in.Imm
	} else {
		n.slot = int32(in.Imm)
	}
	for i := range c.instrs {
		o := &c.instrs[i]
		if o.fn == n.fn && o.slot == n.slot && o.imm == n.imm && o.size == int32(in.DT.Size()) && c.dts[i] == in.DT {
			return int32(i)
		}
	}
	return c.add(n, in.DT)
}

func (c *blockCompiler) instr(i int) error {
	in := c.k.Body[i]
	var args [4]int32
	n := 0
	for ; n < len(in.Args) && in.Args[n] != ir.None; n++ {
		args[n] = c.use(in.Args[n])
	}
	first := ir.Invalid
	if n > 0 {
		first = c.dts[args[0]]
	}
	if in.Op == ir.Load || in.Op == ir.LoadAt {
		v := instr{fn: fnLoadIf, src: [4]int32{-1, -1, -1, -1}, slot: int32(uint32(in.Imm))}
		if in.Op == ir.LoadAt {
			v.fn, v.imm = fnLoadAt, uint64(codegen.ModeOf(in))|uint64(first.Size())<<8
		}
		copy(v.src[:], args[:n])
		c.value[i] = c.add(v, in.DT)
		c.work += 8
		return nil
	}
	fn := blockFn(keyOf(in, first))
	if fn == 0 {
		return fmt.Errorf("tier 0 has no block function for %v of %v to %v", in.Op, first, in.DT)
	}
	v := instr{fn: fn, src: [4]int32{-1, -1, -1, -1}}
	copy(v.src[:], args[:n])
	c.value[i] = c.add(v, in.DT)
	c.work += int(blocks[fn-fnFirst].work)
	return nil
}

// allocate assigns a block of scratch memory to every value that may differ from point to point,
// by linear scan. A block is free after the last reader of its value, and that reader may
// overwrite it.
func (t *Program) allocate() {
	n := int32(len(t.instrs))
	for i := range t.instrs {
		for _, s := range t.instrs[i].src {
			if s >= 0 {
				t.instrs[s].last = int32(i)
			}
		}
	}
	for _, s := range t.stores {
		t.instrs[s.value].last = n
	}
	var free [9][]int32 // by element size
	for i := range t.instrs {
		in := &t.instrs[i]
		for k, s := range in.src {
			if s < 0 || t.instrs[s].last != int32(i) || t.instrs[s].reg < 0 || repeated(in.src[:k], s) {
				continue
			}
			free[t.instrs[s].size] = append(free[t.instrs[s].size], t.instrs[s].reg)
		}
		if t.uniform(in) {
			in.reg = -1
			continue
		}
		if f := free[in.size]; len(f) > 0 {
			in.reg, free[in.size] = f[len(f)-1], f[:len(f)-1]
			continue
		}
		in.reg = int32(t.regBytes)
		t.regBytes += int(in.size)
	}
	t.block = blockLen(t.regBytes)
}

func repeated(before []int32, s int32) bool {
	for _, b := range before {
		if b == s {
			return true
		}
	}
	return false
}

// uniform reports a value that is the same at every point in every launch.
func (t *Program) uniform(in *instr) bool {
	switch in.fn {
	case fnConst, fnScalar:
		return true
	case fnLoad, fnIndexLo, fnIndexHi, fnLoadIf, fnLoadAt:
		return false
	}
	for _, s := range in.src {
		if s >= 0 && t.instrs[s].reg >= 0 {
			return false
		}
	}
	return true
}
