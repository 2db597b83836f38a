package cgo

import (
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

var tensorDTypes = []ir.DType{ir.Bool, ir.Uint8, ir.Int32, ir.Int64, ir.Float32, ir.Float64}

// everyOp is a kernel that applies every op which takes operands of dt, and
// stores all results. Casts go to every dtype.
func everyOp(t *testing.T, dt ir.DType) *codegen.Kernel {
	t.Helper()
	k := &codegen.Kernel{Scalars: []ir.DType{dt}}
	var b ir.Builder
	load := func(d ir.DType) ir.Ref {
		k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Input, DT: d})
		return b.Emit(ir.Load, d, uint64(len(k.Operands)-1))
	}
	x, y, m := load(dt), load(dt), load(ir.Bool)
	z := b.Emit(ir.Scalar, dt, 0)
	k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Index})
	lo, hi := b.Emit(ir.IndexLo, ir.Uint32, 3), b.Emit(ir.IndexHi, ir.Uint32, 3)
	first := len(b.Code)
	seed := ir.None
	for op := ir.Op(1); op < ir.NumOps; op++ {
		info := op.Info()
		for _, out := range tensorDTypes {
			var args []ir.Ref
			switch {
			case info.Class == ir.ClassElementwise:
				args = []ir.Ref{x, y, z}[:info.Arity]
				if op == ir.Where {
					args = []ir.Ref{m, x, z}
				}
			case info.Class == ir.ClassCreate && out == dt:
				if seed == ir.None {
					k.Scalars = append(k.Scalars, ir.Uint64)
					seed = b.Emit(ir.Scalar, ir.Uint64, 1)
				}
				for i := range info.Arity {
					a := z
					if ir.ScalarDType(op, i, ir.Invalid, dt) == ir.Uint64 {
						a = seed
					}
					args = append(args, a)
				}
				if info.Indexed {
					args = append([]ir.Ref{lo, hi}, args...)
				}
			default:
				continue
			}
			in := ir.Instr{Op: op, DT: out, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
			copy(in.Args[:], args)
			var dts []ir.DType
			for _, a := range args {
				dts = append(dts, b.DT(a))
			}
			if ir.CheckInstr(in, dts) == nil {
				b.Code = append(b.Code, in)
			}
		}
	}
	for i := first; i < len(b.Code); i++ {
		if b.Code[i].Op == ir.Scalar {
			continue
		}
		k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Output, DT: b.Code[i].DT})
		k.Stores = append(k.Stores, codegen.Store{Operand: len(k.Operands) - 1, Value: ir.Ref(i)})
	}
	k.Body = b.Code
	low, err := codegen.Lower(k)
	if err != nil {
		t.Fatalf("%v: %v", dt, err)
	}
	return low
}

// classes gives every operand the class c.
func classes(k *codegen.Kernel, c codegen.AccessClass) Variant {
	v := Variant{Class: make([]codegen.AccessClass, len(k.Operands)), Guarded: c == codegen.Strided}
	for i := range v.Class {
		v.Class[i] = c
	}
	return v
}
