package cgo

// ISA is a set of vector instructions to print for. Only the width decides
// what the text looks like; what the instructions can do the helpers ask the
// compiler's macros, so that a text compiles, slower, wherever vector types do.
type ISA struct {
	Name  string
	Bytes int // of one vector register
	// Target is what GCC and clang call the instructions in target attributes, on
	// x86; "" for those that every processor of the architecture has.
	Target string
}

// The ISAs, the widest first within a family. Portable has no more to offer
// than the compiler's own lowering of 16-byte vectors.
var (
	AVX512   = &ISA{"avx512", 64, "avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512"}
	AVX2     = &ISA{"avx2", 32, "avx2,fma"}
	SSE      = &ISA{"sse", 16, ""}
	NEON     = &ISA{"neon", 16, ""}
	Portable = &ISA{"portable", 16, ""}
)

// ISAs lists them all.
var ISAs = []*ISA{AVX512, AVX2, SSE, NEON, Portable}

// lanes is how many elements a vector statement of a kernel works on. It is
// set by the widest type the kernel computes in, so that every vector of the
// kernel has the same number of lanes and none is wider than a register.
func (isa *ISA) lanes(width int) int { return isa.Bytes / width }
