package linalg

import (
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// LeastSquares returns the x with the smallest |a·x-b|, and among those the shortest: the first
// result of NumPy's and PyTorch's lstsq. a is a matrix of any shape and rank, b a vector or a
// matrix whose columns are solved one by one; stacks broadcast. Singular values up to s_max·max(m,
// n)·eps count as 0, as in NumPy, with the dtype's eps (2^-52 or 2^-23). NaN or an infinity in a is
// [ErrNotFinite].
func LeastSquares(a, b *tensor) *tensor {
	return function{"leastsquares", 1, fittingRows, leastSquares, leastSquaresBack, leastSquared}.call(a, b)[0]
}

// PseudoInverse is the Moore-Penrose inverse of a matrix of any shape and rank: NumPy's and
// PyTorch's pinv. The same singular values count as 0 as in [LeastSquares], which is more accurate
// than a product with the pseudo-inverse. NaN or an infinity is [ErrNotFinite].
func PseudoInverse(a *tensor) *tensor {
	return function{name: "pseudoinverse", results: 1, check: isMatrix, run: pseudoInverse, back: pseudoInverseBack}.call(a)[0]
}

func fittingRows(shapes [][]int) error {
	if err := isMatrix(shapes); err != nil {
		return err
	}
	return fittingSides(shapes)
}

// leastSquared is the shape of the result, as a stack of matrices.
func leastSquared(shapes [][]int) [][]int {
	a := shapes[0]
	m, batch, _ := pair(a, shapes[1])
	return [][]int{slices.Concat(batch, []int{a[len(a)-1], m[len(m)-1]})}
}

// split is a stack of singular value decompositions.
type split struct {
	u, s, vt stack
	eps      float64
}

func newSplit(a stack) (split, error) {
	r, err := svd([]stack{a})
	if err != nil {
		return split{}, err
	}
	return split{r[0], r[1], r[2], a.eps}, nil
}

// at returns decomposition i, with the inverse singular values, and 0 for those that count as 0.
func (x split) at(i int) (u, vt blas64.General, inverse []float64) {
	m, k, n := x.u.rows(), x.u.columns(), x.vt.columns()
	inverse = make([]float64, k)
	s := x.s.data[i*k : (i+1)*k]
	least := float64(max(m, n)) * x.eps * s[0]
	for j, v := range s {
		if v > least {
			inverse[j] = 1 / v
		}
	}
	return general(m, k, x.u.at(i)), general(k, n, x.vt.at(i)), inverse
}

func leastSquares(in []stack) ([]stack, error) {
	a, b := in[0], in[1]
	vector := len(b.shape) == 1
	m, batch, _ := pair(a.shape, b.shape)
	b.shape = m
	x := newStack(batch, []int{a.columns(), b.columns()})
	if a.rows()*a.columns() > 0 { // else there are no elements, or the shortest solution is 0
		parts, err := newSplit(a)
		if err != nil {
			return nil, err
		}
		ofA, ofB := spread(a.batch(), batch), spread(b.batch(), batch)
		err = x.each(a.cubic(), func(i int) error {
			u, vt, inverse := parts.at(ofA(i))
			columns := b.columns()
			side := general(b.rows(), columns, b.at(ofB(i)))
			y := general(len(inverse), columns, make([]float64, len(inverse)*columns))
			blas64.Gemm(blas.Trans, blas.NoTrans, 1, u, side, 0, y)
			for j, by := range inverse {
				for c := range columns {
					if v := &y.Data[j*columns+c]; by == 0 {
						*v = 0 // also for NaN
					} else {
						*v *= by
					}
				}
			}
			blas64.Gemm(blas.Trans, blas.NoTrans, 1, vt, y, 0, general(a.columns(), columns, x.at(i)))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if vector {
		x.shape = x.shape[:len(x.shape)-1]
	}
	return []stack{x}, nil
}

func pseudoInverse(in []stack) ([]stack, error) {
	a := in[0]
	m, n := a.rows(), a.columns()
	p := newStack(a.batch(), []int{n, m})
	parts, err := newSplit(a)
	if err != nil {
		return nil, err
	}
	err = p.each(a.cubic(), func(i int) error {
		u, vt, inverse := parts.at(i)
		for r := range m {
			for j, by := range inverse {
				u.Data[r*u.Stride+j] *= by
			}
		}
		blas64.Gemm(blas.Trans, blas.Trans, 1, vt, u, 0, general(n, m, p.at(i)))
		return nil
	})
	return []stack{p}, err
}

// leastSquaresBack is the derivative of a⁺·b for constant rank of a (Golub and Pereyra, 1973), by
// calls of LeastSquares.
func leastSquaresBack(in, out, d []*tensor) []*tensor {
	a, b, x, g := in[0], in[1], out[0], d[0]
	vector := b.Rank() == 1
	if vector {
		b, x, g = b.Unsqueeze(-1), x.Unsqueeze(-1), g.Unsqueeze(-1)
	}
	db := LeastSquares(tr(a), g)
	rest := b.Sub(a.MatMul(x))
	da := rest.MatMul(tr(LeastSquares(a, db))).Sub(db.MatMul(tr(x)))
	beyond := g.Sub(tr(a).MatMul(db)) // the part outside a's row space
	da = da.Add(LeastSquares(tr(a), x).MatMul(tr(beyond)))
	if vector {
		db = db.Squeeze(-1)
	}
	return []*tensor{unspread(da, in[0].Shape()), unspread(db, in[1].Shape())}
}

func pseudoInverseBack(in, out, d []*tensor) []*tensor {
	a, p, g := in[0], out[0], d[0]
	pt, gt := tr(p), tr(g)
	left := gt.Sub(a.MatMul(p).MatMul(gt)).MatMul(p).MatMul(pt)
	right := pt.MatMul(p).MatMul(gt.Sub(gt.MatMul(p).MatMul(a)))
	return []*tensor{left.Add(right).Sub(pt.MatMul(g).MatMul(pt))}
}
