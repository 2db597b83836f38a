package kernels

import (
	"math/rand/v2"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// randomDTypes are the result dtypes of random instructions.
var randomDTypes = slices.Concat(DTypes, []ir.DType{ir.Uint32})

// Random is a kernel of about n random instructions on operands of several dtypes, with a few
// outputs, and with about rowOps row ops. Ops that expose the bits of a NaN are left out.
func Random(rng *rand.Rand, n, rowOps int) *codegen.Kernel {
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
	g.k.Operands[1].Row = rowOps > 0 && rng.IntN(2) == 0
	for tries := 0; len(g.b.Code) < n && tries < 100*n; tries++ {
		op := ir.Op(1 + rng.IntN(int(ir.NumOps)-1))
		info := op.Info()
		if info.RowOp && info.Arity == 1 && rowOps > 0 {
			before := len(g.b.Code)
			x := ir.Ref(before - 1 - rng.IntN(min(before, 12)))
			out := g.b.DT(x)
			if info.Position {
				out = []ir.DType{ir.Int32, ir.Int64}[rng.IntN(2)]
			}
			g.try(op, out, x)
			if len(g.b.Code) == before {
				continue
			}
			if info.Class == ir.ClassSort {
				g.b.Code[before].Imm = rng.Uint64() & 1
			}
			rowOps--
			continue
		}
		if info.Class != ir.ClassElementwise && op != ir.FMA && op != ir.FDiv {
			continue
		}
		args := make([]ir.Ref, info.Arity)
		for i := range args {
			args[i] = ir.Ref(len(g.b.Code) - 1 - rng.IntN(min(len(g.b.Code), 20)))
		}
		g.try(op, randomDTypes[rng.IntN(len(randomDTypes))], args...)
	}
	g.k.Body = g.b.Code
	levels, rows := g.k.Levels(), g.k.HasRows()
	outputs := 1 + rng.IntN(3)
	for i := len(g.b.Code) - 1; i >= 0 && outputs > 0; i-- {
		if g.b.DT(ir.Ref(i)).Tensor() {
			g.store(ir.Ref(i))
			g.k.Operands[len(g.k.Operands)-1].Row = rows && levels[i] != codegen.Point && rng.IntN(2) == 0
			outputs--
		}
	}
	return g.k
}

// Totals adds folds of all points to a kernel of rows.
func Totals(rng *rand.Rand, k *codegen.Kernel) {
	for range 1 + rng.IntN(2) {
		v := ir.Ref(len(k.Body) - 1 - rng.IntN(len(k.Body)))
		op := []ir.Op{ir.Sum, ir.Sum, ir.Prod, ir.Max, ir.Min, ir.Any, ir.All}[rng.IntN(7)]
		if dt := k.Body[v].DT; dt.Tensor() && op.Info().In.Has(dt) {
			k.Reduces = append(k.Reduces, codegen.Reduce{Op: op, Value: v, Operand: len(k.Operands)})
			k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Output, DT: dt, Row: true})
		}
	}
}
