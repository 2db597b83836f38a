package interp

import (
	"unsafe"

	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// load finds the block of a loaded value: in the operand's memory if it is dense there and fills
// whole groups, else copied into a register.
func (e *evaluation) load(in *instr, step walkStep) {
	o, size := &e.a.Ops[in.slot], int64(in.size)
	src := e.dense(o, step.class, size, 1)
	if src == nil && step.class == walkStrided {
		if p := e.dense(o, step.class, size, 0); p != nil {
			e.uniform(in, operands.Element(p, in.size))
			return
		}
	}
	if src != nil && !step.copy && e.n%GroupLen == 0 {
		e.v[in.dst].p = src
		return
	}
	reg := e.reg(in)
	e.v[in.dst].p = reg
	if src != nil {
		copyBytes(reg, src, e.n*size)
	} else {
		e.a.Move(operands.Gather, o, int(size), &e.at, e.n, reg)
	}
	e.pad(reg, size)
}

// pad clears the lanes from the end of the block to the end of its group.
func (e *evaluation) pad(reg unsafe.Pointer, size int64) {
	clear(unsafe.Slice((*byte)(unsafe.Add(reg, e.n*size)), (int64(e.groups)*GroupLen-e.n)*size))
}

func copyBytes(dst, src unsafe.Pointer, n int64) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}

// position computes the halves of an index operand's positions.
func (e *evaluation) position(in *instr, step walkStep) {
	o, reg, how := &e.a.Ops[in.slot], e.reg(in), operands.PosLo
	if in.fn == fnIndexHi {
		how = operands.PosHi
	}
	if step.class == walkLinear {
		operands.Line(how, o.Offset+e.p, int64(e.groups)*GroupLen, reg)
		return
	}
	e.a.Move(how, o, 4, &e.at, e.n, reg)
	e.pad(reg, 4)
}

// target returns the address for a store's elements if the block is dense there, else nil.
func (e *evaluation) target(s *store) unsafe.Pointer {
	size := int64(e.t.instrs[s.value].size)
	if s.reduce != 0 {
		return unsafe.Add(e.a.Bufs[s.slot], (e.p-e.begin)*size)
	}
	o, class := &e.a.Ops[s.slot], e.class[s.slot]
	if class == walkUniform { // a domain of one point
		class = walkLinear
	}
	return e.dense(o, class, size, 1)
}

func (e *evaluation) store(s *store) {
	size, v, dst := int64(e.t.instrs[s.value].size), e.v[s.value], e.target(s)
	switch {
	case dst == v.p:
	case v.step != 0 && dst != nil:
		copyBytes(dst, v.p, e.n*size)
	case v.step != 0:
		e.a.Move(operands.Scatter, &e.a.Ops[s.slot], int(size), &e.at, e.n, v.p)
	case dst != nil:
		for i := int64(0); i < e.n; i += GroupLen {
			copyBytes(unsafe.Add(dst, i*size), v.p, min(GroupLen, e.n-i)*size)
		}
	default:
		// Scatter group by group: the value has only one group.
		at := e.at
		for i := int64(0); i < e.n; i += GroupLen {
			n := min(GroupLen, e.n-i)
			e.a.Move(operands.Scatter, &e.a.Ops[s.slot], int(size), &e.at, n, v.p)
			e.advance(n)
		}
		e.at = at
	}
}
