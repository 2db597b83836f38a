// Package ir is the vocabulary of the engine: dtypes, shapes, the op table, scalar programs with
// their expansions, tensor programs with their text form, and the oracle, which defines the meaning
// of every op.
//
// It imports no other package of the module. It knows nothing of streams, kernels or devices: an
// op's meaning is defined here once, and every tier follows it.
//
// Engine part: no compatibility promise; use package millrace.
package ir
