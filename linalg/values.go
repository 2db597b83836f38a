package linalg

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// SingularValues returns the k = min(m, n) singular values, (…, k), of a matrix of shape (…, m, n),
// from the largest to the smallest: NumPy's and PyTorch's svdvals. It computes no vectors and is
// therefore faster than [SVD]; the last digits may differ. Its gradient also exists for equal
// values. NaN or an infinity is [ErrNotFinite].
func SingularValues(a *tensor) *tensor {
	return function{name: "singularvalues", results: 1, check: isMatrix, run: singularValues, back: singularValuesBack}.call(a)[0]
}

// Eigvalsh returns the eigenvalues, (…, n), of a symmetric matrix of shape (…, n, n), from the
// smallest to the largest: NumPy's eigvalsh. Only the lower triangle is read. It computes no
// vectors and is therefore faster than [Eigh]; the last digits may differ. Its gradient also
// exists for equal values. NaN or an infinity is [ErrNotFinite].
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
		return eigenvalues(n, a.at(i), w.data[i*n:(i+1)*n])
	})
	return []stack{w}, err
}

// eigenvalues computes the eigenvalues of a symmetric matrix, and overwrites the matrix. It calls
// two steps of Syev, Dsytrd and Dsteqr. For values alone Syev calls Dsterf instead of Dsteqr, which
// panics in gonum 0.16 if a block of the matrix is small and has to be scaled.
func eigenvalues(n int, x, values []float64) error {
	if n == 0 {
		return nil
	}
	largest := 0.0
	for r := range n {
		row := x[r*n : r*n+r+1]
		if err := finite(row); err != nil {
			return err
		}
		for _, v := range row {
			largest = max(largest, math.Abs(v))
		}
	}
	// Scale by a power of two, which keeps squares in range and loses no digit.
	_, exponent := math.Frexp(largest)
	for r := range n {
		row := x[r*n : r*n+r+1]
		for i, v := range row {
			row[i] = math.Ldexp(v, -exponent)
		}
	}
	off, tau := make([]float64, n), make([]float64, n)
	work := workspace(func(w []float64, size int) {
		gonum.Implementation{}.Dsytrd(blas.Lower, n, x, n, values, off[:n-1], tau[:n-1], w, size)
	})
	gonum.Implementation{}.Dsytrd(blas.Lower, n, x, n, values, off[:n-1], tau[:n-1], work, len(work))
	if !(gonum.Implementation{}).Dsteqr(lapack.EVCompNone, n, values, off, nil, 1, nil) {
		return ErrConvergence
	}
	for i, v := range values {
		values[i] = math.Ldexp(v, exponent)
	}
	return nil
}
