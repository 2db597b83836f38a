// Package linalg solves linear systems and factors matrices: what numpy.linalg does, for
// tensors of Float32 and Float64, one matrix or a stack of them.
//
// # On the host
//
// All of it is computed by gonum's lapack in Go, on the machine's cores and in float64,
// whatever device the operands are on: a call runs what they need, reads them, and puts
// the result back where they are, into their scope and on their stream, before it returns.
// Nothing of it fuses. The function of a [millrace.Recording] that calls it is called in every
// run, as for other reads. Results do not depend on the device, on fusion or on how many
// threads there are; gonum has assembly for some processors, so that last digits may differ
// from one kind of processor to another.
//
// # Shapes
//
// The last two dimensions are a matrix; those before them are a stack of matrices, each of
// which is taken for itself. Shapes may have zeros in them. What does not fit is
// [millrace.ErrShape], another dtype [millrace.ErrDType], operands of different dtypes too.
// Results have the operands' dtype: those of Float32 are computed from the float32 numbers
// in float64 and rounded once.
//
// # What has no answer
//
// A singular matrix, one that is not positive definite: the result carries [ErrSingular],
// [ErrNotPositiveDefinite] with the line of the program and the matrix's place in the stack, where
// NumPy raises LinAlgError. In a stack one such matrix is enough. NaN and infinities go
// through Solve, Inverse, Det, SlogDet and QR as arithmetic takes them, but for products with
// zeros that are left out; Cholesky finds them not positive definite where they come to the
// diagonal; SVD, Eigh, PseudoInverse and LeastSquares, in its matrix, refuse them as [ErrNotFinite]. (What
// NumPy does with them depends on the BLAS that it was built with.)
//
// # Derivatives
//
// Package autodiff has derivatives of all functions, and derivatives of these. They are
// computed by other calls of this package and matrix products. For Cholesky and Eigh, which
// read the lower triangle only, they are symmetric: those of a function of (A+Aᵀ)/2. Those
// by the vectors of Eigh and SVD are not finite, or large, where eigenvalues or singular values are the same or
// close; vectors by which a derivative is 0, as where nobody used them, give no term. Those by values alone are
// always there. Those of QR are there for matrices that have no more columns than rows and full rank, those of
// SlogDet for matrices that are not singular, those of Det for all, up to the second where a matrix is singular. LeastSquares and PseudoInverse jump where the rank of a
// matrix changes: their derivatives are what they are while it stays.
//
// # Eigenvalues of other matrices
//
// There is no eig of general matrices: its results are complex where the matrix is real, in
// an order that nothing fixes, and tensors are real. Eigh is for symmetric matrices, SVD for all.
package linalg

import "errors"

var (
	// ErrSingular: a matrix without an inverse, as its LU factors tell: one of U's diagonal is 0.
	ErrSingular = errors.New("singular matrix")
	// ErrNotPositiveDefinite: a matrix that has no Cholesky factor.
	ErrNotPositiveDefinite = errors.New("matrix is not positive definite")
	// ErrNotFinite: NaN or an infinity in a matrix that is to be factored by iteration.
	ErrNotFinite = errors.New("NaN or infinity in a matrix")
	// ErrConvergence: an iteration that did not come to an end.
	ErrConvergence = errors.New("the iteration did not converge")
)
