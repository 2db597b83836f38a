package kernels

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// DTypes are those of tensors.
var DTypes = func() (ds []ir.DType) {
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		if dt.Tensor() {
			ds = append(ds, dt)
		}
	}
	return ds
}()

// StorageOps are ops that show whether a printer handles a storage dtype, for tests without time
// for all ops: those have one definition for all printers.
func StorageOps(op ir.Op, _ ir.DType) bool {
	switch op {
	case ir.Add, ir.Mul, ir.Neg, ir.Abs, ir.Where, ir.Lt, ir.Eq, ir.Cast, ir.Maximum, ir.Div, ir.Shr, ir.Not, ir.Iota, ir.Full, ir.Uniform, ir.Sqrt:
		return true
	}
	return false
}

// EveryOp is a kernel that applies each op of the table which takes operands of dt to two inputs
// and a scalar, and stores all results. Where takes its mask from a third input; casts go to every
// dtype; creation ops use an index operand. want, if not nil, selects the ops.
func EveryOp(dt ir.DType, want func(op ir.Op, out ir.DType) bool) *codegen.Kernel {
	g := everyOp{k: &codegen.Kernel{Scalars: []ir.DType{dt, ir.Uint64}}}
	x, y, m := g.load(dt), g.load(dt), g.load(ir.Bool)
	g.k.Operands = append(g.k.Operands, codegen.Operand{Kind: codegen.Index})
	lo, hi := g.b.Emit(ir.IndexLo, ir.Uint32, 3), g.b.Emit(ir.IndexHi, ir.Uint32, 3)
	z, seed := g.b.Emit(ir.Scalar, dt, 0), g.b.Emit(ir.Scalar, ir.Uint64, 1)
	first := len(g.b.Code)
	for op := ir.Op(1); op < ir.NumOps; op++ {
		info := op.Info()
		for _, out := range DTypes {
			if want != nil && !want(op, out) {
				continue
			}
			switch {
			case op == ir.Where:
				g.try(op, out, m, x, z)
			case info.Class == ir.ClassElementwise:
				g.try(op, out, []ir.Ref{x, y, z}[:info.Arity]...)
			case info.Class == ir.ClassCreate && out == dt:
				g.create(op, out, lo, hi, z, seed)
			}
		}
	}
	for i := first; i < len(g.b.Code); i++ {
		g.store(ir.Ref(i))
	}
	g.k.Body = g.b.Code
	return g.k
}

type everyOp struct {
	k *codegen.Kernel
	b ir.Builder
}

func (g *everyOp) load(dt ir.DType) ir.Ref {
	g.k.Operands = append(g.k.Operands, codegen.Operand{Kind: codegen.Input, DT: dt})
	return g.b.Emit(ir.Load, dt, uint64(len(g.k.Operands)-1))
}

func (g *everyOp) store(v ir.Ref) {
	g.k.Operands = append(g.k.Operands, codegen.Operand{Kind: codegen.Output, DT: g.b.DT(v)})
	g.k.Stores = append(g.k.Stores, codegen.Store{Operand: len(g.k.Operands) - 1, Value: v})
}

// try emits an op if it takes such operands.
func (g *everyOp) try(op ir.Op, out ir.DType, args ...ir.Ref) {
	in := ir.Instr{Op: op, DT: out, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
	copy(in.Args[:], args)
	var dts []ir.DType
	for _, a := range args {
		dts = append(dts, g.b.DT(a))
	}
	if ir.CheckInstr(in, dts) == nil {
		g.b.Code = append(g.b.Code, in)
	}
}

func (g *everyOp) create(op ir.Op, dt ir.DType, lo, hi, z, seed ir.Ref) {
	info := op.Info()
	var args []ir.Ref
	if info.Indexed {
		args = append(args, lo, hi)
	}
	for i := range info.Arity {
		a := z
		if ir.ScalarDType(op, i, ir.Invalid, dt) == ir.Uint64 {
			a = seed
		}
		args = append(args, a)
	}
	g.try(op, dt, args...)
}
