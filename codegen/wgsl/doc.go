// Package wgsl prints kernels as WGSL compute shaders and packs the words they
// are launched with.
//
// A shader is printed for a kernel and a [Variant]: how each operand moves
// along the innermost dim, which binding it goes through, how many points one
// invocation computes. Sizes, strides, offsets and scalars are run-time words
// of one uniform buffer, so that no size ever compiles a shader again.
//
// The text is written for naga 0.13, which has no abstract numerics, no 64-bit
// integers and no booleans in memory: every literal is typed, booleans and
// bytes are stored as one 32-bit word each, and 64-bit values are pairs.
//
// Engine part: no compatibility promise; use package millrace.
package wgsl
