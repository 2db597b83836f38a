// Package gonumx turns matrices of gonum.org/v1/gonum/mat into tensors, and tensors into such
// matrices.
//
// Elements are copied once in each direction. Tensors are in a device's memory, which Go's
// collector does not know, and a tensor's elements never change, while those of a [mat.Dense]
// may. There are no further copies. A dense matrix without gaps between its rows, or a vector
// without gaps, is copied to the device as it is stored. A transposed one is copied as it is
// stored, and becomes a transposed view there. The matrix made from a tensor keeps the slice that
// was read. Matrices of other layouts (parts of larger ones, symmetric, triangular, banded,
// diagonal ones, or a program's own) are first copied into dense ones.
//
// Of the source, read gonum.go first.
package gonumx
