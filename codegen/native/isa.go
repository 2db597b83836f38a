package native

import "github.com/millrace-go/millrace/ir"

// ISA is a target.
type ISA struct {
	Name  string
	Bytes int  // of a vector register
	Regs  int  // vector registers
	EVEX  bool // masks in registers of their own, elements broadcast from memory
	A64   bool // arm64

	primitives *[ir.NumOps]primitive
}

// The targets. AVX2 stands for AVX2 and FMA, AVX512 for F, BW, DQ and VL; NEON's last
// register is what instructions use that take several.
var (
	AVX2   = &ISA{Name: "avx2", Bytes: 32, Regs: 16, primitives: &primitives}
	AVX512 = &ISA{Name: "avx512", Bytes: 64, Regs: 32, EVEX: true, primitives: &primitives}
	NEON   = &ISA{Name: "neon", Bytes: 16, Regs: 31, A64: true, primitives: &neonPrimitives}
)

// ISAs lists those of amd64.
var ISAs = []*ISA{AVX512, AVX2}

// PassesCaches says that there are stores past the caches: without, [Variant.Past] does
// nothing.
func (t *ISA) PassesCaches() bool { return !t.A64 }

// trap is a byte of which a row is an instruction that traps.
func (t *ISA) trap() byte {
	if t.A64 {
		return 0
	}
	return 0xcc
}
