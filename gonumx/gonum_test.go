package gonumx_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/gonumx"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

func numbers(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(i + 1)
	}
	return v
}

// own is a matrix of the program's.
type own struct{ r, c int }

func (m own) Dims() (int, int)    { return m.r, m.c }
func (m own) At(i, j int) float64 { return float64(10*i + j) }
func (m own) T() mat.Matrix       { return mat.Transpose{Matrix: m} }

// Matrices of every layout come in as At gives them, and go out the same.
func TestMatrices(t *testing.T) {
	dense := mat.NewDense(4, 5, numbers(20))
	part := dense.Slice(1, 3, 1, 4)
	vector := mat.NewVecDense(4, numbers(4))
	column := dense.ColView(2) // with gaps
	raw := &mat.Dense{}
	raw.SetRawMatrix(blas64.General{Rows: 2, Cols: 2, Stride: 3, Data: numbers(5)})
	tri := mat.NewTriDense(3, mat.Lower, numbers(9))
	for name, m := range map[string]mat.Matrix{
		"dense": dense, "transposed": dense.T(), "twice transposed": mat.Transpose{Matrix: dense.T()},
		"part": part, "transposed part": part.T(), "one row of many": dense.Slice(2, 3, 0, 4), "with a stride": raw,
		"vector": vector, "row": vector.T(), "vector as row": vector.TVec(), "column": column, "row of a column": column.T(),
		"part of a column": mat.Matrix(column.(*mat.VecDense).SliceVec(1, 3)),
		"symmetric":        mat.NewSymDense(3, numbers(9)),
		"triangular":       tri, "transposed triangle": tri.TTri(),
		"band": mat.NewBandDense(4, 5, 1, 2, numbers(16)), "transposed band": mat.NewBandDense(4, 5, 1, 2, numbers(16)).TBand(),
		"symmetric band": mat.NewSymBandDense(4, 1, numbers(8)), "diagonal": mat.NewDiagDense(3, numbers(3)),
		"tridiagonal": mat.NewTridiag(3, numbers(2), numbers(3), numbers(2)), "own": own{3, 2}, "own transposed": own{3, 2}.T(),
		"triangular band": mat.NewTriBandDense(4, 1, mat.Upper, numbers(8)),
		"special":         mat.NewDense(1, 3, []float64{math.Inf(1), math.Copysign(0, -1), 5e-324}),
		"empty":           &mat.Dense{}, "empty, transposed": (&mat.Dense{}).T(), "empty vector": &mat.VecDense{},
	} {
		x := gonumx.FromMatrix(m)
		r, c := m.Dims()
		if x.Err() != nil || x.DType() != millrace.Float64 || fmt.Sprint(x.Shape()) != fmt.Sprint([]int{r, c}) {
			t.Errorf("%s: %v%v, want %d by %d: %v", name, x.DType(), x.Shape(), r, c, x.Err())
			continue
		}
		v, err := millrace.Values[float64](x)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r*c == 0 && r != c { // an empty vector has a column
			continue
		}
		back, err := gonumx.Matrix(x)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range r {
			for j := range c {
				w := m.At(i, j)
				if math.Float64bits(v[i*c+j]) != math.Float64bits(w) || math.Float64bits(back.At(i, j)) != math.Float64bits(w) {
					t.Errorf("%s at %d, %d: %v and %v, want %v", name, i, j, v[i*c+j], back.At(i, j), w)
				}
			}
		}
		if br, bc := back.Dims(); br != r || bc != c {
			t.Errorf("%s comes back as %d by %d", name, br, bc)
		}
	}
	x := gonumx.FromMatrix(dense)
	dense.Set(0, 0, 99)
	back, err := gonumx.Matrix(x)
	if err != nil || back.At(0, 0) != 1 {
		t.Errorf("the tensor changed with the matrix: %v", err)
	}
	back.Set(0, 0, 98)
	if v, _ := millrace.Values[float64](x); v[0] != 1 {
		t.Error("the tensor changed with its copy")
	}
}

// Views of tensors are matrices as they look.
func TestViews(t *testing.T) {
	x := millrace.FromSlice(numbers(24), 4, 6)
	for name, v := range map[string]*millrace.Tensor{
		"transposed": x.T(), "columns": x.Slice(millrace.All, millrace.R(1, 6, 2)), "backwards": x.Flip(0, 1),
		"expanded": x.Slice(millrace.R(0, 1)).Expand(3, 6), "computed": x.Exp(), "float32": x.Cast(millrace.Float32).T(),
	} {
		m, err := gonumx.Matrix(v)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		w, err := millrace.Values[float64](v.Cast(millrace.Float64))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.RawMatrix().Data; fmt.Sprint(got) != fmt.Sprint(w) {
			t.Errorf("%s: %v, want %v", name, got, w)
		}
	}
}

// A dense matrix takes no memory of Go's heap on its way in, and its elements once on the way out.
func TestCopies(t *testing.T) {
	const n = 1 << 9
	m := mat.NewDense(n, n, nil)
	x := gonumx.FromMatrix(m)
	if err := x.Eval(); err != nil {
		t.Fatal(err)
	}
	heap := func(f func()) uint64 {
		var a, b runtime.MemStats
		runtime.ReadMemStats(&a)
		f()
		runtime.ReadMemStats(&b)
		return b.TotalAlloc - a.TotalAlloc
	}
	const size = 8 * n * n
	for name, c := range map[string]struct {
		f   func()
		max uint64
	}{
		"in":             {func() { gonumx.FromMatrix(m).Eval() }, size / 4},
		"in, transposed": {func() { gonumx.FromMatrix(m.T()) }, size / 4},
		"out":            {func() { gonumx.Matrix(x) }, size + size/4},
	} {
		c.f()
		if got := heap(c.f); got > c.max {
			t.Errorf("%s: %d bytes of %d", name, got, size)
		}
	}
}

func TestBadInput(t *testing.T) {
	line := func() int { _, _, n, _ := runtime.Caller(1); return n }
	bad := func(err error, n int, want error) {
		t.Helper()
		var op *millrace.OpError
		if !errors.As(err, &op) || !strings.HasSuffix(op.Caller, fmt.Sprintf("gonum_test.go:%d", n)) || want != nil && !errors.Is(err, want) {
			t.Errorf("%v, want %v of line %d", err, want, n)
		}
	}
	matrix := func(x *millrace.Tensor) error { _, err := gonumx.Matrix(x); return err }
	bad(gonumx.FromMatrix(nil).Err(), line(), nil)
	bad(gonumx.FromMatrix((*mat.Dense)(nil)).Err(), line(), nil)
	bad(gonumx.FromMatrix(mat.Transpose{}).Err(), line(), nil)
	bad(gonumx.FromMatrixOn(nil, mat.NewDense(1, 1, nil)).Err(), line(), nil)
	bad(gonumx.FromMatrix(own{-1, 2}).Err(), line(), millrace.ErrShape)
	tooMuch := millrace.ErrOutOfMemory
	if strconv.IntSize == 32 { // these cannot even be counted
		tooMuch = millrace.ErrShape
	}
	bad(gonumx.FromMatrix(own{1 << 29, 1 << 29}).Err(), line(), tooMuch)
	band := mat.NewBandDense(1<<24, 1<<24, 0, 0, make([]float64, 1<<24))
	bad(gonumx.FromMatrix(band).Err(), line(), tooMuch)
	for _, c := range []struct {
		x    *millrace.Tensor
		want error
	}{
		{nil, nil}, {new(millrace.Tensor), nil}, {millrace.Ones(millrace.Float64, 2), millrace.ErrShape},
		{millrace.Ones(millrace.Float64, 2, 2, 2), millrace.ErrShape}, {millrace.Ones(millrace.Float64, 0, 2), millrace.ErrShape},
		{millrace.Ones(millrace.Int32, 2, 2), millrace.ErrDType}, {millrace.Ones(millrace.Float64, 2, 2).Add(millrace.Ones(millrace.Float64, 3)), millrace.ErrShape},
	} {
		err := matrix(c.x)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), "gonum_test.go:") {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
}

// A matrix of gonum multiplied by a tensor, and back.
func Example() {
	m := mat.NewDense(2, 2, []float64{1, 2, 3, 4})
	x := gonumx.FromMatrix(m.T())
	y, err := gonumx.Matrix(x.MatMul(x).AddScalar(0.5))
	fmt.Println(mat.Formatted(y), err)
	// Output:
	// ⎡ 7.5  15.5⎤
	// ⎣10.5  22.5⎦ <nil>
}
