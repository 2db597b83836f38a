package linalg_test

import (
	"errors"
	"math"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/linalg"
)

// TestDerivativesWhereValuesAreEqual: derivatives for equal or zero values, and of determinants of
// singular matrices. Formulas with quotients of values would give NaN or an error.
func TestDerivativesWhereValuesAreEqual(t *testing.T) {
	values := func(x *T) *T { _, s, _ := linalg.SVD(x); return s }
	eigen := func(x *T) *T { w, _ := linalg.Eigh(x); return w }
	eye := []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}
	for _, c := range []struct {
		name  string
		f     func(x *T) *T
		at    []float64
		shape []int
		want  []float64
	}{
		{"svd at I", values, eye, []int{3, 3}, eye},
		{"singular values at I", linalg.SingularValues, eye, []int{3, 3}, eye},
		{"squares of svd at 0", func(x *T) *T { return values(x).Square() }, make([]float64, 6), []int{2, 3}, make([]float64, 6)},
		{"squares of svd at 0, high", func(x *T) *T { return values(x).Square() }, make([]float64, 6), []int{3, 2}, make([]float64, 6)},
		{"squares of singular values at 0", func(x *T) *T { return linalg.SingularValues(x).Square() }, make([]float64, 4), []int{2, 2}, make([]float64, 4)},
		{"squares of svd", func(x *T) *T { return values(x).Square() }, []float64{3, 4, -4, 3}, []int{2, 2}, []float64{6, 8, -8, 6}},
		{"eigh at I", eigen, eye, []int{3, 3}, eye},
		{"eigvalsh at I", linalg.Eigvalsh, eye, []int{3, 3}, eye},
		{"eigvalsh of tiny ones", linalg.Eigvalsh, []float64{1e-130, 0, 0, 2e-130}, []int{2, 2}, []float64{1, 0, 0, 1}},
		{"squares of eigh at 0", func(x *T) *T { return eigen(x).Square() }, make([]float64, 4), []int{2, 2}, make([]float64, 4)},
		{"one vector, others' values equal", func(x *T) *T {
			_, v := linalg.Eigh(x)
			return v.Slice(millrace.All, millrace.At(2)).Square().Mul(millrace.FromSlice([]float64{1, 2, 3}))
		}, []float64{1, 0, 0, 0, 1, 0, 0, 0, 2}, []int{3, 3}, make([]float64, 9)},
		{"det of 1x1", linalg.Det, []float64{0}, []int{1, 1}, []float64{1}},
		{"det of rank 1 of 2", linalg.Det, []float64{1, 2, 2, 4}, []int{2, 2}, []float64{4, -2, -2, 1}},
		{"det of rank 2 of 3", linalg.Det, []float64{1, 2, 3, 4, 5, 6, 5, 7, 9}, []int{3, 3}, []float64{3, -6, 3, 3, -6, 3, -3, 6, -3}},
		{"det of rank 1 of 3", linalg.Det, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1}, []int{3, 3}, make([]float64, 9)},
		{"det of 0", linalg.Det, make([]float64, 4), []int{2, 2}, make([]float64, 4)},
		{"det beyond the range", linalg.Det, []float64{1e200, 0, 0, 2e200}, []int{2, 2}, []float64{2e200, 0, 0, 1e200}},
		{"det below the range", linalg.Det, []float64{1e-200, 0, 0, 2e-200}, []int{2, 2}, []float64{2e-200, 0, 0, 1e-200}},
		{"det of a stack", linalg.Det, []float64{1, 2, 2, 4, 1, 2, 3, 4}, []int{2, 2, 2}, []float64{4, -2, -2, 1, 4, -3, -2, 1}},
		{"svd of huge ones", values, []float64{1e200, 0, 0, 2e200}, []int{2, 2}, []float64{1, 0, 0, 1}},
	} {
		x := autodiff.Watch(millrace.FromSlice(c.at, c.shape...))
		g, err := autodiff.Grad(c.f(x).Sum(), x)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := millrace.Values[float64](g[0])
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		size := 0.0
		for _, v := range c.want {
			size = max(size, math.Abs(v))
		}
		for i, v := range got {
			if !(math.Abs(v-c.want[i]) <= 1e-14*max(size, 1e-300)+1e-15*size) && !(size == 0 && math.Abs(v) < 1e-14) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}

// TestUsedVectorsOfEqualValues: if the loss uses vectors of equal values, the derivative does not
// exist and is not finite.
func TestUsedVectorsOfEqualValues(t *testing.T) {
	x := autodiff.Watch(millrace.Eye(millrace.Float64, 2))
	w, v := linalg.Eigh(x)
	made := v.Mul(w.Square().Unsqueeze(0)).MatMul(v.T())
	g, err := autodiff.Grad(made.Mul(millrace.FromSlice([]float64{1, 2, 3, 4}, 2, 2)).Sum(), x)
	if err != nil {
		t.Fatal(err)
	}
	got, err := millrace.Values[float64](g[0])
	if err != nil || !math.IsNaN(got[1]) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestSecondDerivativesOfSingularDet: second derivatives of the determinant at singular matrices
// are those of the polynomial.
func TestSecondDerivativesOfSingularDet(t *testing.T) {
	det := func(in []*T) *T { return linalg.Det(in[0]).Sum() }
	poly := func(in []*T) *T {
		at := func(i, j int) *T { return in[0].Slice(millrace.At(i), millrace.At(j)) }
		minor := func(a, b int) *T { return at(1, a).Mul(at(2, b)).Sub(at(1, b).Mul(at(2, a))) }
		return at(0, 0).Mul(minor(1, 2)).Sub(at(0, 1).Mul(minor(0, 2))).Add(at(0, 2).Mul(minor(0, 1)))
	}
	dir := []*T{millrace.FromSlice([]float64{1, -2, 0.5, 3, 0.25, -1, 2, 1, 4}, 3, 3)}
	for _, v := range [][]float64{{1, 2, 3, 4, 5, 6, 5, 7, 9}, {1, 1, 1, 1, 1, 1, 1, 1, 1}, make([]float64, 9), {2, 0, 0, 0, 2, 0, 0, 0, 0}} {
		var hv [2][]float64
		for k, f := range []func(in []*T) *T{det, poly} {
			r, err := autodiff.HessianVectorProduct(f, []*T{millrace.FromSlice(v, 3, 3)}, dir)
			if err != nil {
				t.Fatal(err)
			}
			if hv[k], err = millrace.Values[float64](r[0]); err != nil {
				t.Fatal(err)
			}
		}
		for i := range hv[0] {
			if math.Abs(hv[0][i]-hv[1][i]) > 1e-12 {
				t.Errorf("at %v: %v, want %v", v, hv[0], hv[1])
				break
			}
		}
	}
}

// TestCofactorsOfFloat32: Float32 determinants leave the range early; their cofactors do not.
func TestCofactorsOfFloat32(t *testing.T) {
	for _, at := range []float32{1e-25, 1e20, 0} {
		x := autodiff.Watch(millrace.FromSlice([]float32{at, 0, 0, 2 * at}, 2, 2))
		g, err := autodiff.Grad(linalg.Det(x), x)
		if err != nil {
			t.Fatal(err)
		}
		got, err := millrace.Values[float32](g[0])
		if err != nil || got[0] != 2*at || got[1] != 0 || got[2] != 0 || got[3] != at {
			t.Errorf("at %v: %v, %v", at, got, err)
		}
	}
	x := autodiff.Watch(millrace.Ones(millrace.Float64, 2, 2))
	g, err := autodiff.Grad(linalg.Inverse(x).Sum(), x)
	if err == nil {
		_, err = millrace.Values[float64](g[0])
	}
	if !errors.Is(err, linalg.ErrSingular) {
		t.Errorf("inverse: %v", err)
	}
}
