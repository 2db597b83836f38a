package cpu

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// lanewise marks the operands that are read behind guards or through indices
// only, which may lead to where there is no memory, and tells whether an index
// out of range is a fault.
func lanewise(k *codegen.Kernel) (only []bool, faults bool) {
	only = make([]bool, len(k.Operands))
	plain := make([]bool, len(k.Operands))
	for _, in := range k.Body {
		switch {
		case in.Op == ir.LoadAt:
			only[uint32(in.Imm)] = true
			faults = faults || codegen.ModeOf(in) == ir.IndexError
		case in.Op == ir.Scatter:
			faults = faults || codegen.ModeOf(in) == ir.IndexError
		case in.Op == ir.Load && in.Args[0] != ir.None:
			only[in.Imm] = true
		case in.Op == ir.Load:
			plain[in.Imm] = true
		}
	}
	for i := range only {
		only[i] = only[i] && !plain[i]
	}
	return only, faults
}

// outOfRange is the failure of a launch that met an index out of range.
func (r *ready) outOfRange(operand int, index int64) error {
	return runtime.OutOfRange(r.index, index, r.l.Args[operand].IndexSize)
}

// faulted is the same for the executor.
func (r *ready) faulted() error {
	if r.fault == nil || !r.fault.set {
		return nil
	}
	return r.outOfRange(int(r.fault.operand), r.fault.index)
}
