package linalg

import (
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// Cholesky is the lower triangular L with a positive diagonal and L·Lᵀ = a: NumPy's cholesky. a is
// a symmetric, positive definite matrix of shape (…, n, n) (else [ErrNotPositiveDefinite]); only
// its lower triangle is read. It takes n³/3 operations on the host.
func Cholesky(a *tensor) *tensor {
	return function{name: "cholesky", results: 1, check: isSquare, run: cholesky, back: choleskyBack}.call(a)[0]
}

// QR factors a matrix of shape (…, m, n) into q, (…, m, k), with orthonormal columns, and the upper
// triangular r, (…, k, n), with q·r = a and k = min(m, n): NumPy's qr in its mode "reduced". Signs
// are those of Householder reflections: r's diagonal may be negative.
func QR(a *tensor) (q, r *tensor) {
	f := function{name: "qr", results: 2, check: isMatrix, run: qr, back: qrBack}.call(a)
	return f[0], f[1]
}

// SVD factors a matrix of shape (…, m, n) into u, (…, m, k), with orthonormal columns, the singular
// values s, (…, k), from the largest to the smallest, and vt, (…, k, n), with orthonormal rows:
// u·diag(s)·vt = a and k = min(m, n). It is NumPy's svd with full_matrices=False. The sign of a
// column of u and of its row of vt is not determined. NaN or an infinity is [ErrNotFinite].
func SVD(a *tensor) (u, s, vt *tensor) {
	f := function{name: "svd", results: 3, check: isMatrix, run: svd, back: svdBack}.call(a)
	return f[0], f[1], f[2]
}

// Eigh returns the eigenvalues w, (…, n), of a symmetric matrix of shape (…, n, n), from the
// smallest to the largest, and the eigenvectors, of length 1, as the columns of v: v·diag(w)·vᵀ =
// a. It is NumPy's eigh. Only the lower triangle is read. The signs of eigenvectors are not
// determined. NaN or an infinity is [ErrNotFinite].
func Eigh(a *tensor) (w, v *tensor) {
	f := function{name: "eigh", results: 2, check: isSquare, run: eigh, back: eighBack}.call(a)
	return f[0], f[1]
}

func cholesky(in []stack) ([]stack, error) {
	a := in[0]
	n := a.rows()
	err := a.each(a.cubic(), func(i int) error {
		x := a.at(i)
		if _, ok := lapack64.Potrf(symmetric(n, x)); !ok {
			return ErrNotPositiveDefinite
		}
		for r := range n {
			clear(x[r*n+r+1 : (r+1)*n])
		}
		return nil
	})
	return in, err
}

// symmetric makes a symmetric matrix from its lower triangle.
func symmetric(n int, x []float64) blas64.Symmetric {
	return blas64.Symmetric{N: n, Stride: n, Data: x, Uplo: blas.Lower}
}

// workspace allocates the memory that a function of lapack64 requests in the first element of work.
func workspace(query func(work []float64, size int)) []float64 {
	ask := []float64{0}
	query(ask, -1)
	return make([]float64, max(int(ask[0]), 1))
}

func qr(in []stack) ([]stack, error) {
	a := in[0]
	m, n := a.rows(), a.columns()
	k := min(m, n)
	q, r := newStack(a.batch(), []int{m, k}), newStack(a.batch(), []int{k, n})
	err := a.each(a.cubic(), func(i int) error {
		x, tau := general(m, n, a.at(i)), make([]float64, k)
		work := workspace(func(w []float64, size int) { lapack64.Geqrf(x, tau, w, size) })
		lapack64.Geqrf(x, tau, work, len(work))
		for row := range k {
			copy(r.at(i)[row*n+row:(row+1)*n], x.Data[row*n+row:])
		}
		y := general(m, k, q.at(i))
		for row := range m {
			copy(y.Data[row*k:(row+1)*k], x.Data[row*n:])
		}
		work = workspace(func(w []float64, size int) { lapack64.Orgqr(y, tau, w, size) })
		lapack64.Orgqr(y, tau, work, len(work))
		return nil
	})
	return []stack{q, r}, err
}

func svd(in []stack) ([]stack, error) {
	a := in[0]
	m, n := a.rows(), a.columns()
	k := min(m, n)
	u, s, vt := newStack(a.batch(), []int{m, k}), newStack(a.batch(), []int{k}), newStack(a.batch(), []int{k, n})
	err := a.each(4*a.cubic(), func(i int) error {
		if err := finite(a.at(i)); err != nil {
			return err
		}
		x, left, right := general(m, n, a.at(i)), general(m, k, u.at(i)), general(k, n, vt.at(i))
		values := s.data[i*k : (i+1)*k]
		decompose := func(w []float64, size int) bool {
			return lapack64.Gesvd(lapack.SVDStore, lapack.SVDStore, x, left, right, values, w, size)
		}
		work := workspace(func(w []float64, size int) { decompose(w, size) })
		if !decompose(work, len(work)) {
			return ErrConvergence
		}
		return nil
	})
	return []stack{u, s, vt}, err
}

func eigh(in []stack) ([]stack, error) {
	a := in[0]
	n := a.rows()
	w := newStack(slices.Clone(a.shape[:len(a.shape)-1]))
	err := a.each(4*a.cubic(), func(i int) error {
		return eigen(n, a.at(i), w.data[i*n:(i+1)*n])
	})
	return []stack{w, a}, err
}

// eigen computes a symmetric matrix's eigenvalues, and overwrites the matrix with the eigenvectors.
func eigen(n int, x, values []float64) error {
	for r := range n {
		if err := finite(x[r*n : r*n+r+1]); err != nil {
			return err
		}
	}
	work := workspace(func(w []float64, size int) { lapack64.Syev(lapack.EVCompute, symmetric(n, x), values, w, size) })
	if !lapack64.Syev(lapack.EVCompute, symmetric(n, x), values, work, len(work)) {
		return ErrConvergence
	}
	return nil
}
