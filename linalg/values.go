package linalg

import (
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// SingularValues gives the k = min(m, n) singular values of a matrix of m rows and n columns,
// from the largest to the smallest: NumPy's and PyTorch's svdvals. No vectors are computed, so it is
// faster than [SVD], and last digits may differ. Its derivative is there where values are the same, too. NaN or an infinity is [ErrNotFinite].
func SingularValues(a *tensor) *tensor {
	return function{name: "singularvalues", results: 1, check: isMatrix, run: singularValues, back: singularValuesBack}.call(a)[0]
}

// Eigvalsh gives the eigenvalues of a symmetric matrix, from the smallest to the largest: NumPy's
// eigvalsh. The lower triangle is read. No vectors are computed, so it is faster than [Eigh], and last digits may
// differ. Its derivative is there where values are the same, too. NaN or an infinity is [ErrNotFinite].
func Eigvalsh(a *tensor) *tensor {
	return function{name: "eigvalsh", results: 1, check: isSquare, run: eigvalsh, back: eigvalshBack}.call(a)[0]
}

func singularValues(in []stack) ([]stack, error) {
	a := in[0]
	m, n := a.rows(), a.columns()
	k := min(m, n)
	s := newStack(a.batch(), []int{k})
	err := a.each(2*a.cubic(), func(i int) error {
		if err := finite(a.at(i)); err != nil {
			return err
		}
		x, values, none := general(m, n, a.at(i)), s.data[i*k:(i+1)*k], blas64.General{Stride: 1}
		decompose := func(w []float64, size int) bool {
			return lapack64.Gesvd(lapack.SVDNone, lapack.SVDNone, x, none, none, values, w, size)
		}
		work := workspace(func(w []float64, size int) { decompose(w, size) })
		if !decompose(work, len(work)) {
			return ErrConvergence
		}
		return nil
	})
	return []stack{s}, err
}

func eigvalsh(in []stack) ([]stack, error) {
	a := in[0]
	n := a.rows()
	w := newStack(slices.Clone(a.shape[:len(a.shape)-1]))
	err := a.each(2*a.cubic(), func(i int) error {
		return eigen(n, a.at(i), w.data[i*n:(i+1)*n], lapack.EVNone)
	})
	return []stack{w}, err
}
