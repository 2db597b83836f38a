// Package arm64 is the machine of package native for arm64: the encodings of instructions (op.go,
// gpr.go), and the choice of instructions for values (select.go, memory.go) and for contractions
// (tile.go).
//
// Input: calls of native.Machine. Output: bytes of instructions. Read isa.go first.
//
// Engine part: no compatibility promise; use package millrace.
package arm64
