package linalg

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/millrace-go/millrace"
)

// The matrix of cofactors is the derivative of a determinant for every matrix. With a =
// u·diag(s)·vt it is det(u)·det(vt)·u·diag(p)·vt, where p[i] is the product of all singular values
// except s[i]. Its rank is 1 if a's rank is one below full, and it is 0 for lower ranks.

// cofactors returns the cofactors of a square matrix, at the places of their elements.
func cofactors(a *tensor) *tensor {
	return function{name: "det", results: 1, check: isSquare, run: cofactor, back: cofactorBack}.call(a)[0]
}

// cofactorBack is the derivative of the cofactors. It is itself a function of a and g, for second
// derivatives.
func cofactorBack(in, _, d []*tensor) []*tensor {
	f := function{name: "det", results: 1, check: areSquare, run: cofactorSlope, back: func(in, _, _ []*tensor) []*tensor {
		err := fmt.Errorf("%w: the determinant of a singular or nearly singular matrix has no third derivative", millrace.ErrUnsupported)
		return []*tensor{failed("det", err, in...), failed("det", err, in...)}
	}}
	return []*tensor{f.call(in[0], d[0])[0]}
}

// areSquare rejects all but two stacks of square matrices of one shape.
func areSquare(shapes [][]int) error {
	if !slices.Equal(shapes[0], shapes[1]) {
		return shapeErr("the matrices have shapes %v and %v", shapes[0], shapes[1])
	}
	return isSquare(shapes)
}

// others is the product of all elements but those at i and j.
func others(s []float64, i, j int) float64 {
	p := 1.0
	for k, x := range s {
		if k != i && k != j {
			p *= x
		}
	}
	return p
}

// orientation is the determinant of an orthogonal matrix, 1 or -1. It overwrites the matrix.
func orientation(n int, x []float64) float64 {
	f, _ := factor(n, x)
	sign, _, _ := f.det()
	return sign
}

// rotated calls f for every matrix of a stack with its singular value decomposition and
// det(u)·det(vt). The result is u·core·vt with the core that f returns.
func rotated(a stack, f func(i int, sign float64, u, vt blas64.General, s []float64) (core []float64)) ([]stack, error) {
	n := a.rows()
	r := newStack(a.shape)
	parts, err := newSplit(a)
	if err != nil {
		return nil, err
	}
	err = r.each(4*r.cubic(), func(i int) error {
		u, vt := parts.u.at(i), parts.vt.at(i)
		sign := orientation(n, slices.Clone(u)) * orientation(n, slices.Clone(vt))
		left, right := general(n, n, u), general(n, n, vt)
		core := f(i, sign, left, right, parts.s.data[i*n:(i+1)*n])
		half := general(n, n, make([]float64, n*n))
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, left, general(n, n, core), 0, half)
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, half, right, 0, general(n, n, r.at(i)))
		return nil
	})
	return []stack{r}, err
}

func cofactor(in []stack) ([]stack, error) {
	n := in[0].rows()
	return rotated(in[0], func(_ int, sign float64, _, _ blas64.General, s []float64) []float64 {
		core := make([]float64, n*n)
		for i := range n {
			core[i*n+i] = sign * others(s, i, i)
		}
		return core
	})
}

// cofactorSlope is the derivative with respect to a of the sum of a's cofactors times g. In the
// basis of the singular vectors a is diagonal, and the second derivatives of the determinant are
// minors without two rows and columns.
func cofactorSlope(in []stack) ([]stack, error) {
	a, g := in[0], in[1]
	n := a.rows()
	return rotated(a, func(at int, sign float64, u, vt blas64.General, s []float64) []float64 {
		half, b := general(n, n, make([]float64, n*n)), general(n, n, make([]float64, n*n))
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, u, general(n, n, g.at(at)), 0, half)
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, half, vt, 0, b)
		core := make([]float64, n*n)
		for i := range n {
			for j := range n {
				if i != j {
					p := sign * others(s, i, j)
					core[i*n+i] += float64(p * b.Data[j*n+j])
					core[i*n+j] -= float64(p * b.Data[j*n+i])
				}
			}
		}
		return core
	})
}
