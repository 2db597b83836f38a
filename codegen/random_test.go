package codegen

import (
	"math"
	"math/rand/v2"

	"github.com/millrace-go/millrace/ir"
)

// someDTypes are a few dtypes of tensors, so that values find partners of their dtype.
func someDTypes(rng *rand.Rand) []ir.DType {
	dts := []ir.DType{ir.Bool, ir.Float32}
	for _, i := range rng.Perm(int(ir.NumDTypes))[:5] {
		if dt := ir.DType(i); dt.Tensor() && dt != ir.Bool && dt != ir.Float32 {
			dts = append(dts, dt)
		}
	}
	return dts
}

// randomKernel is an elementwise kernel of n random instructions over ops and dtypes, with small
// constants among its values, so that rules apply. It has no ops that need operands in range, and no
// Bitcast, which shows the bits of a NaN.
func randomKernel(rng *rand.Rand, n int) *Kernel {
	k, dts := &Kernel{}, someDTypes(rng)
	none := [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}
	for _, dt := range dts {
		for range 2 {
			k.Operands = append(k.Operands, Operand{Kind: Input, DT: dt})
			k.Body = append(k.Body, ir.Instr{Op: ir.Load, DT: dt, Imm: uint64(len(k.Operands) - 1), Args: none})
		}
		k.Body = append(k.Body, ir.Instr{Op: ir.Const, DT: dt, Imm: randomBits(rng, dt), Args: none})
	}
	for len(k.Body) < n {
		in := ir.Instr{Op: ir.Op(1 + rng.IntN(int(ir.NumOps)-1)), DT: dts[rng.IntN(len(dts))], Args: none}
		info := in.Op.Info()
		switch in.Op {
		case ir.FMA, ir.FDiv, ir.Convert:
		default:
			if info.Class != ir.ClassElementwise {
				continue
			}
		}
		var args [4]ir.DType
		for i := range info.Arity {
			// Recent values and repeated ones make deeper and richer trees.
			a := ir.Ref(len(k.Body) - 1 - rng.IntN(min(len(k.Body), 24)))
			if i > 0 && rng.IntN(4) == 0 {
				a = in.Args[i-1]
			}
			in.Args[i], args[i] = a, k.Body[a].DT
		}
		if in.Op == ir.Convert && !lossless(args[0], in.DT) {
			continue
		}
		if ir.CheckInstr(in, args[:info.Arity]) == nil {
			k.Body = append(k.Body, in)
		}
	}
	for _, dt := range dts {
		for i := len(k.Body) - 1; i >= 0; i-- {
			if k.Body[i].DT == dt {
				k.Operands = append(k.Operands, Operand{Kind: Output, DT: dt})
				k.Stores = append(k.Stores, Store{len(k.Operands) - 1, ir.Ref(i)})
				break
			}
		}
	}
	return k
}

// randomBits prefers values that are difficult for rules and expansions.
func randomBits(rng *rand.Rand, dt ir.DType) uint64 {
	mask := ^uint64(0) >> (64 - dt.Bits())
	if dt == ir.Bool {
		return rng.Uint64() & 1
	}
	special := []uint64{0, 1, mask, 1 << (dt.Bits() - 1), 1<<(dt.Bits()-1) - 1, 2}
	switch dt {
	case ir.Float32:
		special = []uint64{0, 0x80000000, 0x3f800000, 0xbf800000, 0x40000000, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x00800000, 0x7f7fffff, 0x4f000000}
	case ir.Float16, ir.BFloat16:
		one, inf := ir.OneBits(dt), ir.FloatBits(dt, math.Inf(1))
		special = []uint64{0, 0x8000, one, one | 0x8000, one + 1, inf, inf | 0x8000, inf - 1, inf + 1<<6, 1, 0x400}
	case ir.Float64:
		special = []uint64{0, 1 << 63, 0x3ff0000000000000, 0xbff0000000000000, 0x4000000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 1}
	}
	if rng.IntN(3) > 0 {
		return special[rng.IntN(len(special))]
	}
	if dt == ir.Float32 && rng.IntN(2) == 0 {
		return uint64(rng.IntN(64)+96) << 23 & mask // a power of two
	}
	return rng.Uint64() & mask
}
