package linalg

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/millrace-go/millrace/ir"
)

// Solve returns x with a·x = b: NumPy's solve. a is a square matrix or a stack of them; b is a
// vector, or a matrix whose columns are solved one by one, or a stack of those. Stacks broadcast. A
// singular a is [ErrSingular]. It uses LU factorization with partial pivoting, on the host.
func Solve(a, b *tensor) *tensor {
	return function{"solve", 1, fitting, solve, solveBack, solved}.call(a, b)[0]
}

// Inverse is the inverse of a square matrix: NumPy's inv. A singular matrix is [ErrSingular].
func Inverse(a *tensor) *tensor {
	return function{name: "inverse", results: 1, check: isSquare, run: inverse, back: inverseBack}.call(a)[0]
}

// Det is the determinant of a square matrix, one number for each matrix of a stack: NumPy's det. It
// is 0 for a singular matrix and 1 for one without elements. A determinant outside the dtype's
// range becomes an infinity or 0: see [SlogDet].
func Det(a *tensor) *tensor {
	return function{"det", 1, isSquare, det, detBack, numbers}.call(a)[0]
}

// SlogDet returns the sign of the determinant of a square matrix, -1, 0 or 1, and the natural
// logarithm of its absolute value, -Inf for a singular one: NumPy's slogdet.
func SlogDet(a *tensor) (sign, logabs *tensor) {
	r := function{"slogdet", 2, isSquare, slogDet, slogDetBack, numbers}.call(a)
	return r[0], r[1]
}

// lu holds the factors of a square matrix, in the memory of its elements.
type lu struct {
	a     blas64.General
	pivot []int
}

// general describes a matrix for lapack64.
func general(rows, columns int, data []float64) blas64.General {
	return blas64.General{Rows: rows, Cols: columns, Stride: max(columns, 1), Data: data}
}

// factor factors a matrix in place, and reports whether it has an inverse.
func factor(n int, a []float64) (f lu, ok bool) {
	f = lu{general(n, n, a), make([]int, n)}
	ok = lapack64.Getrf(f.a, f.pivot)
	return f, ok
}

// solve overwrites b's columns with the solutions.
func (f lu) solve(b blas64.General) { lapack64.Getrs(blas.NoTrans, f.a, b, f.pivot) }

// det returns the determinant's sign, and its absolute value as fraction · 2^exponent.
func (f lu) det() (sign, fraction float64, exponent int) {
	sign, fraction = 1, 1
	for i, p := range f.pivot {
		x := f.a.Data[i*f.a.Stride+i]
		if (p != i) != (x < 0) {
			sign = -sign
		}
		v, e := math.Frexp(float64(fraction * math.Abs(x)))
		fraction, exponent = v, exponent+e
		if x == 0 {
			return 0, 0, 0
		}
	}
	return sign, fraction, exponent
}

// factored factors every matrix of a stack.
func factored(a stack, singular error) ([]lu, error) {
	fs := make([]lu, a.count())
	err := a.each(a.cubic(), func(i int) error {
		f, ok := factor(a.rows(), a.at(i))
		fs[i] = f
		if !ok {
			return singular
		}
		return nil
	})
	return fs, err
}

// pair returns the shape of Solve's operand b as matrices, the shape of the result's stack, and
// whether a and b match.
func pair(a, b []int) (matrices []int, batch ir.Shape, ok bool) {
	matrices = b
	if len(b) == 1 {
		matrices = []int{b[0], 1}
	}
	if len(matrices) < 2 || matrices[len(matrices)-2] != a[len(a)-2] {
		return nil, nil, false
	}
	batch, ok = ir.Broadcast(a[:len(a)-2], matrices[:len(matrices)-2])
	return matrices, batch, ok
}

func fitting(shapes [][]int) error {
	if err := isSquare(shapes); err != nil {
		return err
	}
	return fittingSides(shapes)
}

// fittingSides rejects a right side that does not match the matrix.
func fittingSides(shapes [][]int) error {
	if _, _, ok := pair(shapes[0], shapes[1]); !ok {
		return shapeErr("%v does not fit a right side of %v", shapes[0], shapes[1])
	}
	return nil
}

func solved(shapes [][]int) [][]int {
	m, batch, _ := pair(shapes[0], shapes[1])
	return [][]int{slices.Concat(batch, m[len(m)-2:])}
}

func solve(in []stack) ([]stack, error) {
	a, b := in[0], in[1]
	vector := len(b.shape) == 1
	m, batch, _ := pair(a.shape, b.shape)
	b.shape = m
	fs, err := factored(a, ErrSingular)
	if err != nil {
		return nil, err
	}
	x := newStack(batch, m[len(m)-2:])
	ofA, ofB := spread(a.batch(), batch), spread(b.batch(), batch)
	err = x.each(x.rows()*x.rows()*x.columns(), func(i int) error {
		to := x.at(i)
		copy(to, b.at(ofB(i)))
		fs[ofA(i)].solve(general(x.rows(), x.columns(), to))
		return nil
	})
	if vector {
		x.shape = x.shape[:len(x.shape)-1]
	}
	return []stack{x}, err
}

// spread maps an index of the broadcast stack to an index of the original stack.
func spread(from, to []int) func(i int) int {
	strides := make([]int, len(to))
	n := 1
	for d := len(from) - 1; d >= 0; d-- {
		if from[d] != 1 {
			strides[d+len(to)-len(from)] = n
		}
		n *= from[d]
	}
	return func(i int) (at int) {
		for d := len(to) - 1; d >= 0; d-- {
			at += i % to[d] * strides[d]
			i /= to[d]
		}
		return at
	}
}

func inverse(in []stack) ([]stack, error) {
	a := in[0]
	fs, err := factored(a, ErrSingular)
	if err != nil {
		return nil, err
	}
	x := newStack(a.shape)
	n := a.rows()
	err = x.each(x.cubic(), func(i int) error {
		to := x.at(i)
		for k := range n {
			to[k*n+k] = 1
		}
		fs[i].solve(general(n, n, to))
		return nil
	})
	return []stack{x}, err
}

// numbers is the shape of one number for each matrix.
func numbers(shapes [][]int) [][]int { return [][]int{shapes[0][:len(shapes[0])-2]} }

// dets calls f with the determinant of every matrix.
func dets(a stack, f func(i int, sign, fraction float64, exponent int)) error {
	if a.rows() == 0 {
		for i := range ir.Shape(a.batch()).Elems() {
			f(i, 1, 1, 0)
		}
		return nil
	}
	fs, err := factored(a, nil) // a singular matrix has a determinant
	for i := range fs {
		sign, fraction, exponent := fs[i].det()
		f(i, sign, fraction, exponent)
	}
	return err
}

func det(in []stack) ([]stack, error) {
	r := newStack(in[0].batch())
	err := dets(in[0], func(i int, sign, fraction float64, exponent int) {
		r.data[i] = sign * math.Ldexp(fraction, exponent)
	})
	return []stack{r}, err
}

func slogDet(in []stack) ([]stack, error) {
	s, l := newStack(in[0].batch()), newStack(in[0].batch())
	err := dets(in[0], func(i int, sign, fraction float64, exponent int) {
		s.data[i] = sign
		l.data[i] = math.Log(fraction) + float64(float64(exponent)*math.Ln2)
	})
	return []stack{s, l}, err
}
