package kerneltest

import (
	"math/rand/v2"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Random is a kernel of about n random instructions on operands of several
// dtypes, with a few outputs, and with reductions over its last values where
// reduces is above 0. Ops that show the bits of a NaN are left out.
func Random(rng *rand.Rand, n, reduces int) *codegen.Kernel {
	g := everyOp{k: &codegen.Kernel{}}
	dts := []ir.DType{DTypes[rng.IntN(len(DTypes))], DTypes[1+rng.IntN(len(DTypes)-1)], ir.Float32}
	for _, dt := range dts {
		g.load(dt)
		g.b.Emit(ir.Const, dt, Value(rng, dt))
		g.k.Scalars = append(g.k.Scalars, dt)
		g.b.Emit(ir.Scalar, dt, uint64(len(g.k.Scalars)-1))
	}
	g.k.Operands = append(g.k.Operands, codegen.Operand{Kind: codegen.Index})
	g.b.Emit(ir.IndexLo, ir.Uint32, 3)
	for tries := 0; len(g.b.Code) < n && tries < 100*n; tries++ {
		op := ir.Op(1 + rng.IntN(int(ir.NumOps)-1))
		info := op.Info()
		if info.Class != ir.ClassElementwise && op != ir.FMA && op != ir.FDiv {
			continue
		}
		args := make([]ir.Ref, info.Arity)
		for i := range args {
			args[i] = ir.Ref(len(g.b.Code) - 1 - rng.IntN(min(len(g.b.Code), 20)))
		}
		g.try(op, append(DTypes, ir.Uint32)[rng.IntN(len(DTypes)+1)], args...)
	}
	outputs := 1 + rng.IntN(3)
	for i := len(g.b.Code) - 1; i >= 0 && (outputs > 0 || reduces > 0); i-- {
		dt := g.b.DT(ir.Ref(i))
		switch {
		case !dt.Tensor():
		case reduces > 0 && dt != ir.Bool:
			op := []ir.Op{ir.Sum, ir.Max}[rng.IntN(2)]
			g.k.Operands = append(g.k.Operands, codegen.Operand{Kind: codegen.Output, DT: dt})
			g.k.Reduces = append(g.k.Reduces, codegen.Reduce{Op: op, Value: ir.Ref(i), Operand: len(g.k.Operands) - 1})
			reduces--
		case outputs > 0:
			g.store(ir.Ref(i))
			outputs--
		}
	}
	g.k.Body = g.b.Code
	return g.k
}
