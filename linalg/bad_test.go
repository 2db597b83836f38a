package linalg_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/linalg"
)

func line() int {
	_, _, n, _ := runtime.Caller(1)
	return n
}

// TestBadInput: bad operands give tensors that carry an error with the program's line, and the
// device stays usable.
func TestBadInput(t *testing.T) {
	d := open(t, "cpu")
	other := open(t, "cpu:tier=0")
	f := func(shape ...int) *T { return millrace.OnesOn(d, millrace.Float64, shape...) }
	released := f(2, 2)
	released.Release()
	broken := f(2, 2).Add(f(3, 3))
	h := millrace.OnesOn(d, millrace.Float16, 2, 2)
	nan := millrace.FromSliceOn(d, []float64{1, math.NaN(), math.Inf(1), 2}, 2, 2)
	stack := millrace.FromSliceOn(d, []float64{1, 0, 0, 1, 0, 0, 0, 0, 1, 2, 2, 4}, 3, 1, 2, 2)
	shape, dtype := millrace.ErrShape, millrace.ErrDType
	tooMuch := millrace.ErrOutOfMemory
	if strconv.IntSize == 32 { // these cannot even be counted
		tooMuch = shape
	}
	two := func(a, b *T) *T {
		if a.Err() == nil || b.Err() == nil {
			t.Errorf("results without errors: %v, %v", a.Err(), b.Err())
		}
		return b
	}
	three := func(a, b, c *T) *T { return two(a, two(b, c)) }
	if err := linalg.Det(f(math.MaxInt/9, 0, 0)).Err(); !errors.Is(err, millrace.ErrOutOfMemory) {
		t.Errorf("more determinants than there is memory: %v", err)
	}
	for _, c := range []struct {
		op   string
		call func() (*T, int)
		want error
	}{
		{"solve", func() (*T, int) { return linalg.Solve(nil, f(2)), line() }, nil},
		{"solve", func() (*T, int) { return linalg.Solve(f(2, 2), new(T)), line() }, nil},
		{"solve", func() (*T, int) { return linalg.Solve(f(2, 2), released), line() }, millrace.ErrReleased},
		{"solve", func() (*T, int) { return linalg.Solve(f(2, 3), f(2)), line() }, shape},
		{"solve", func() (*T, int) { return linalg.Solve(f(2), f(2)), line() }, shape},
		{"solve", func() (*T, int) { return linalg.Solve(f(), f()), line() }, shape},
		{"solve", func() (*T, int) { return linalg.Solve(f(2, 2), f()), line() }, shape},
		{"solve", func() (*T, int) { return linalg.Solve(f(2, 2), f(3)), line() }, shape},
		{"solve", func() (*T, int) { return linalg.Solve(f(2, 2, 2), f(3, 2, 1)), line() }, shape},
		{"solve", func() (*T, int) { return linalg.Solve(f(1<<20, 1, 1, 1), f(1<<20, 1, 1)), line() }, tooMuch},
		{"solve", func() (*T, int) { return linalg.Solve(f(2, 2), f(2).Cast(millrace.Float32)), line() }, dtype},
		{"solve", func() (*T, int) { return linalg.Solve(h, h), line() }, dtype},
		{"solve", func() (*T, int) {
			return linalg.Solve(f(2, 2), millrace.OnesOn(other, millrace.Float64, 2)), line()
		}, millrace.ErrUnsupported},
		{"solve", func() (*T, int) { return linalg.Solve(f(2, 2), f(2)), line() }, linalg.ErrSingular},
		{"inverse", func() (*T, int) { return linalg.Inverse(stack), line() }, linalg.ErrSingular},
		{"inverse", func() (*T, int) { return linalg.Inverse(f(2, 3)), line() }, shape},
		{"inverse", func() (*T, int) { return linalg.Inverse(released), line() }, millrace.ErrReleased},
		{"det", func() (*T, int) { return linalg.Det(f(3)), line() }, shape},
		{"det", func() (*T, int) { return linalg.Det(f(math.MaxInt/9, 16, 0, 0)), line() }, shape},
		{"slogdet", func() (*T, int) { return two(linalg.SlogDet(f(3, 2))), line() }, shape},
		{"cholesky", func() (*T, int) { return linalg.Cholesky(stack.Cast(millrace.Int32)), line() }, dtype},
		{"cholesky", func() (*T, int) { return linalg.Cholesky(nan), line() }, linalg.ErrNotPositiveDefinite},
		{"cholesky", func() (*T, int) { return linalg.Cholesky(f(2, 2).Neg()), line() }, linalg.ErrNotPositiveDefinite},
		{"qr", func() (*T, int) { return two(linalg.QR(f(2))), line() }, shape},
		{"qr", func() (*T, int) { return two(linalg.QR(nil)), line() }, nil},
		{"leastsquares", func() (*T, int) { return linalg.LeastSquares(f(3, 2), f(2)), line() }, shape},
		{"leastsquares", func() (*T, int) { return linalg.LeastSquares(f(3), f(3)), line() }, shape},
		{"leastsquares", func() (*T, int) { return linalg.LeastSquares(f(2, 3, 2), f(3, 3, 1)), line() }, shape},
		{"leastsquares", func() (*T, int) { return linalg.LeastSquares(f(1<<20, 1, 1, 1), f(1<<20, 1, 1)), line() }, tooMuch},
		{"leastsquares", func() (*T, int) { return linalg.LeastSquares(nan, f(2)), line() }, linalg.ErrNotFinite},
		{"leastsquares", func() (*T, int) { return linalg.LeastSquares(f(3, 2), f(3).Cast(millrace.Float32)), line() }, dtype},
		{"leastsquares", func() (*T, int) { return linalg.LeastSquares(f(3, 2), nil), line() }, nil},
		{"pseudoinverse", func() (*T, int) { return linalg.PseudoInverse(nan), line() }, linalg.ErrNotFinite},
		{"pseudoinverse", func() (*T, int) { return linalg.PseudoInverse(f(3)), line() }, shape},
		{"pseudoinverse", func() (*T, int) { return linalg.PseudoInverse(h), line() }, dtype},
		{"svd", func() (*T, int) { return three(linalg.SVD(nan)), line() }, linalg.ErrNotFinite},
		{"svd", func() (*T, int) { return three(linalg.SVD(f())), line() }, shape},
		{"singularvalues", func() (*T, int) { return linalg.SingularValues(nan), line() }, linalg.ErrNotFinite},
		{"singularvalues", func() (*T, int) { return linalg.SingularValues(f()), line() }, shape},
		{"eigvalsh", func() (*T, int) { return linalg.Eigvalsh(nan), line() }, linalg.ErrNotFinite},
		{"eigvalsh", func() (*T, int) { return linalg.Eigvalsh(f(2, 3)), line() }, shape},
		{"eigh", func() (*T, int) { return two(linalg.Eigh(nan)), line() }, linalg.ErrNotFinite},
		{"eigh", func() (*T, int) { return two(linalg.Eigh(f(2, 3))), line() }, shape},
	} {
		r, n := c.call()
		err := r.Err()
		var op *millrace.OpError
		if !errors.As(err, &op) || op.Op != c.op || !strings.HasSuffix(op.Caller, fmt.Sprintf("bad_test.go:%d", n)) && c.want != millrace.ErrReleased {
			t.Errorf("%s: %v, want one of line %d", c.op, err, n)
		}
		if c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.op, err, c.want)
		}
		if _, err := millrace.Values[float64](r); err == nil {
			t.Errorf("%s: read after %v", c.op, r.Err())
		}
	}
	one := func(f func(*T) *T) func(*T) (*T, int) { return func(x *T) (*T, int) { return f(x), line() } }
	for op, call := range map[string]func(*T) (*T, int){
		"solve":          func(x *T) (*T, int) { return linalg.Solve(x, x), line() },
		"leastsquares":   func(x *T) (*T, int) { return linalg.LeastSquares(x, x), line() },
		"inverse":        one(linalg.Inverse),
		"det":            one(linalg.Det),
		"slogdet":        func(x *T) (*T, int) { return two(linalg.SlogDet(x)), line() },
		"cholesky":       one(linalg.Cholesky),
		"qr":             func(x *T) (*T, int) { return two(linalg.QR(x)), line() },
		"svd":            func(x *T) (*T, int) { return three(linalg.SVD(x)), line() },
		"eigh":           func(x *T) (*T, int) { return two(linalg.Eigh(x)), line() },
		"eigvalsh":       one(linalg.Eigvalsh),
		"singularvalues": one(linalg.SingularValues),
		"pseudoinverse":  one(linalg.PseudoInverse),
	} {
		for _, c := range []struct {
			x    *T
			want error
		}{
			{millrace.OnesOn(d, millrace.Bool, 2, 2), dtype}, {millrace.OnesOn(d, millrace.Int32, 2, 2), dtype}, {millrace.OnesOn(d, millrace.Uint64, 3, 2, 2), dtype},
			{h, dtype}, {h.Cast(millrace.BFloat16), dtype}, {f(), shape}, {f(2), shape}, {nil, nil}, {new(T), nil}, {released, millrace.ErrReleased}, {broken, shape},
		} {
			r, n := call(c.x)
			var op2 *millrace.OpError
			err := r.Err()
			if !errors.As(err, &op2) || c.want != nil && !errors.Is(err, c.want) || c.x != released && c.x != broken && (op2.Op != op || !strings.HasSuffix(op2.Caller, fmt.Sprintf("bad_test.go:%d", n))) {
				t.Errorf("%s: %v, want %v of line %d", op, err, c.want, n)
			}
		}
	}
	if r := linalg.Det(broken); r.Err() == nil || r.Err().Error() != broken.Err().Error() {
		t.Errorf("det of an error: %v, want %v", r.Err(), broken.Err())
	}
	if err := linalg.Inverse(stack).Err(); err == nil || !strings.Contains(err.Error(), "matrix [1 0]") {
		t.Errorf("the singular matrix is not named: %v", err)
	}
	for d.Sync(context.Background()) != nil { // each error is reported once
	}
	if v, err := millrace.Item[float64](linalg.Det(f(1, 1).MulScalar(3))); err != nil || v != 3 {
		t.Errorf("after errors: %v, %v", v, err)
	}
}

// TestHostileElements: elements that are not finite, huge, tiny or equal never hang or panic,
// whatever the size.
func TestHostileElements(t *testing.T) {
	d := open(t, "cpu:compile=off")
	values := []float64{0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, 5e-324, 1e-300, 1e300, math.Copysign(0, -1)}
	r := rand.New(rand.NewPCG(1, 2))
	ends := map[string]int{}
	for n := range 1500 {
		set := values
		switch n % 3 {
		case 1:
			set = values[6:]
		case 2:
			set = []float64{0, 1, 1, 1, math.NaN()}
		}
		m, k := 1+r.IntN(6), 1+r.IntN(6)
		if n%50 == 0 {
			m, k = 40+r.IntN(60), 40+r.IntN(60)
		}
		make := func(m, k int) *T {
			v := make([]float64, 2*m*k)
			for i := range v {
				if v[i] = r.NormFloat64(); n%2 == 0 || r.IntN(5) == 0 {
					v[i] = set[r.IntN(len(set))]
				}
			}
			return millrace.FromSliceOn(d, v, 2, m, k)
		}
		for op, f := range functions {
			a := make(m, k)
			if op != "svd" && op != "qr" && op != "leastsquares" && op != "pseudoinverse" {
				a = make(m, m)
			}
			for _, x := range f([]*T{a, make(m, 2)}) {
				_, err := elements(x)
				if err == nil {
					ends[op+" answers"]++
					continue
				}
				known := false
				for _, e := range []error{linalg.ErrSingular, linalg.ErrNotPositiveDefinite, linalg.ErrNotFinite, linalg.ErrConvergence} {
					known = known || errors.Is(err, e)
				}
				if !known {
					t.Fatalf("%s of %dx%d: %v", op, m, k, err)
				}
				ends[op+" errors"]++
			}
		}
	}
	t.Log(ends)
}
