package apitest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/fault"
)

// totalCases are programs of rows with folds over all elements: tensors of one shape in, results
// out. kernels is the number of kernels that they become.
var totalCases = []struct {
	name    string
	kernels int64
	f       func(x, w *millrace.Tensor) []*millrace.Tensor
}{
	{"softmax with backward", 1, func(x, w *millrace.Tensor) []*millrace.Tensor {
		e := x.Exp()
		s := e.SumKeep(-1)
		y := x.Sub(s.Log()).Exp()
		loss := y.Mul(w).Sum()
		d := w.Mul(y)
		return []*millrace.Tensor{loss, d.Sub(e.Div(s).Mul(d.SumKeep(-1)))}
	}},
	{"softmax and its extremes", 1, func(x, w *millrace.Tensor) []*millrace.Tensor {
		y := x.Softmax(-1)
		return []*millrace.Tensor{y, y.Max(), y.Min(), y.Mul(w).Sum()}
	}},
	{"layer norm, squares", 1, func(x, w *millrace.Tensor) []*millrace.Tensor {
		y := x.LayerNorm(nil, nil, 1e-5, -1).Mul(w)
		return []*millrace.Tensor{y.Square().Sum()}
	}},
	{"used again", 2, func(x, w *millrace.Tensor) []*millrace.Tensor {
		y := x.Softmax(-1).Mul(w)
		return []*millrace.Tensor{y.Div(y.Sum())}
	}},
	{"mean", 2, func(x, w *millrace.Tensor) []*millrace.Tensor {
		return []*millrace.Tensor{x.Softmax(-1).Sub(w).Square().Mean()}
	}},
}

// TestTotals: a fold of all elements within a kernel of rows has the same bits as in a kernel of
// its own, for all threads, tiers and fusion modes.
func TestTotals(t *testing.T) {
	specs := []string{"cpu:explore=wait,tier=0,threads=2", "cpu:explore=wait,tier=0,threads=1", "cpu:fusion=greedy,tier=0,threads=3"}
	for _, c := range totalCases {
		for i, shape := range [][]int{{40, 64}, {5, 9, 100}, {33, 2048}, {70, 4097}, {19, 65}} {
			t.Run(fmt.Sprintf("%s/%v", c.name, shape), func(t *testing.T) {
				t.Parallel()
				specs := specs
				if i == 2 {
					specs = append(specs, "cpu:compile=wait,threads=2")
				}
				want, _ := totalRun(t, "cpu:fusion=off,tier=0", shape, c.f)
				for j, spec := range specs {
					got, kernels := totalRun(t, spec, shape, c.f)
					for k := range want {
						for e, v := range got[k] {
							if math.Float32bits(v) != math.Float32bits(want[k][e]) {
								t.Fatalf("%s: element %d of result %d is %v, not %v", spec, e, k, v, want[k][e])
							}
						}
					}
					if j == 0 && kernels != c.kernels {
						t.Errorf("%d kernels, want %d", kernels, c.kernels)
					}
				}
			})
		}
	}
}

func totalRun(t *testing.T, spec string, shape []int, f func(x, w *millrace.Tensor) []*millrace.Tensor) (out [][]float32, kernels int64) {
	t.Helper()
	return totalsOn(t, openSpec(t, spec), shape, f)
}

func totalsOn(t *testing.T, dev *millrace.Device, shape []int, f func(x, w *millrace.Tensor) []*millrace.Tensor) (out [][]float32, kernels int64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(16, 5))
	var in [2]*millrace.Tensor
	for i := range in {
		n := 1
		for _, d := range shape {
			n *= d
		}
		data := make([]float32, n)
		for j := range data {
			data[j] = float32(rng.NormFloat64())
		}
		in[i] = millrace.FromSliceOn(dev, data, shape...)
	}
	before := dev.Stats().Kernels
	var kept []*millrace.Tensor
	err := dev.Scope(func(sc *millrace.Scope) error {
		for _, r := range f(in[0], in[1]) {
			kept = append(kept, sc.Keep(r))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range kept {
		v, err := millrace.Values[float32](r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out, dev.Stats().Kernels - before
}

// TestTotalMemory: a softmax with backward takes no memory besides its operands and its derivative.
func TestTotalMemory(t *testing.T) {
	const rows, n = 512, 2048
	dev := openSpec(t, "cpu:explore=wait,tier=0,threads=2")
	x, w := millrace.OnesOn(dev, millrace.Float32, rows, n), millrace.OnesOn(dev, millrace.Float32, rows, n)
	for _, in := range []*millrace.Tensor{x, w} {
		if err := in.Eval(); err != nil {
			t.Fatal(err)
		}
	}
	dev.ResetPeak()
	var loss, dx *millrace.Tensor
	if err := dev.Scope(func(sc *millrace.Scope) error {
		out := totalCases[0].f(x, w)
		loss, dx = sc.Keep(out[0]), sc.Keep(out[1])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := millrace.Values[float32](loss); err != nil {
		t.Fatal(err)
	}
	if err := dx.Eval(); err != nil {
		t.Fatal(err)
	}
	if peak, three := dev.Stats().Runtime.PeakBytes, int64(3*rows*n*4); peak > three+three/20 {
		t.Errorf("%d bytes at the most, the operands and the result are %d", peak, three)
	}
}

// TestTotalFaultsAndCache: a refused launch with a total runs op by op, and a plan with one is
// found again in the cache: the same bits in both cases.
func TestTotalFaultsAndCache(t *testing.T) {
	defer fault.Reset()
	shape, f := []int{20, 70}, totalCases[0].f
	want, _ := totalRun(t, "cpu:fusion=off,tier=0", shape, f)
	same := func(what string, got [][]float32) {
		t.Helper()
		for k := range want {
			for e, v := range got[k] {
				if math.Float32bits(v) != math.Float32bits(want[k][e]) {
					t.Fatalf("%s: element %d of result %d is %v, not %v", what, e, k, v, want[k][e])
				}
			}
		}
	}
	dev := openSpec(t, "cpu:explore=wait,tier=0")
	fault.Set(fault.Launch, 1)
	got, _ := totalsOn(t, dev, shape, f)
	same("refused", got)
	if n := dev.Stats().Fallbacks; n != 1 {
		t.Errorf("%d fallbacks, want 1", n)
	}
	fault.Reset()

	spec := "cpu:explore=wait,compile=off,cache=" + t.TempDir()
	for i, explorations := range []int64{1, 0} {
		dev, err := millrace.Open(spec)
		if err != nil {
			t.Fatal(err)
		}
		before := dev.Stats()
		got, kernels := totalsOn(t, dev, shape, f)
		same(fmt.Sprintf("process %d", i), got)
		if n := dev.Stats().Explorations - before.Explorations; n != explorations || kernels != 1 {
			t.Errorf("process %d: %d explorations, %d kernels", i, n, kernels)
		}
		if err := dev.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
