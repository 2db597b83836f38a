package everyday

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

// TestFloat64Functions measures errors of float64 functions against mpmath's results, rounded once.
// internal/testing/accuracy tries all numbers of float32.
func TestFloat64Functions(t *testing.T) {
	data, err := os.ReadFile("testdata/functions.txt")
	if err != nil {
		t.Fatal(err)
	}
	xs, ys := map[string][]float64{}, map[string][]float64{}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		x, err1 := strconv.ParseFloat(f[1], 64)
		y, err2 := strconv.ParseFloat(f[2], 64)
		if err1 != nil || err2 != nil {
			t.Fatal(line)
		}
		xs[f[0]], ys[f[0]] = append(xs[f[0]], x), append(ys[f[0]], y)
	}
	if len(xs) < 4 {
		t.Errorf("%d functions", len(xs))
	}
	for name := range xs {
		got, err := millrace.Values[float64](function(t, name).Unary(millrace.FromSlice(xs[name])))
		if err != nil || len(got) < 300 {
			t.Fatal(name, len(got), err)
		}
		worst, at := 0.0, 0.0
		for i, g := range got {
			if off := ulps(g, ys[name][i]); off > worst {
				worst, at = off, xs[name][i]
			}
		}
		t.Logf("%s: %.2f ulp at %x of %d", name, worst, at, len(got))
		if worst > 4 {
			t.Errorf("%s is off by %.2f ulp at %x", name, worst, at)
		}
	}
}

// TestPowersOfTen: logarithms of powers of ten are whole numbers.
func TestPowersOfTen(t *testing.T) {
	var wide []float64
	var narrow []float32
	for k := -307; k <= 308; k++ {
		wide = append(wide, math.Pow10(k))
		if k >= -37 && k <= 38 {
			narrow = append(narrow, float32(math.Pow10(k)))
		}
	}
	a, err := millrace.Values[float64](millrace.FromSlice(wide).Log10())
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range a {
		if x != float64(i-307) {
			t.Errorf("of 1e%d: %v", i-307, x)
		}
	}
	b, err := millrace.Values[float32](millrace.FromSlice(narrow).Log10())
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range b {
		if x != float32(i-37) {
			t.Errorf("float32 of 1e%d: %v", i-37, x)
		}
	}
}

// ulps is the distance of got from a number that was rounded to float64, in units of its last
// place. The true error is at most half a unit larger.
func ulps(got, want float64) float64 {
	if got == want && math.Signbit(got) == math.Signbit(want) {
		return 0
	}
	_, e := math.Frexp(want)
	return math.Abs(math.Ldexp(got, 53-max(e, -1021))-math.Ldexp(want, 53-max(e, -1021))) + 0.5
}

func TestSpecialValues(t *testing.T) {
	in := optable.SpecialAt
	found := 0
	for _, c := range optable.All() {
		if c.Math == nil || c.Math.Special == nil {
			continue
		}
		found++
		for _, dt := range []millrace.DType{millrace.Float64, millrace.Float32, millrace.Float16, millrace.BFloat16} {
			x := millrace.FromSlice(in).Cast(dt)
			got, err := millrace.Values[float64](c.Unary(x).Cast(millrace.Float64))
			if err != nil {
				t.Fatal(err)
			}
			tol := map[millrace.DType]float64{millrace.Float64: 1e-15, millrace.Float32: 1e-6, millrace.Float16: 1e-3, millrace.BFloat16: 1e-2}[dt]
			for i, g := range got {
				w := c.Math.Special[i]
				if math.Abs(in[i]) == 1e308 && dt != millrace.Float64 { // which is infinite there
					continue
				}
				if math.IsNaN(w) != math.IsNaN(g) || math.Signbit(w) != math.Signbit(g) && w == w || w != g && math.Abs(w-g) > tol*math.Abs(w) {
					t.Errorf("%s(%v) of %v is %v, want %v", c.Name, in[i], dt, g, w)
				}
			}
		}
	}
	if found < 4 {
		t.Errorf("%d functions", found)
	}
}

// function is the row of a function of testdata/functions.txt.
func function(t *testing.T, name string) optable.Op {
	t.Helper()
	for _, o := range optable.All() {
		if o.Unary != nil && strings.EqualFold(o.Name, "tensor."+name) {
			return o
		}
	}
	t.Fatalf("no function %s", name)
	return optable.Op{}
}
