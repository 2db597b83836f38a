package codegen

import (
	"math/rand/v2"

	"github.com/millrace-go/millrace/ir"
)

var testDTypes = []ir.DType{ir.Bool, ir.Uint8, ir.Int32, ir.Int64, ir.Float32, ir.Float64}

// randomKernel is an elementwise kernel of n random instructions over ops and
// dtypes, with small constants among its values so that rules find work. ops
// that need operands in range are left out, and so is Bitcast, which shows
// the bits of a NaN.
func randomKernel(rng *rand.Rand, n int) *Kernel {
	k := &Kernel{}
	none := [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}
	for _, dt := range testDTypes {
		for range 2 {
			k.Operands = append(k.Operands, Operand{Kind: Input, DT: dt})
			k.Body = append(k.Body, ir.Instr{Op: ir.Load, DT: dt, Imm: uint64(len(k.Operands) - 1), Args: none})
		}
		k.Body = append(k.Body, ir.Instr{Op: ir.Const, DT: dt, Imm: randomBits(rng, dt), Args: none})
	}
	for len(k.Body) < n {
		in := ir.Instr{Op: ir.Op(1 + rng.IntN(int(ir.NumOps)-1)), DT: testDTypes[rng.IntN(len(testDTypes))], Args: none}
		info := in.Op.Info()
		switch in.Op {
		case ir.FMA, ir.FDiv, ir.Convert:
		default:
			if info.Class != ir.ClassElementwise {
				continue
			}
		}
		var dts [4]ir.DType
		for i := range info.Arity {
			// Recent values and repeated ones make deeper and richer trees.
			a := ir.Ref(len(k.Body) - 1 - rng.IntN(min(len(k.Body), 24)))
			if i > 0 && rng.IntN(4) == 0 {
				a = in.Args[i-1]
			}
			in.Args[i], dts[i] = a, k.Body[a].DT
		}
		if in.Op == ir.Convert && !lossless(dts[0], in.DT) {
			continue
		}
		if ir.CheckInstr(in, dts[:info.Arity]) == nil {
			k.Body = append(k.Body, in)
		}
	}
	for _, dt := range testDTypes {
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

// randomBits favours the values rules and expansions trip over.
func randomBits(rng *rand.Rand, dt ir.DType) uint64 {
	mask := ^uint64(0) >> (64 - dt.Bits())
	if dt == ir.Bool {
		return rng.Uint64() & 1
	}
	special := []uint64{0, 1, mask, 1 << (dt.Bits() - 1), 1<<(dt.Bits()-1) - 1, 2}
	switch dt {
	case ir.Float32:
		special = []uint64{0, 0x80000000, 0x3f800000, 0xbf800000, 0x40000000, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x00800000, 0x7f7fffff, 0x4f000000}
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
