package replay

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// Phase is a call of a phase's code. All operands are addressed by steps, or not at all.
type Phase struct {
	Code   *jit.Code
	MXCSR  uint32
	Kernel *codegen.Kernel // of the phase
	Direct []int32         // the operands that are addressed by steps
	Args   *operands.Args
}

// Phase records a call of a phase with the frame that a walk has written.
func (t *Tape) Phase(p Phase, frame unsafe.Pointer) {
	f := p.Code.Func
	t.Call(p.Code.Entry, p.MXCSR, unsafe.Slice((*uint64)(frame), f.Scalars/8+len(p.Kernel.Scalars)), nil)
	if t.lost {
		return
	}
	t.k.frame = max(t.k.frame, int64(f.Bytes))
	for _, i := range p.Direct {
		t.operand(native.FrameArgs+int(i)*native.OperandBytes+native.Address, &p.Args.Ops[i], int(i))
	}
	for i := range p.Kernel.Reduces {
		t.address(native.FrameArgs+(len(p.Kernel.Operands)+i)*native.OperandBytes+native.Address, operands.NoOperand)
	}
	s := t.last()
	s.phase, s.faults = true, p.Args.Fault != nil
}

// operand records the address of a phase's operand i. The address may point before its buffer if
// the read elements are behind a guard.
func (t *Tape) operand(at int, o *operands.Operand, i int) {
	w := t.word(at)
	b := t.buffer(i)
	switch {
	case o.Base == nil: // a position, which code increments
		t.patch(at/8, baseNone, int64(*w))
	case b != nil && b.P == o.Base:
		t.patch(at/8, baseArgs+i, int64(*w)-int64(uintptr(b.P)))
	default:
		t.address(at, i)
		return
	}
	*w = 0
}
