package interp

import (
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// softFns are blockFns for kernels that flush denormals in software. Such kernels are lowered to
// primitives; primitives on floats use ir's arithmetic.
var softFns = sync.OnceValue(func() []blockFunc {
	fns := append([]blockFunc(nil), blockFns...)
	for i := range blocks {
		for _, r := range blocks[i].does {
			if op, ok := ir.ParseOp(r.op); ok {
				if f := softFn(op, r.dt, r.in, r.imm()); f != nil {
					fns[i] = f
				}
			}
		}
	}
	return fns
})

var softFloat32 = map[ir.Op]blockFunc{
	ir.Add: soft2(ir.FlushAdd32), ir.Sub: soft2(ir.FlushSub32), ir.Mul: soft2(ir.FlushMul32), ir.FDiv: soft2(ir.FlushDiv32),
	ir.FMA: soft3(ir.FlushFMA32),
}

var softFloat64 = map[ir.Op]blockFunc{
	ir.Add: soft2(ir.FlushAdd64), ir.Sub: soft2(ir.FlushSub64), ir.Mul: soft2(ir.FlushMul64), ir.FDiv: soft2(ir.FlushDiv64),
	ir.FMA: soft3(ir.FlushFMA64),
}

// softFn returns the function of a primitive that treats denormals specially, nil for others.
func softFn(op ir.Op, dt, in ir.DType, imm uint64) blockFunc {
	float := func(d ir.DType) bool { return d == ir.Float32 || d == ir.Float64 }
	switch {
	case op == ir.Rare:
		sub := ir.SubByID(imm)
		return softPrim(ir.Instr{Op: op, DT: dt, Imm: imm}, append([]ir.DType{ir.Bool, dt}, sub.Params...))
	case op == ir.Convert && float(in):
		return softPrim(ir.Instr{Op: op, DT: dt}, []ir.DType{in})
	case !op.Info().Prim || op == ir.Const || op == ir.Where || op == ir.Lookup || op == ir.Bitcast || op == ir.Convert || op == ir.Neg || op == ir.Abs:
		return nil
	case float(in): // comparisons
		return softPrim(ir.Instr{Op: op, DT: dt}, []ir.DType{in, in})
	case dt == ir.Float32 && softFloat32[op] != nil:
		return softFloat32[op]
	case dt == ir.Float64 && softFloat64[op] != nil:
		return softFloat64[op]
	case float(dt):
		args := make([]ir.DType, op.Info().Arity)
		for i := range args {
			args[i] = dt
		}
		return softPrim(ir.Instr{Op: op, DT: dt}, args)
	}
	return nil
}

func soft2[T float32 | float64](f func(x, y T) T) blockFunc {
	return func(in *instr, v []value, groups int) {
		for g := range groups {
			out, x, y := group[T](v[in.dst], g), group[T](v[in.src[0]], g), group[T](v[in.src[1]], g)
			for i := range out {
				out[i] = f(x[i], y[i])
			}
		}
	}
}

func soft3[T float32 | float64](f func(x, y, z T) T) blockFunc {
	return func(in *instr, v []value, groups int) {
		for g := range groups {
			out, x, y, z := group[T](v[in.dst], g), group[T](v[in.src[0]], g), group[T](v[in.src[1]], g), group[T](v[in.src[2]], g)
			for i := range out {
				out[i] = f(x[i], y[i], z[i])
			}
		}
	}
}

// softPrim computes any primitive by the oracle's arithmetic.
func softPrim(prim ir.Instr, dts []ir.DType) blockFunc {
	return func(in *instr, v []value, groups int) {
		var room [5][GroupLen]uint64
		args := make([][]uint64, len(dts))
		for g := range groups {
			for k, dt := range dts {
				args[k] = room[k][:]
				from, size := v[in.src[k]], dt.Size()
				for i := range args[k] {
					args[k][i] = operands.Element(unsafe.Add(from.p, g*from.step+i*size), int32(size))
				}
			}
			out := room[4][:]
			ir.FlushDenormals.EvalPrims(prim, dts, args, out)
			to, size := v[in.dst], prim.DT.Size()
			for i, bits := range out {
				operands.SetElement(unsafe.Add(to.p, g*to.step+i*size), int32(size), bits)
			}
		}
	}
}
