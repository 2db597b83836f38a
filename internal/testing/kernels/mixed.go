package kernels

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// MixedKernel has every kind of leaf, several dtypes and a shared value.
func MixedKernel() *codegen.Kernel {
	k := &codegen.Kernel{Scalars: []ir.DType{ir.Float32, ir.Int32}}
	x, y, m, i := Input(k, ir.Float32), Input(k, ir.Float32), Input(k, ir.Bool), Input(k, ir.Int32)
	d := Input(k, ir.Float64)
	k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Index})
	slot := uint64(len(k.Operands) - 1)
	lo, hi := Emit(k, ir.IndexLo, ir.Uint32, slot), Emit(k, ir.IndexHi, ir.Uint32, slot)
	s, n := Emit(k, ir.Scalar, ir.Float32, 0), Emit(k, ir.Scalar, ir.Int32, 1)
	one := Emit(k, ir.Const, ir.Float32, 0x3f800000)
	pos := Emit(k, ir.Iota, ir.Float32, 0, lo, hi, s, one)
	sum := Emit(k, ir.Add, ir.Float32, 0, Emit(k, ir.Mul, ir.Float32, 0, x, s), y)
	e := Emit(k, ir.Exp, ir.Float32, 0, sum)
	w := Emit(k, ir.Where, ir.Float32, 0, m, e, pos)
	Output(k, w)
	Output(k, Emit(k, ir.Div, ir.Int32, 0, i, n))
	Output(k, Emit(k, ir.Lt, ir.Bool, 0, x, y))
	Output(k, Emit(k, ir.Add, ir.Float64, 0, Emit(k, ir.Cast, ir.Float64, 0, w), d))
	Output(k, x)                                   // a load stored unchanged
	Output(k, Emit(k, ir.Sqrt, ir.Float32, 0, s))  // the same at every point
	Output(k, sum)                                 // read again later
	Output(k, Emit(k, ir.Sin, ir.Float32, 0, sum)) // has a slow path
	Output(k, Emit(k, ir.Cast, ir.Uint8, 0, e))    // narrow
	Output(k, Emit(k, ir.Uniform, ir.Float32, 0, lo, hi, Emit(k, ir.Const, ir.Uint64, 42)))
	return k
}
