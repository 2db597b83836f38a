// Package linalg solves linear systems and factors matrices. It has numpy.linalg's functions for
// tensors of Float32 and Float64, one matrix or a stack of them.
//
// # On the host
//
// Everything is computed by gonum's lapack in Go, on the machine's cores and in float64, whatever
// the operands' device. A call runs the ops that its operands need, reads the operands, and puts
// the result at their place, in their scope and on their stream, before it returns. Nothing fuses
// with it. If the function of a [millrace.Recording] calls linalg, it is called in every run, as
// for other reads. Results do not depend on the device, on fusion or on the number of threads.
// gonum has assembly for some processors; the last digits may therefore differ between kinds of
// processors.
//
// # Shapes
//
// The last two dimensions are a matrix; those before them are a stack of matrices, each handled
// separately. Dimensions may be 0. Operands that do not fit are [millrace.ErrShape]; other or
// different dtypes are [millrace.ErrDType]. Results have the operands' dtype: for Float32 the
// computation is in float64 and rounded once.
//
// # Matrices without a result
//
// For a singular matrix, or one that is not positive definite, the result carries [ErrSingular] or
// [ErrNotPositiveDefinite] with the line of the program and the matrix's index in the stack. NumPy
// raises LinAlgError there. One such matrix in a stack is enough. NaN and infinities pass through
// Solve, Inverse, Det, SlogDet and QR as in arithmetic, except that products with zeros may be left
// out. Cholesky reports them as not positive definite if they reach the diagonal. SVD,
// SingularValues, Eigh, Eigvalsh, PseudoInverse and LeastSquares, in its matrix, reject them as
// [ErrNotFinite]. (NumPy's behavior depends on its BLAS.)
//
// # Gradients
//
// Package autodiff has gradients of all functions, and gradients of these. They are computed by other
// calls of this package and matrix products.
//
//   - Cholesky and Eigh read the lower triangle only. Their gradients are symmetric: those of a function of (A+Aᵀ)/2.
//   - Gradients with respect to the vectors of Eigh and SVD are large or not finite if eigenvalues or singular values are close or equal. Vectors that the loss does not use add nothing. Gradients through values alone always exist.
//   - Those of QR exist for matrices of full rank with no more columns than rows.
//   - Those of SlogDet exist for matrices that are not singular; those of Det for all, up to the second for a singular matrix.
//   - LeastSquares and PseudoInverse jump where the rank of a matrix changes: their gradients hold for constant rank.
//
// # Eigenvalues of other matrices
//
// There is no eig of general matrices: its results are complex for real matrices, in no defined
// order, and tensors are real. Use Eigh for symmetric matrices and SVD for all.
//
// Of the source, read call.go first.
package linalg

import "errors"

var (
	// ErrSingular: a matrix without an inverse. An element of the diagonal of U in its LU factors
	// is 0.
	ErrSingular = errors.New("singular matrix")
	// ErrNotPositiveDefinite: a matrix without a Cholesky factor.
	ErrNotPositiveDefinite = errors.New("matrix is not positive definite")
	// ErrNotFinite: NaN or an infinity in a matrix that is factored by iteration.
	ErrNotFinite = errors.New("NaN or infinity in a matrix")
	// ErrConvergence: an iteration that did not converge.
	ErrConvergence = errors.New("the iteration did not converge")
)
