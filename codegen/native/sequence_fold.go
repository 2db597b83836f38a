package native

import (
	"math"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// folded returns the kernel of a launch with its scalars as constants, and with values that depend
// only on constants computed. A division by a power of two becomes a product, which has the same
// bits and takes a quarter of the time.
func folded(l *Launch, isa *ISA) *codegen.Kernel {
	k := *l.Kernel
	k.Body = append([]ir.Instr(nil), k.Body...)
	for i := range k.Body {
		in := &k.Body[i]
		switch {
		case in.Op == ir.Scalar:
			*in = constant64(in.DT, l.Scalars[in.Imm])
		case in.Op == ir.FDiv:
			if y := k.Body[in.Args[1]]; y.Op == ir.Const && k.Denormals == ir.KeepDenormals {
				if r, ok := inverse(in.DT, y.Imm); ok && k.Body[in.Args[0]].Op != ir.Const {
					k.Body = append(k.Body, constant64(in.DT, r)) // after its use, which is no problem: constants need no code
					in = &k.Body[i]
					in.Op, in.Args[1] = ir.Mul, ir.Ref(len(k.Body)-1)
				}
			}
			fallthrough
		default:
			fold(&k, in, isa)
		}
	}
	return &k
}

func constant64(dt ir.DType, bits uint64) ir.Instr {
	return ir.Instr{Op: ir.Const, DT: dt, Imm: bits, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
}

// fold computes an instruction whose operands are constants. It leaves NaN results to the processor.
func fold(k *codegen.Kernel, in *ir.Instr, isa *ISA) {
	if !isa.Spells(in.Op) || in.Op == ir.Lookup || in.Op == ir.Rare {
		return
	}
	var args []uint64
	var dts []ir.DType
	for _, a := range in.Args {
		if a == ir.None {
			break
		}
		x := k.Body[a]
		if x.Op != ir.Const {
			return
		}
		args, dts = append(args, x.Imm), append(dts, x.DT)
	}
	if len(args) == 0 {
		return
	}
	bits := k.Denormals.EvalPrim(*in, dts, args)
	switch in.DT {
	case ir.Float32:
		if f := math.Float32frombits(uint32(bits)); f != f {
			return
		}
	case ir.Float64:
		if f := math.Float64frombits(bits); f != f {
			return
		}
	}
	*in = constant64(in.DT, bits)
}

// inverse is 1/y for a power of two, if y and 1/y are normal numbers.
func inverse(dt ir.DType, y uint64) (bits uint64, ok bool) {
	switch dt {
	case ir.Float32:
		f := math.Float32frombits(uint32(y))
		r := 1 / f
		return uint64(math.Float32bits(r)), y&(1<<23-1) == 0 && normal(float64(f), -126, 127) && normal(float64(r), -126, 127)
	case ir.Float64:
		f := math.Float64frombits(y)
		r := 1 / f
		return math.Float64bits(r), y&(1<<52-1) == 0 && normal(f, -1022, 1023) && normal(r, -1022, 1023)
	}
	return 0, false
}

func normal(f float64, least, most int) bool {
	if f == 0 || math.IsInf(f, 0) || f != f {
		return false
	}
	e := math.Ilogb(f)
	return least <= e && e <= most
}
