package linalg_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/linalg"
)

// TestPlace: results go to the operands' place: into the innermost scope of any operand, on its
// stream.
func TestPlace(t *testing.T) {
	d := open(t, "cpu")
	s := d.NewStream()
	eye := millrace.EyeOn(s, millrace.Float64, 2)
	var inner, outer *T
	err := d.Scope(func(sc *millrace.Scope) error {
		b := millrace.OnesOn(sc, millrace.Float64, 2)
		outer = linalg.Solve(eye, b)
		return sc.Scope(func(in *millrace.Scope) error {
			inner = linalg.Solve(millrace.EyeOn(in, millrace.Float64, 2), b)
			_, err := millrace.Values[float64](inner.Add(outer))
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*T{inner, outer} {
		if !errors.Is(x.Err(), millrace.ErrReleased) {
			t.Errorf("after the scope: %v", x.Err())
		}
	}
	x := linalg.Solve(millrace.EyeOn(d, millrace.Float64, 2), millrace.OnesOn(s, millrace.Float64, 2))
	if v, err := millrace.Values[float64](x); err != nil || !slices.Equal(v, []float64{1, 1}) {
		t.Errorf("operands of two streams: %v, %v", v, err)
	}
	if err := x.To(s).Err(); err != nil {
		t.Error(err)
	}
}

// TestSet: a result uses the operand's value at the time of the call, even if Set is called later
// or meanwhile.
func TestSet(t *testing.T) {
	d := open(t, "cpu")
	a := millrace.EyeOn(d, millrace.Float64, 3)
	x := linalg.Inverse(a)
	a.Set(millrace.ZerosOn(d, millrace.Float64, 4, 4))
	if v, err := millrace.Values[float64](x.Sum()); err != nil || v[0] != 3 {
		t.Errorf("%v, %v", v, err)
	}
	w := millrace.EyeOn(d, millrace.Float64, 3)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 200 {
			w.Set(millrace.EyeOn(d, millrace.Float64, 2+i%3))
		}
	})
	for range 200 {
		if err := linalg.Inverse(w).Err(); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}

// TestRecording: a Recording's function that solves is called in every run.
func TestRecording(t *testing.T) {
	d := open(t, "cpu")
	calls := 0
	step := millrace.NewRecording(func(_ *millrace.Scope, in []*T) ([]*T, error) {
		calls++
		return []*T{linalg.Solve(in[0].AddScalar(1), in[1]).MulScalar(2)}, nil
	})
	for i := range 4 {
		k := float64(i)
		a := millrace.FromSliceOn(d, []float64{k, -1, -1, 1}, 2, 2) // and 1: the diagonal is k+1, 2
		out, err := step.Run(nil, a, millrace.FromSliceOn(d, []float64{1, 4}, 2))
		if err != nil {
			t.Fatal(err)
		}
		if v, err := millrace.Values[float64](out[0]); err != nil || v[1] != 4 || math.Abs(v[0]-2/(k+1)) > 1e-15 {
			t.Errorf("run %d: %v, %v", i, v, err)
		}
	}
	if calls != 4 {
		t.Errorf("%d calls", calls)
	}
}

// TestLarge: large matrices, and stacks that several cores share, are checked by multiplying the
// factors. Results do not depend on the device's options.
func TestLarge(t *testing.T) {
	var bits [][]float64
	for _, spec := range []string{"cpu", "cpu:fusion=off,compile=off,threads=1"} {
		d := open(t, spec)
		r := rand.New(rand.NewPCG(3, 4))
		normal := func(shape ...int) *T {
			n := 1
			for _, k := range shape {
				n *= k
			}
			v := make([]float64, n)
			for i := range v {
				v[i] = r.NormFloat64()
			}
			return millrace.FromSliceOn(d, v, shape...)
		}
		tr := func(x *T) *T { return x.Transpose(-1, -2) }
		var all []float64
		near := func(what string, x, y *T) {
			t.Helper()
			worst, err := millrace.Item[float64](x.Sub(y).Abs().Max())
			if err != nil || !(worst <= 1e-10) {
				t.Errorf("%s: off by %v, %v", what, worst, err)
			}
		}
		keep := func(x *T) *T {
			v, err := millrace.Values[float64](x)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, v...)
			return x
		}
		for _, shape := range [][]int{{170, 150}, {150, 170}, {40, 20, 21}, {4, 3, 30, 20}} {
			a := normal(shape...)
			k := min(a.Dim(-1), a.Dim(-2))
			one := millrace.EyeOn(d, millrace.Float64, k)
			q, rr := linalg.QR(a)
			near("q·r", keep(q).MatMul(keep(rr)), a)
			near("qᵀ·q", tr(q).MatMul(q).Sub(one), q.Sum().MulScalar(0))
			u, s, vt := linalg.SVD(a)
			near("singular values", keep(linalg.SingularValues(a)), s)
			near("u·s·vt", keep(u).Mul(keep(s).Unsqueeze(-2)).MatMul(keep(vt)), a)
			g := tr(a).MatMul(a)
			w, v := linalg.Eigh(g)
			near("eigenvalues", keep(linalg.Eigvalsh(g)), w)
			near("v·w·vᵀ", keep(v).Mul(keep(w).Unsqueeze(-2)).MatMul(tr(v)), g)
			p := g.Add(millrace.EyeOn(d, millrace.Float64, a.Dim(-1)))
			l := keep(linalg.Cholesky(p))
			near("l·lᵀ", l.MatMul(tr(l)), p)
			near("p·x", p.MatMul(keep(linalg.Solve(p, tr(a)))), tr(a))
			near("p·p⁻¹", p.MatMul(linalg.Inverse(p)).Sub(millrace.EyeOn(d, millrace.Float64, a.Dim(-1))), p.Sum().MulScalar(0))
			_, logabs := linalg.SlogDet(p)
			near("log det", keep(logabs), w.AddScalar(1).Log().Sum(-1))
		}
		bits = append(bits, all)
	}
	if !slices.Equal(bits[0], bits[1]) {
		t.Error("the bits differ")
	}
}
