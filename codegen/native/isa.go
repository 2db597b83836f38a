package native

import "github.com/millrace-go/millrace/ir"

// ISA is a target.
type ISA struct {
	Name  string
	Bytes int  // bytes of a vector register
	Regs  int  // number of vector registers
	EVEX  bool // masks have registers of their own, and elements can be broadcast from memory
	A64   bool // arm64

	primitives *[ir.NumOps]primitive
}

// The targets. AVX2 means AVX2 and FMA; AVX512 means F, BW, DQ and VL. NEON has one register more,
// which is scratch for values that take several instructions.
var (
	AVX2   = &ISA{Name: "avx2", Bytes: 32, Regs: 16, primitives: &primitives}
	AVX512 = &ISA{Name: "avx512", Bytes: 64, Regs: 32, EVEX: true, primitives: &primitives}
	NEON   = &ISA{Name: "neon", Bytes: 16, Regs: 31, A64: true, primitives: &neonPrimitives}
)

// ISAs lists the targets of amd64.
var ISAs = []*ISA{AVX512, AVX2}

// PassesCaches reports whether the target has stores that bypass the caches. Without them,
// [Variant.Past] has no effect.
func (t *ISA) PassesCaches() bool { return !t.A64 }

// trap is a byte; an instruction that consists of it traps.
func (t *ISA) trap() byte {
	if t.A64 {
		return 0
	}
	return 0xcc
}
