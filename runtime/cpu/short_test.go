package cpu

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/runtime"
)

// shortSizes are sizes of few and of many rows, which are short or just too long.
var shortSizes = []map[string]int64{
	{"i": 700, "j": 3, "b": 2}, {"i": 4, "j": 2, "b": 3}, {"i": 3, "j": 5, "b": 2}, {"i": 600, "j": 1, "b": 1}, {"i": 90, "j": 48, "b": 2},
	{"i": 90, "j": 49, "b": 1}, {"i": 333, "j": 8, "b": 2}, {"i": 1400, "j": 7, "b": 1}, {"i": 1, "j": 9, "b": 2},
}

// TestShortRows compares elementwise launches over short rows with the oracle. Some operands
// repeat for each row, or for each point of a row.
func TestShortRows(t *testing.T) {
	t.Parallel()
	kernels := map[string]string{
		"float32": "in 0 : float32\nin 1 : float32\nin 2 : float32\nout 3 : float32\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = load 2 : float32\n" +
			"%3 = sub %0 %1 : float32\n%4 = mul %3 %2 : float32\nstore 3 %4\n",
		"others": "in 0 : float16\nin 1 : uint8\nin 2 : float64\nout 3 : float64\n%0 = load 0 : float16\n%1 = load 1 : uint8\n%2 = load 2 : float64\n" +
			"%3 = cast %0 : float64\n%4 = cast %1 : float64\n%5 = add %3 %4 : float64\n%6 = mul %5 %2 : float64\nstore 3 %6\n",
	}
	spread := 0
	for name, text := range kernels {
		k, ds := rowKernel(t, text), everyDevice(t)
		for i, c := range []struct{ dims, x, y, z, out string }{
			{"i j |", "i j", "j", "i", "i j"}, {"i j |", "i j", "j", "", "i j"}, {"i j |", "j i", "j", "i", "i j"}, {"i j |", "i j", "i j", "i=2 j=3", "i j"},
			{"b i j |", "b i j", "b j", "b i", "b i j"}, {"b i j |", "i j", "j b", "i b", "b i j"}, {"i j |", "i j", "j", "i", "j i"}, {"i j |", "i j", "j", "i", "i=50 j=1"},
		} {
			if i > 1 && name == "others" && !thorough {
				break
			}
			for n, size := range shortSizes {
				h := dotLaunch(rand.New(rand.NewPCG(9, uint64(n))), k, c.dims, size, c.x, c.y, c.z, c.out)
				onEvery(t, ds, fmt.Sprintf("%s, %v, %v", name, c, size), k, h)
				bound(t, ds["tier 0, 2 threads"], k, h, func(l *runtime.Launch) {
					r, err := ds["tier 0, 2 threads"].prepareFor(l, 1)
					if err != nil {
						t.Fatal(err)
					}
					if r.transposed.ops != 0 && r.transposed.cols == size["j"] {
						spread++
					}
				})
			}
		}
	}
	if spread < 40 {
		t.Errorf("%d launches had rows put together", spread)
	}
}

// TestDotShort does the same for the results of contractions.
func TestDotShort(t *testing.T) {
	t.Parallel()
	short := 0
	const biased = "in 0 : float32\nin 1 : float32\nin 2 : float32 row\nin 3 : float32 row\nout 4 : float32 row\n%0 = load 0 : float32\n%1 = load 1 : float32\n" +
		"%2 = dot %0 %1 : float32\n%3 = load 2 : float32\n%4 = add %2 %3 : float32\n%5 = load 3 : float32\n%6 = mul %4 %5 : float32\nstore 4 %6\n"
	for name, text := range map[string]string{"biased": biased, "half": dotKernels["half"]} {
		k, ds := rowKernel(t, text), everyDevice(t)
		for i, c := range []struct{ dims, left, right, bias, residual, out string }{
			{"i j | k", "i k", "k j", "j", "i j", "i j"}, {"i j | k", "k i", "j k", "i", "i j", "i j"}, {"i j | k", "i k", "k j", "", "j", "i j"},
			{"i j | k", "i k", "j k", "j=2", "j", "i j"}, {"b i j | k", "b i k", "b k j", "b j", "b i j", "b i j"}, {"i j | k", "i k", "k j", "j", "j i", "i=50 j=1"},
		} {
			if i > 1 && name == "half" && !thorough {
				break
			}
			for n, size := range shortSizes {
				size := maps.Clone(size)
				size["k"] = int64(3 + n)
				h := dotCase(k, c.dims, size, c.left, c.right, c.bias, c.residual, c.out)
				onEvery(t, ds, fmt.Sprintf("%s, %v, %v", name, c, size), k, h)
				bound(t, ds["tier 0, 2 threads"], k, h, func(l *runtime.Launch) {
					r, err := ds["tier 0, 2 threads"].prepareFor(l, 1)
					if err != nil {
						t.Fatal(err)
					}
					if r.dot.views[2].short() {
						short++
					}
				})
			}
		}
	}
	if short < 40 {
		t.Errorf("rows of %d results were short", short)
	}
}

// TestShortOrder checks that short rows are walked as columns if there are enough of them, or,
// with a compiler, if only columns have code. An operand with neighbours along a dim of its own is
// transposed along that dim.
func TestShortOrder(t *testing.T) {
	d := openTest(t, runtime.Config{Tier: 1, Threads: 1})
	k := rowKernel(t, rowtext.Softmax)
	for _, c := range []struct {
		points, rows, fewer int64
		then                [2]mode // modes of rows, then of fewer
	}{{3, 700, 10, [2]mode{modeCols, modeCols}}, {3, 10, 8, [2]mode{modeRows, modeRows}}, {60, 130, 4, [2]mode{modeCols, modeCols}},
		{60, 100, 4, [2]mode{modeRows, modeRows}}, {64, 700, 4, [2]mode{modeRows, modeRows}}} {
		d := openTest(t, runtime.Config{Tier: 1, Threads: 1}) // a new device, because a program keeps its code
		h := kernels.NewLaunch(rand.New(rand.NewPCG(2, 2)), k, []int64{c.rows, c.points}, 1, kernels.Dense)
		bound(t, d, k, h, func(l *runtime.Launch) {
			var got [2]mode
			for i, rows := range []int64{c.rows, c.fewer} {
				l.Dims[0] = rows
				r, err := d.prepareFor(l, 1)
				if err != nil || (r.code == nil) != (d.comp == nil && !d.machine) {
					t.Fatal(r.code, err)
				}
				got[i] = r.mode
			}
			if d.comp == nil {
				c.then[1] = modeRows // few
			}
			if got != c.then {
				t.Errorf("%d, then %d rows of %d: modes %v, want %v", c.rows, c.fewer, c.points, got, c.then)
			}
		})
	}
	const copied = "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\nstore 1 %0\n"
	k = rowKernel(t, copied)
	h := dotLaunch(rand.New(rand.NewPCG(1, 1)), k, "a b j |", map[string]int64{"a": 300, "b": 40, "j": 3}, "j b a", "a b j")
	bound(t, d, k, h, func(l *runtime.Launch) {
		if r, err := d.prepareFor(l, 1); err != nil || r.transposed.ops != 1 || r.transposed.dim != 0 {
			t.Errorf("operands %b are put together along dim %d, %v", r.transposed.ops, r.transposed.dim, err)
		}
	})
}
