// Package shader makes kernels into compute shaders and packs the words they are
// launched with. It knows what a shader does, and a [Dialect] how that is spelled.
//
// A shader is printed for a kernel and a [Variant]: how each operand moves
// along the innermost dim, which binding it goes through, how many points one
// invocation computes. Sizes, strides, offsets and scalars are run-time words
// of one buffer, so that no size ever compiles a shader again.
//
// The text keeps to what all languages have: every literal is typed, booleans and
// bytes are stored as one 32-bit word each, and 64-bit values are pairs.
//
// Engine part: no compatibility promise; use package millrace.
package shader
