package linalg_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/devicetest"
	"github.com/millrace-go/millrace/linalg"
	_ "github.com/millrace-go/millrace/runtime/webgpu"
)

type T = millrace.Tensor

// given is a line of testdata/numpy.json.
type given struct {
	Op, Error string
	In, Out   []array
}

type array struct {
	DType, Values string
	Shape         []int
	v             []float64
}

func cases(t *testing.T) (all []given) {
	t.Helper()
	data, err := os.ReadFile("testdata/numpy.json")
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		for _, list := range [][]array{all[i].In, all[i].Out} {
			for k := range list {
				for _, w := range strings.Fields(list[k].Values) {
					x, err := strconv.ParseFloat(w, 64)
					if err != nil {
						t.Fatal(err)
					}
					list[k].v = append(list[k].v, x)
				}
			}
		}
	}
	return all
}

func (a array) tensor(p millrace.Place) *T {
	x := millrace.FromSliceOn(p, append([]float64{}, a.v...), append([]int{}, a.Shape...)...)
	if a.DType == "float32" {
		return millrace.FromSliceOn(p, narrow(a.v), append([]int{}, a.Shape...)...)
	}
	return x
}

func narrow(v []float64) []float32 {
	f := make([]float32, len(v))
	for i, x := range v {
		f[i] = float32(x)
	}
	return f
}

var functions = map[string]func(in []*T) []*T{
	"solve":          func(in []*T) []*T { return []*T{linalg.Solve(in[0], in[1])} },
	"leastsquares":   func(in []*T) []*T { return []*T{linalg.LeastSquares(in[0], in[1])} },
	"pseudoinverse":  func(in []*T) []*T { return []*T{linalg.PseudoInverse(in[0])} },
	"inverse":        func(in []*T) []*T { return []*T{linalg.Inverse(in[0])} },
	"det":            func(in []*T) []*T { return []*T{linalg.Det(in[0])} },
	"slogdet":        func(in []*T) []*T { return list2(linalg.SlogDet(in[0])) },
	"cholesky":       func(in []*T) []*T { return []*T{linalg.Cholesky(in[0])} },
	"qr":             func(in []*T) []*T { return list2(linalg.QR(in[0])) },
	"eigvalsh":       func(in []*T) []*T { return []*T{linalg.Eigvalsh(in[0])} },
	"singularvalues": func(in []*T) []*T { return []*T{linalg.SingularValues(in[0])} },
	"eigh":           func(in []*T) []*T { return list2(linalg.Eigh(in[0])) },
	"svd": func(in []*T) []*T {
		u, s, vt := linalg.SVD(in[0])
		return []*T{u, s, vt}
	},
}

func list2(a, b *T) []*T { return []*T{a, b} }

// elements returns the elements of a float tensor as float64.
func elements(x *T) ([]float64, error) {
	if x.DType() == millrace.Float64 {
		return millrace.Values[float64](x)
	}
	f, err := millrace.Values[float32](x)
	v := make([]float64, len(f))
	for i := range f {
		v[i] = float64(f[i])
	}
	return v, err
}

var open = devicetest.Open

// TestNumPy compares with numpy.linalg: numbers and unique factors directly, vectors up to their
// sign, and all factorizations by multiplying the factors. An op computes the operands, and another
// op follows.
func TestNumPy(t *testing.T) {
	for _, spec := range []string{"cpu", "webgpu"} {
		t.Run(spec, func(t *testing.T) {
			d := open(t, spec)
			ran, worst := map[string]int{}, map[string]float64{}
			for _, c := range cases(t) {
				dt := millrace.Float64
				if c.In[0].DType == "float32" {
					dt = millrace.Float32
				}
				if !d.Supports(dt) {
					continue
				}
				var in []*T
				for _, a := range c.In {
					x := a.tensor(d)
					in = append(in, x.MulScalar(0.5).MulScalar(2))
				}
				out := functions[c.Op](in)
				if e := compare(t, &c, dt, out); e > worst[c.Op+" "+dt.String()] {
					worst[c.Op+" "+dt.String()] = e
				}
				ran[c.Op]++
			}
			for op := range functions {
				if ran[op] == 0 {
					t.Errorf("no case of %s ran", op)
				}
			}
			t.Log("largest differences:", worst)
		})
	}
}

var noAnswer = map[string]error{
	"Singular matrix":                 linalg.ErrSingular,
	"Matrix is not positive definite": linalg.ErrNotPositiveDefinite,
}

// compare returns the largest difference, relative to the largest element of the result.
func compare(t *testing.T, c *given, dt millrace.DType, out []*T) (worst float64) {
	t.Helper()
	name := fmt.Sprintf("%s of %v%v", c.Op, dt, c.In[0].Shape)
	if c.Error != "" {
		for _, r := range out {
			want := noAnswer[c.Error]
			if want == nil || !errors.Is(r.Err(), want) {
				t.Errorf("%s: %v, want %v (%s)", name, r.Err(), want, c.Error)
			}
		}
		return 0
	}
	got := make([]array, len(out))
	for k, r := range out {
		v, err := elements(r.MulScalar(2).MulScalar(0.5))
		if err != nil {
			t.Errorf("%s, result %d: %v", name, k, err)
			return 0
		}
		got[k] = array{v: v, Shape: r.Shape()}
		if r.DType() != dt || !slices.Equal(r.Shape(), append([]int{}, c.Out[k].Shape...)) {
			t.Errorf("%s, result %d: %v%v, want %v%v", name, k, r.DType(), r.Shape(), dt, c.Out[k].Shape)
			return 0
		}
	}
	tol := 1e-12
	if dt == millrace.Float32 {
		tol = 2.5e-7
	}
	want := c.Out
	if u := unique[c.Op]; u != nil {
		want = u(got, c.Out)
		product(t, name, c, got, 10*tol)
	}
	for k := range got {
		scale := 0.0
		for _, w := range want[k].v {
			if !math.IsInf(w, 0) {
				scale = max(scale, math.Abs(w))
			}
		}
		if dt == millrace.Float32 && scale > math.MaxFloat32 {
			want[k].v = slices.Clone(want[k].v)
			for i, w := range want[k].v {
				want[k].v[i] = float64(float32(w))
			}
		}
		loose := tol
		if slices.Contains(c.In[0].v, 1/3.0) { // Hilbert's matrix has a condition of 5e5
			loose = 1e5 * tol
		}
		for i, w := range want[k].v {
			g := got[k].v[i]
			if g == w || math.IsNaN(g) && math.IsNaN(w) {
				continue
			}
			e := math.Abs(g-w) / scale
			if !(e <= loose) {
				t.Errorf("%s, result %d, element %d: %v, want %v", name, k, i, g, w)
				return worst
			}
			if loose == tol {
				worst = max(worst, e)
			}
		}
	}
	return worst
}

// unique adjusts the wanted result: it takes over the signs that were chosen, and the actual values
// where the result is not unique.
var unique = map[string]func(got, want []array) []array{
	"qr": func(got, want []array) []array {
		q, r := clone(want[0]), clone(want[1])
		each(r.Shape, func(b, k, n int) {
			m := q.Shape[len(q.Shape)-2]
			sure := true
			for j := range k {
				x := r.v[(b*k+j)*n+j]
				sure = sure && math.Abs(x) > 1e-6
				sign := math.Copysign(1, x) * math.Copysign(1, got[1].v[(b*k+j)*n+j])
				for i := range n {
					r.v[(b*k+j)*n+i] *= sign
				}
				for i := range m {
					if q.v[(b*m+i)*k+j] *= sign; !sure {
						q.v[(b*m+i)*k+j] = got[0].v[(b*m+i)*k+j]
					}
				}
				if !sure {
					copy(r.v[(b*k+j)*n:(b*k+k)*n], got[1].v[(b*k+j)*n:])
				}
			}
		})
		return []array{q, r}
	},
	"eigh": func(got, want []array) []array {
		v := clone(want[1])
		each(v.Shape, func(b, n, _ int) {
			signs(n, want[0].v[b*n:(b+1)*n], func(j, i int) *float64 { return &v.v[(b*n+i)*n+j] }, n,
				func(j, i int) float64 { return got[1].v[(b*n+i)*n+j] })
		})
		return []array{want[0], v}
	},
	"svd": func(got, want []array) []array {
		u, vt := clone(want[0]), clone(want[2])
		m := u.Shape[len(u.Shape)-2]
		each(vt.Shape, func(b, k, n int) {
			s := want[1].v[b*k : (b+1)*k]
			signs(k, s, func(j, i int) *float64 { return &u.v[(b*m+i)*k+j] }, m, func(j, i int) float64 { return got[0].v[(b*m+i)*k+j] })
			signs(k, s, func(j, i int) *float64 { return &vt.v[(b*k+j)*n+i] }, n, func(j, i int) float64 { return got[2].v[(b*k+j)*n+i] })
		})
		return []array{u, want[1], vt}
	},
}

// signs flips vectors with the opposite sign of the actual ones. It skips the vectors of values
// that are nearly equal.
func signs(k int, values []float64, at func(j, i int) *float64, n int, got func(j, i int) float64) {
	for j := range k {
		dot, apart := 0.0, math.Abs(values[j]) > 1e-6
		for o, x := range values {
			apart = apart && (o == j || math.Abs(x-values[j]) > 1e-3*math.Abs(values[j]))
		}
		for i := range n {
			dot += float64(*at(j, i) * got(j, i))
		}
		for i := range n {
			if *at(j, i) *= math.Copysign(1, dot); !apart {
				*at(j, i) = got(j, i)
			}
		}
	}
}

func clone(a array) array { return array{v: slices.Clone(a.v), Shape: a.Shape} }

// each calls f for every matrix of a shape.
func each(shape []int, f func(b, rows, columns int)) {
	r := len(shape)
	n := 1
	for _, d := range shape[:r-2] {
		n *= d
	}
	if shape[r-1]*shape[r-2] == 0 {
		return
	}
	for b := range n {
		f(b, shape[r-2], shape[r-1])
	}
}

// product multiplies factors, and checks that they are orthonormal.
func product(t *testing.T, name string, c *given, got []array, tol float64) {
	t.Helper()
	var left, right array
	ortho := []array{got[0]}
	switch c.Op {
	case "qr":
		left, right = got[0], got[1]
	case "eigh":
		left, right = scaled(got[1], got[0].v), turned(got[1])
		ortho = []array{got[1]}
	case "svd":
		left, right = scaled(got[0], got[1].v), got[2]
		ortho = []array{got[0], turned(got[2])}
	}
	lower := c.Op == "eigh"
	a := c.In[0]
	r := len(a.Shape)
	k := left.Shape[r-1]
	each(a.Shape, func(b, m, n int) {
		for i := range m {
			for j := range n {
				sum := 0.0
				for x := range k {
					sum += float64(left.v[(b*m+i)*k+x] * right.v[(b*k+x)*n+j])
				}
				if w := a.v[(b*m+i)*n+j]; !(lower && j > i) && !(math.Abs(sum-w) <= tol*max(1, math.Abs(w))) {
					t.Errorf("%s: the factors' product has %v at %d, %d, want %v", name, sum, i, j, w)
				}
			}
		}
	})
	for _, q := range ortho {
		each(q.Shape, func(b, m, k int) {
			for i := range k {
				for j := range k {
					dot := 0.0
					for x := range m {
						dot += float64(q.v[(b*m+x)*k+i] * q.v[(b*m+x)*k+j])
					}
					if i == j {
						dot--
					}
					if !(math.Abs(dot) <= tol) {
						t.Errorf("%s: columns %d and %d are not orthonormal: %v", name, i, j, dot)
					}
				}
			}
		})
	}
}

// scaled multiplies the columns of a matrix.
func scaled(a array, by []float64) array {
	r := clone(a)
	each(a.Shape, func(b, m, k int) {
		for i := range m {
			for j := range k {
				r.v[(b*m+i)*k+j] *= by[b*k+j]
			}
		}
	})
	return r
}

// turned transposes every matrix.
func turned(a array) array {
	r := clone(a)
	n := len(a.Shape)
	r.Shape = slices.Clone(a.Shape)
	r.Shape[n-1], r.Shape[n-2] = a.Shape[n-2], a.Shape[n-1]
	each(a.Shape, func(b, m, k int) {
		for i := range m {
			for j := range k {
				r.v[(b*k+j)*m+i] = a.v[(b*m+i)*k+j]
			}
		}
	})
	return r
}
