package kernels

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Emit appends an instruction to a kernel.
func Emit(k *codegen.Kernel, op ir.Op, dt ir.DType, imm uint64, args ...ir.Ref) ir.Ref {
	in := ir.Instr{Op: op, DT: dt, Imm: imm, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
	copy(in.Args[:], args)
	k.Body = append(k.Body, in)
	return ir.Ref(len(k.Body) - 1)
}

// Input appends an input operand to a kernel, and its load.
func Input(k *codegen.Kernel, dt ir.DType) ir.Ref {
	k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Input, DT: dt})
	return Emit(k, ir.Load, dt, uint64(len(k.Operands)-1))
}

// Output appends an output operand to a kernel, and the store of a value to it.
func Output(k *codegen.Kernel, v ir.Ref) {
	k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Output, DT: k.Body[v].DT})
	k.Stores = append(k.Stores, codegen.Store{Operand: len(k.Operands) - 1, Value: v})
}
