package native

import "github.com/millrace-go/millrace/ir"

// ISA is a target.
type ISA struct {
	Name  string
	Bytes int  // of a vector register
	Regs  int  // vector registers
	EVEX  bool // masks in registers of their own, elements broadcast from memory

	primitives *[ir.NumOps]primitive
}

// The targets. AVX2 stands for AVX2 and FMA, AVX512 for F, BW, DQ and VL.
var (
	AVX2   = &ISA{Name: "avx2", Bytes: 32, Regs: 16, primitives: &primitives}
	AVX512 = &ISA{Name: "avx512", Bytes: 64, Regs: 32, EVEX: true, primitives: &primitives}
)

// ISAs lists them.
var ISAs = []*ISA{AVX512, AVX2}
