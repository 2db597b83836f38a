// Package amd64 is the machine of package native for amd64, with AVX2 or with AVX-512: the encodings
// of instructions (encode.go, op.go, gpr.go), and the choice of instructions for values (select.go,
// memory.go and convert.go) and for contractions (tile.go).
//
// Input: calls of native.Machine. Output: bytes of instructions. Read isa.go first.
//
// Engine part: no compatibility promise; use package millrace.
package amd64
