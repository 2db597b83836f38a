package everyday

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/numerics/statistics.md")

// dataRow is a line of testdata/statistics.json: see scripts/extremes.py.
type dataRow struct {
	Row                 string
	N                   int
	Offset, Step, Scale float64
	NumPy, Torch        map[string][]string
}

// elements of the row, which are not stored.
func (r *dataRow) elements() []float32 {
	x := make([]float32, r.N)
	for i := range x {
		u := float64(37*i%101-50) / 50
		x[i] = float32(r.Offset + float64(r.Step*float64(i)) + float64(r.Scale*u))
	}
	return x
}

// statistics are in the order of the table. Operands have one dimension.
var statistics = []struct {
	name string
	f    func(x *millrace.Tensor) *millrace.Tensor
}{
	{"Sum", func(x *millrace.Tensor) *millrace.Tensor { return x.Sum() }},
	{"Mean", func(x *millrace.Tensor) *millrace.Tensor { return x.Mean() }},
	{"Var", func(x *millrace.Tensor) *millrace.Tensor { return x.Var(0) }},
	{"Std", func(x *millrace.Tensor) *millrace.Tensor { return x.Std(0) }},
	{"Norm1", func(x *millrace.Tensor) *millrace.Tensor { return x.Norm1() }},
	{"Norm2", func(x *millrace.Tensor) *millrace.Tensor { return x.Norm2() }},
	{"LogSumExp", func(x *millrace.Tensor) *millrace.Tensor { return x.LogSumExp() }},
	{"Median", func(x *millrace.Tensor) *millrace.Tensor { return x.Median() }},
	{"Quantile 0.3", func(x *millrace.Tensor) *millrace.Tensor { return x.Quantile(0.3) }},
	{"LayerNorm", func(x *millrace.Tensor) *millrace.Tensor { return x.LayerNorm(nil, nil, 1e-5) }},
	{"RMSNorm", func(x *millrace.Tensor) *millrace.Tensor { return x.RMSNorm(nil, 1e-5) }},
	{"nn.BatchNorm", func(x *millrace.Tensor) *millrace.Tensor {
		return nn.NewBatchNorm1d(1, nn.Plain()).Forward(nn.NewCtx(nn.CtxOptions{Train: true}), x.Unsqueeze(1))
	}},
	{"nn.GroupNorm", func(x *millrace.Tensor) *millrace.Tensor {
		return nn.NewGroupNorm(2, x.Len(), nn.Plain()).Forward(nn.Eval(), x.Unsqueeze(0))
	}},
}

func isNorm(name string) bool { return strings.HasSuffix(name, "Norm") }

func parsed(t *testing.T, words []string) (v []float64) {
	t.Helper()
	for _, w := range words {
		x, err := strconv.ParseFloat(w, 64)
		if err != nil {
			t.Fatal(err)
		}
		v = append(v, x)
	}
	return v
}

// distance is the largest difference, relative to what is wanted, and for norms to 1, where that is less.
func distance(name string, got, want []float64) (worst float64) {
	for i, g := range got {
		e := math.Abs(g - want[i])
		switch {
		case math.IsNaN(g) || math.IsInf(g, 0) && !math.IsInf(want[i], 0):
			return math.Inf(1)
		case math.IsInf(want[i], 0) && g == want[i], e == 0:
			continue
		case !isNorm(name):
			e /= math.Abs(want[i])
		case math.Abs(want[i]) > 1:
			e /= math.Abs(want[i])
		}
		worst = max(worst, e)
	}
	return worst
}

// statisticReasons say why a statistic of a row is not NumPy's in float64.
var statisticReasons = func() map[string]string {
	const (
		overflows = "partial sums overflow, in float32; Cast to float64 first"
		squares   = "squares overflow, in float32: divide by the largest element first"
		vanish    = "squares vanish, in float32: divide by the largest element first"
		rounding  = "the mean is rounded: units in its last place are as large as the spread"
		cancels   = "elements of both signs cancel: the error is that of a sum of their size"
	)
	r := map[string]string{
		"Sum of 1e18·u": cancels, "Mean of 1e18·u": cancels, "Sum of max·u": overflows, "Mean of max": overflows, "Mean of max·u": overflows,
		"Var of 1e30": "the mean is rounded, and squares of that overflow", "Std of 1e30": "the mean is rounded, and squares of that overflow",
		"Var of max": overflows, "Std of max": overflows, "Var of max·u": overflows, "Std of max·u": overflows,
		"Std of 1e30·u": squares, "Std of 1e-30·u": vanish, "Std of 1e-40·u": vanish,
	}
	for _, row := range []string{"1e30", "1e30·u"} {
		r["Norm2 of "+row], r["RMSNorm of "+row] = squares, squares
	}
	for _, row := range []string{"1e-30", "1e-40", "1e-30·u", "1e-40·u"} {
		r["Norm2 of "+row] = vanish
	}
	r["RMSNorm of max"], r["RMSNorm of max·u"] = squares, squares
	for _, norm := range []string{"LayerNorm", "nn.BatchNorm", "nn.GroupNorm"} {
		for _, row := range []string{"1000000.125", "40000 + i/1000", "1e6 + u"} {
			r[norm+" of "+row] = rounding
		}
		r[norm+" of max"], r[norm+" of max·u"], r[norm+" of 1e30·u"] = overflows, overflows, squares
	}
	return r
}()

// Statistics of constant, huge, tiny and rising data are NumPy's in float64, or the documents say why not.
func TestStatisticsOfExtremeData(t *testing.T) {
	data, err := os.ReadFile("testdata/statistics.json")
	var rows []*dataRow
	if err == nil {
		err = json.Unmarshal(data, &rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, plain := open(t, "cpu"), open(t, "cpu:fusion=off,compile=off")
	unused := map[string]bool{}
	for key := range statisticReasons {
		unused[key] = true
	}
	table := "| statistic | data | here | NumPy, float64 | off by | PyTorch, float32 | off by | why |\n|---|---|---|---|---|---|---|---|\n"
	for _, s := range statistics {
		for _, r := range rows {
			var got [2][]float64
			for i, dev := range []*millrace.Device{d, plain} {
				all, err := millrace.Values[float32](s.f(millrace.FromSliceOn(dev, r.elements())))
				if err != nil {
					t.Fatal(s.name, r.Row, err)
				}
				for k := range 9 {
					if len(all) == 1 && k > 0 {
						break
					}
					got[i] = append(got[i], float64(all[k*(len(all)-1)/8]))
				}
			}
			want, torch := parsed(t, r.NumPy[s.name]), parsed(t, r.Torch[s.name])
			for i, w := range want { // beyond the range it is the float that is nearest
				want[i] = float64(float32(w))
			}
			for k, g := range got[0] {
				if math.Float64bits(g) != math.Float64bits(got[1][k]) && !(math.IsNaN(g) && math.IsNaN(got[1][k])) {
					t.Errorf("%s of %s: %v, not fused %v", s.name, r.Row, g, got[1][k])
				}
			}
			tol := 2e-6
			if isNorm(s.name) {
				tol = 2e-5
			}
			off, why := distance(s.name, got[0], want), ""
			if off > tol {
				key := s.name + " of " + r.Row
				if statisticReasons[key] == "" {
					key = s.name
				}
				why = statisticReasons[key]
				delete(unused, key)
				if why == "" {
					t.Errorf("%s of %s: %v, want %v, off by %.3g, and no reason", s.name, r.Row, got[0], want, off)
				}
			}
			table += fmt.Sprintf("| %s | %s | %.8g | %.8g | %.2g | %.8g | %.2g | %s |\n", s.name, r.Row, got[0][0], want[0], off, torch[0], distance(s.name, torch, want), why)
		}
	}
	for key := range unused {
		t.Errorf("%s needs no reason", key)
	}
	const page, begin, end = "../../../docs/numerics/statistics.md", "<!-- statistics -->\n", "<!-- end of statistics -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	written := head + begin + table + end + tail
	switch {
	case !ok1 || !ok2:
		t.Errorf("%s has no place for the table", page)
	case written == string(text) || t.Failed():
	case !*update:
		t.Errorf("%s: the table is not what is computed; run with -update to write it, and read the difference", page)
	default:
		if err := os.WriteFile(page, []byte(written), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Variances of equal numbers are 0, whatever the number, and those of two numbers side by side are not.
func TestVarianceOfEqualNumbers(t *testing.T) {
	d := open(t, "cpu")
	r := rand.New(rand.NewPCG(7, 11))
	for _, n := range []int{1, 2, 3, 768, 4096, 5000} {
		const rows = 50
		same, sides := make([]float32, rows*n), make([]float32, rows*n)
		for i := range rows {
			x := float32(math.Exp2(15+float64(10*r.Float64())) * (1 - 2*float64(r.IntN(2))))
			for k := range n {
				same[i*n+k], sides[i*n+k] = x, x
				if k%2 == 1 {
					sides[i*n+k] = math.Nextafter32(x, 0)
				}
			}
		}
		v, err := millrace.Values[float32](millrace.FromSliceOn(d, same, rows, n).Std(0, 1))
		if err != nil {
			t.Fatal(err)
		}
		w, err := millrace.Values[float32](millrace.FromSliceOn(d, sides, rows, n).Std(0, 1))
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			x := same[i*n]
			unit := math.Abs(float64(x - math.Nextafter32(x, 0)))
			p := float64(n/2) / float64(n)
			want := unit * math.Sqrt(p*(1-p))
			if v[i] != 0 || math.Abs(float64(w[i])-want) > 1e-5*want {
				t.Errorf("%d times %v: %v; with its neighbour %v, want %v", n, x, v[i], w[i], want)
			}
		}
	}
}
