package kernels

import (
	"math/rand/v2"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// RandomLoads is a kernel of about n random instructions on values of loads of every kind: plain,
// guarded by a mask, through indices of both widths and in every given mode, and through indices
// with a guard. Indices can be out of range if modes holds IndexError only.
func RandomLoads(rng *rand.Rand, n int, modes ...ir.IndexMode) *codegen.Kernel {
	g := everyOp{k: &codegen.Kernel{}}
	mask := g.load(ir.Bool)
	masks, indices := []ir.Ref{mask}, []ir.Ref{}
	for _, dt := range []ir.DType{ir.Int32, ir.Int64} {
		x := g.load(dt)
		small := g.b.Emit(ir.And, dt, 0, x, g.b.Emit(ir.Const, dt, 7))
		g.k.Scalars = append(g.k.Scalars, dt)
		indices = append(indices, x, small, g.b.Emit(ir.Scalar, dt, uint64(len(g.k.Scalars)-1)), g.b.Emit(ir.Const, dt, uint64(rng.IntN(4))))
	}
	pick := func(list []ir.Ref) ir.Ref { return list[rng.IntN(len(list))] }
	for range 2 + rng.IntN(4) {
		dt := DTypes[rng.IntN(len(DTypes))]
		g.k.Operands = append(g.k.Operands, codegen.Operand{Kind: codegen.Input, DT: dt})
		slot, guard := len(g.k.Operands)-1, ir.None
		if rng.IntN(2) == 0 {
			guard = pick(masks)
		}
		if len(modes) == 0 || rng.IntN(3) == 0 {
			g.b.Emit(ir.Load, dt, uint64(slot), guard)
			continue
		}
		g.b.Emit(ir.LoadAt, dt, codegen.LoadAtImm(slot, modes[rng.IntN(len(modes))]), pick(indices), guard)
	}
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
		g.try(op, randomDTypes[rng.IntN(len(randomDTypes))], args...)
		if v := ir.Ref(len(g.b.Code) - 1); g.b.DT(v) == ir.Bool {
			masks = append(masks, v)
		} else if dt := g.b.DT(v); dt == ir.Int32 || dt == ir.Int64 {
			indices = append(indices, v)
		}
		if rng.IntN(8) == 0 && len(g.k.Operands) < 20 { // loads that depend on computed values
			dt := DTypes[rng.IntN(len(DTypes))]
			g.k.Operands = append(g.k.Operands, codegen.Operand{Kind: codegen.Input, DT: dt})
			if slot := len(g.k.Operands) - 1; len(modes) > 0 && rng.IntN(2) == 0 {
				g.b.Emit(ir.LoadAt, dt, codegen.LoadAtImm(slot, modes[rng.IntN(len(modes))]), pick(indices), pick(masks))
			} else {
				g.b.Emit(ir.Load, dt, uint64(slot), pick(masks))
			}
		}
	}
	g.k.Body = g.b.Code
	for i, outputs := len(g.b.Code)-1, 1+rng.IntN(4); i >= 0 && outputs > 0; i-- {
		if g.b.DT(ir.Ref(i)).Tensor() {
			g.store(ir.Ref(i))
			outputs--
		}
	}
	return g.k
}

// RandomWide is a kernel that keeps n values of every width and masks alive at once: they are made
// one after another, and read again in another order.
func RandomWide(rng *rand.Rand, n int) *codegen.Kernel {
	g := everyOp{k: &codegen.Kernel{}}
	var loads [ir.NumDTypes][]ir.Ref
	for _, dt := range DTypes {
		loads[dt] = append(loads[dt], g.load(dt), g.load(dt))
	}
	var all [ir.NumDTypes][]ir.Ref
	binary := []ir.Op{ir.Add, ir.Mul, ir.Sub, ir.Maximum, ir.And, ir.Or, ir.Xor, ir.Lt, ir.Ne}
	for tries := 0; len(g.b.Code) < n+2*len(DTypes) && tries < 100*n; tries++ {
		dt := DTypes[rng.IntN(len(DTypes))]
		from := append(loads[dt][:2:2], all[dt]...)
		x, y := from[rng.IntN(len(from))], from[rng.IntN(len(from))]
		op, out := binary[rng.IntN(len(binary))], dt
		if op == ir.Lt || op == ir.Ne {
			out = ir.Bool
		}
		before := len(g.b.Code)
		switch rng.IntN(4) {
		case 0:
			g.try(ir.Cast, DTypes[rng.IntN(len(DTypes))], x)
		case 1:
			if m := all[ir.Bool]; len(m) > 0 {
				g.try(ir.Where, dt, m[rng.IntN(len(m))], x, y)
			}
		default:
			g.try(op, out, x, y)
		}
		if len(g.b.Code) > before {
			v := ir.Ref(before)
			all[g.b.DT(v)] = append(all[g.b.DT(v)], v)
		}
	}
	// All are read once more, after the last: those of each dtype are combined into one.
	for _, dt := range DTypes {
		list := all[dt]
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		total := loads[dt][0]
		for _, v := range list {
			op := ir.Add
			if dt == ir.Bool {
				op = ir.Xor
			}
			before := len(g.b.Code)
			if g.try(op, dt, total, v); len(g.b.Code) > before {
				total = ir.Ref(before)
			}
		}
		g.k.Body = g.b.Code
		g.store(total)
	}
	g.k.Body = g.b.Code
	return g.k
}
