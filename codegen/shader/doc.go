// Package shader makes compute shaders from kernels, and packs the words with which they are
// launched. It knows what a shader does; a [Dialect] knows how to spell it.
//
// A shader is printed for a kernel and a [Variant]: how each operand moves along the innermost dim,
// which binding it uses, how many points one invocation computes. Sizes, strides, offsets and
// scalars are run-time words of one buffer, so that a new size never needs a new shader.
//
// The text uses only what all languages have: every literal is typed, booleans and bytes are stored
// as one 32-bit word each, and 64-bit values are pairs. In a language with types for them, elements
// of 8 and 16 bits may be stored in their own size. A load then gives a word, and a store takes one,
// so the rest of the text is the same.
//
// Input: a kernel, its [Variant] and a [Dialect]. Output: the text of a shader, and the words of
// each launch. Read print.go first.
//
// Engine part: no compatibility promise; use package millrace.
package shader
