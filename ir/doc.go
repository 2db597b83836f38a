// Package ir is the vocabulary of the engine: dtypes, shapes, the op table,
// scalar programs with their expansions, tensor programs with their text form,
// and the oracle that says what every op means.
//
// It imports nothing of the module. Nothing in it knows about streams, kernels
// or devices: an op's meaning is fixed here once, and every tier prints it.
//
// Engine part: no compatibility promise; use package millrace.
package ir
