package cgo

// ISA is a set of vector instructions for which a text is printed. Only the width changes the text.
// The helpers test the compiler's macros to see which instructions exist, so a text compiles, to
// slower code, wherever vector types exist.
type ISA struct {
	Name  string
	Bytes int // of one vector register
}

// The ISAs, the widest first within a family. Portable uses only the compiler's own lowering of
// 16-byte vectors.
var (
	AVX512   = &ISA{"avx512", 64}
	AVX2     = &ISA{"avx2", 32}
	SSE      = &ISA{"sse", 16}
	NEON     = &ISA{"neon", 16}
	Portable = &ISA{"portable", 16}
)

// ISAs lists them all.
var ISAs = []*ISA{AVX512, AVX2, SSE, NEON, Portable}

// lanes is the number of elements in a vector of a kernel. The widest type that the kernel computes
// in decides it, so that every vector of the kernel has the same number of lanes and none is wider
// than a register.
func (isa *ISA) lanes(width int) int { return isa.Bytes / width }
