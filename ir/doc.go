// Package ir is the vocabulary of the engine: dtypes, shapes, the op table, scalar programs with
// their expansions, tensor programs with their text form, and the oracle, which defines the meaning
// of every op.
//
// It imports no other package of the module. It knows nothing of streams, kernels or devices: an
// op's meaning is defined here once, and every tier follows it.
//
// Input: an op with its operands, as node, instruction or text. Output: its dtype and shape, its
// expansion to primitives, and its result. Read op.go first.
//
// Engine part: no compatibility promise; use package millrace.
package ir
