package linalg_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/testing/optable"
	"github.com/millrace-go/millrace/linalg"
)

// spd makes a positive definite matrix of any matrix.
func spd(x *T) *T {
	return x.MatMul(x.Transpose(-1, -2)).Add(millrace.Eye(millrace.Float64, x.Dim(-2)))
}

func sym(x *T) *T { return x.Add(x.Transpose(-1, -2)) }

func one(f func(x *T) *T) func(in []*T) *T { return func(in []*T) *T { return f(in[0]) } }

// all makes one number to which all elements of the results contribute.
func all(ts ...*T) *T {
	sum := optable.Weigh(ts[0])
	for i, x := range ts[1:] {
		sum = sum.Add(optable.Weigh(x).MulScalar(0.3 + float64(i)))
	}
	return sum
}

var derivatives = []struct {
	name   string
	f      func(in []*T) *T
	shapes [][]int
}{
	{"solve", func(in []*T) *T { return all(linalg.Solve(in[0], in[1])) }, [][]int{{4, 4}, {4, 2}}},
	{"solve for a vector", func(in []*T) *T { return all(linalg.Solve(in[0], in[1])) }, [][]int{{3, 3}, {3}}},
	{"solve stacks", func(in []*T) *T { return all(linalg.Solve(in[0], in[1])) }, [][]int{{2, 1, 3, 3}, {4, 3, 2}}},
	{"solve a stack for a vector", func(in []*T) *T { return all(linalg.Solve(in[0], in[1])) }, [][]int{{2, 3, 3}, {3}}},
	{"solve with itself", func(in []*T) *T { return all(linalg.Solve(in[0], in[0].Square())) }, [][]int{{3, 3}}},
	{"least squares of high ones", func(in []*T) *T { return all(linalg.LeastSquares(in[0], in[1])) }, [][]int{{5, 3}, {5, 2}}},
	{"least squares of wide ones", func(in []*T) *T { return all(linalg.LeastSquares(in[0], in[1])) }, [][]int{{3, 5}, {3}}},
	{"least squares of stacks", func(in []*T) *T { return all(linalg.LeastSquares(in[0], in[1])) }, [][]int{{2, 1, 4, 3}, {3, 4, 2}}},
	{"least squares of a low rank", func(in []*T) *T { return all(linalg.LeastSquares(in[0].MatMul(in[1]), in[2])) }, [][]int{{5, 2}, {2, 4}, {5}}},
	{"pseudoinverse of high ones", one(func(x *T) *T { return all(linalg.PseudoInverse(x)) }), [][]int{{5, 3}}},
	{"pseudoinverse of wide ones", one(func(x *T) *T { return all(linalg.PseudoInverse(x)) }), [][]int{{2, 3, 4}}},
	{"pseudoinverse of a low rank", func(in []*T) *T { return all(linalg.PseudoInverse(in[0].MatMul(in[1]))) }, [][]int{{5, 2}, {2, 4}}},
	{"inverse", one(func(x *T) *T { return all(linalg.Inverse(x)) }), [][]int{{2, 3, 3}}},
	{"det", one(func(x *T) *T { return all(linalg.Det(x)) }), [][]int{{2, 3, 3}}},
	{"slogdet", one(func(x *T) *T { return all(list2(linalg.SlogDet(x))...) }), [][]int{{4, 4}}},
	{"cholesky", one(func(x *T) *T { return all(linalg.Cholesky(spd(x))) }), [][]int{{2, 4, 4}}},
	{"qr", one(func(x *T) *T { return all(list2(linalg.QR(x))...) }), [][]int{{5, 3}}},
	{"qr of stacks", one(func(x *T) *T { return all(list2(linalg.QR(x))...) }), [][]int{{2, 3, 3}}},
	{"eigh", one(func(x *T) *T {
		w, v := linalg.Eigh(sym(x))
		return all(w, v.Square())
	}), [][]int{{2, 4, 4}}},
	{"singular values", one(func(x *T) *T { return all(linalg.SingularValues(x)) }), [][]int{{2, 4, 3}}},
	{"eigvalsh", one(func(x *T) *T { return all(linalg.Eigvalsh(sym(x))) }), [][]int{{2, 3, 3}}},
	{"svd of high ones", one(svdSquares), [][]int{{5, 3}}},
	{"svd of wide ones", one(svdSquares), [][]int{{2, 3, 4}}},
	{"svd of squares", one(svdSquares), [][]int{{3, 3}}},
}

// svdSquares does not depend on the undetermined signs.
func svdSquares(x *T) *T {
	u, s, vt := linalg.SVD(x)
	return all(s, u.Square(), vt.Square(), u.MatMul(vt))
}

// TestDerivatives compares derivatives with central differences, and second derivatives along a
// direction with central differences of the first.
func TestDerivatives(t *testing.T) {
	for _, c := range derivatives {
		r := rand.New(rand.NewPCG(7, uint64(len(c.name))))
		make := func(v [][]float64) []*T {
			var ts []*T
			for i, x := range v {
				ts = append(ts, millrace.FromSlice(x, c.shapes[i]...))
			}
			return ts
		}
		var at, dir [][]float64
		for _, s := range c.shapes {
			n := 1
			for _, d := range s {
				n *= d
			}
			x, d := []float64{}, []float64{}
			for range n {
				x, d = append(x, r.NormFloat64()), append(d, r.NormFloat64())
			}
			at, dir = append(at, x), append(dir, d)
		}
		moved := func(h float64) []*T {
			var v [][]float64
			for i := range at {
				x := append([]float64{}, at[i]...)
				for k := range x {
					x[k] += float64(h * dir[i][k])
				}
				v = append(v, x)
			}
			return make(v)
		}
		grads := func(h float64) (loss float64, g [][]float64) {
			l, ts, err := autodiff.ValueAndGrad(c.f, moved(h)...)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if loss, err = millrace.Item[float64](l); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for i, x := range ts {
				v, err := millrace.Values[float64](x)
				if err != nil || len(v) != len(at[i]) {
					t.Fatalf("%s, derivative %d: %v, %v", c.name, i, x.Shape(), err)
				}
				g = append(g, v)
			}
			return loss, g
		}
		const h = 1e-5
		_, g := grads(0)
		l0, g0 := grads(-h)
		l1, g1 := grads(h)
		along, size := 0.0, 1.0
		for i := range g {
			for k := range g[i] {
				along += float64(g[i][k] * dir[i][k])
				size = max(size, math.Abs(float64(g[i][k]*dir[i][k])))
			}
		}
		if want := (l1 - l0) / (2 * h); !(math.Abs(along-want) <= 1e-6*size) {
			t.Errorf("%s: derivative %v, differences give %v", c.name, along, want)
		}
		hv, err := autodiff.HessianVectorProduct(c.f, make(at), make(dir))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for i, x := range hv {
			v, err := millrace.Values[float64](x)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			size := 1.0
			for _, y := range v {
				size = max(size, math.Abs(y))
			}
			for k := range v {
				if want := (g1[i][k] - g0[i][k]) / (2 * h); !(math.Abs(v[k]-want) <= 1e-5*size) {
					t.Errorf("%s: second derivative by operand %d, element %d: %v, differences give %v", c.name, i, k, v[k], want)
				}
			}
		}
	}
}

// TestSymmetricDerivatives: derivatives of operands that are read as symmetric are symmetric.
func TestSymmetricDerivatives(t *testing.T) {
	a := millrace.FromSlice([]float64{4, 1, 0.5, 1, 3, 0.2, 0.5, 0.2, 2}, 3, 3)
	for name, f := range map[string]func(x *T) *T{
		"cholesky": linalg.Cholesky,
		"eigh":     func(x *T) *T { w, _ := linalg.Eigh(x); return w },
	} {
		_, g, err := autodiff.ValueAndGrad(func(in []*T) *T { return optable.Weigh(f(in[0])) }, a)
		if err != nil {
			t.Fatal(err)
		}
		v, err := millrace.Values[float64](g[0])
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			for j := range 3 {
				if math.Abs(v[3*i+j]-v[3*j+i]) > 1e-14 {
					t.Errorf("%s: %v is not symmetric", name, v)
				}
			}
		}
	}
}

// TestNoDerivative: a derivative that does not exist carries an error.
func TestNoDerivative(t *testing.T) {
	grad := func(f func(x *T) *T, x *T) error {
		w := autodiff.Watch(x)
		g, err := autodiff.Grad(f(w).Sum(), w)
		if err != nil {
			return err
		}
		_, err = millrace.Values[float64](g[0])
		return err
	}
	wide := func(x *T) *T { _, r := linalg.QR(x); return r }
	if err := grad(wide, millrace.Normal(millrace.Float64, 1, 2, 3)); !errors.Is(err, millrace.ErrShape) {
		t.Errorf("qr of a wide matrix: %v", err)
	}
	slog := func(x *T) *T { _, l := linalg.SlogDet(x); return l }
	if err := grad(slog, millrace.Ones(millrace.Float64, 2, 2)); !errors.Is(err, linalg.ErrSingular) {
		t.Errorf("slogdet of a singular matrix: %v", err)
	}
	if err := grad(linalg.Inverse, millrace.Ones(millrace.Float64, 2, 2)); !errors.Is(err, linalg.ErrSingular) {
		t.Errorf("inverse of a singular matrix: %v", err)
	}
}
