package cpu

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// lanewise returns the operands that are only read behind guards or through indices, whose
// addresses may be outside memory. faults reports that an index out of range is an error.
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

// outOfRange returns the error of a launch that met an index out of range.
func (r *ready) outOfRange(operand int, index int64) error {
	return runtime.OutOfRange(r.index, index, r.l.Args[operand].IndexSize)
}

// faulted returns that error if the executor has recorded a fault.
func (r *ready) faulted() error {
	if r.fault == nil || !r.fault.Set {
		return nil
	}
	return r.outOfRange(int(r.fault.Operand), r.fault.Index)
}
