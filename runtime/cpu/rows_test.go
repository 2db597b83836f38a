package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/runtime"
)

// rowKernels are kernels of every shape that rows come in.
var rowKernels = map[string]string{
	"softmax": `
in 0 : float32
out 1 : float32
out 2 : float32 row
%0 = load 0 : float32
%1 = max %0 : float32
%2 = sub %0 %1 : float32
%3 = exp %2 : float32
%4 = sum %3 : float32
%5 = div %3 %4 : float32
%6 = log %4 : float32
%7 = add %6 %1 : float32
store 1 %5
store 2 %7
`,
	"norm": `
in 0 : float32
in 1 : float32 row
in 2 : float32
out 3 : float32
out 4 : float32 row
scalar 0 : float32
%0 = load 0 : float32
%1 = scalar 0 : float32
%2 = sum %0 : float32
%3 = div %2 %1 : float32
%4 = sub %0 %3 : float32
%5 = mul %4 %4 : float32
%6 = sum %5 : float32
%7 = load 1 : float32
%8 = add %6 %7 : float32
%9 = rsqrt %8 : float32
%10 = mul %4 %9 : float32
%11 = load 2 : float32
%12 = mul %10 %11 : float32
store 3 %12
store 4 %3
`,
	"mixed": `
in 0 : float32
in 1 : int32
index 2
out 3 : float32 row
out 4 : int32 row
out 5 : int64 row
out 6 : bool row
out 7 : float32
out 8 : bool
%0 = load 0 : float32
%1 = load 1 : int32
%2 = abs %0 : float32
%3 = sum %2 : float32
%4 = max %1 : int32
%5 = argmax %0 : int64
%6 = lt %0 %3 : bool
%7 = all %6 : bool
%8 = indexlo 2 : uint32
%9 = cast %8 : float32
%10 = add %9 %3 : float32
%11 = eq %1 %4 : bool
store 3 %3
store 4 %4
store 5 %5
store 6 %7
store 7 %10
store 8 %11
`,
	"scan": `
in 0 : float32
in 1 : float16
out 2 : float32
out 3 : float16
out 4 : float32 row
%0 = load 0 : float32
%1 = cumsum %0 : float32
%2 = exp %0 : float32
%3 = cummax %2 : float32
%4 = add %1 %3 : float32
%5 = sum %4 : float32
%6 = load 1 : float16
%7 = cumsum %6 : float16
%8 = min %1 : float32
%9 = sub %5 %8 : float32
store 2 %4
store 3 %7
store 4 %9
`,
	"sort": `
in 0 : float32
in 1 : int16
out 2 : float32
out 3 : int32
out 4 : int16
out 5 : int64
%0 = load 0 : float32
%1 = abs %0 : float32
%2 = sort %1 : float32
%3 = argsort descending %0 : int32
%4 = load 1 : int16
%5 = sort descending %4 : int16
%6 = argsort %4 : int64
store 2 %2
store 3 %3
store 4 %5
store 5 %6
`,
}

func rowKernel(t testing.TB, text string) *codegen.Kernel {
	t.Helper()
	k, err := codegen.Parse(text[1:])
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// rowShapes are dims of launches and how many are kept, around lanes, blocks of
// scans and of folds.
var rowShapes = []struct {
	dims []int64
	kept int
}{
	{[]int64{1}, 0}, {[]int64{2}, 0}, {[]int64{63}, 0}, {[]int64{64}, 0}, {[]int64{65}, 0}, {[]int64{255}, 0}, {[]int64{257}, 0},
	{[]int64{4095}, 0}, {[]int64{4096}, 0}, {[]int64{4097}, 0}, {[]int64{8200}, 0}, {[]int64{40000}, 0},
	{[]int64{5, 7}, 1}, {[]int64{3, 64}, 1}, {[]int64{2, 1500}, 1}, {[]int64{3, 4100}, 1}, {[]int64{50, 65}, 1}, {[]int64{700, 3}, 1},
	{[]int64{3, 2, 9}, 1}, {[]int64{2, 40, 3, 5}, 2}, {[]int64{2, 17, 300}, 2}, {[]int64{3, 90, 70}, 2}, {[]int64{20, 4100}, 1}, {[]int64{2, 130, 2, 2100}, 2},
}

// TestRows holds row kernels against the oracle: rows, columns and split, in
// every way to run.
func TestRows(t *testing.T) {
	for name, text := range rowKernels {
		t.Run(name, func(t *testing.T) {
			k, ds := rowKernel(t, text), everyDevice(t)
			for _, s := range rowShapes {
				if testing.Short() && product(s.dims) > 5000 {
					continue
				}
				for _, columns := range []bool{false, true} {
					if columns && s.kept == 0 {
						continue
					}
					rng := rand.New(rand.NewPCG(3, uint64(len(text))))
					h := kerneltest.NewLaunch(rng, k, s.dims, s.kept, kerneltest.Dense)
					if columns {
						for i := range h.Args {
							transpose(h, i, s.kept)
						}
					}
					onEvery(t, ds, fmt.Sprintf("%v, %d kept, columns %v", s.dims, s.kept, columns), k, h)
				}
			}
		})
	}
}

// TestRowPatterns reaches operands of row kernels in every way there is.
func TestRowPatterns(t *testing.T) {
	for name, text := range rowKernels {
		t.Run(name, func(t *testing.T) {
			k, ds := rowKernel(t, text), everyDevice(t)
			for how := range kerneltest.NumPatterns {
				for _, s := range []struct {
					dims []int64
					kept int
				}{{[]int64{3, 20, 70}, 2}, {[]int64{0, 3}, 1}, {[]int64{40, 2, 2500}, 1}, {[]int64{9000}, 0}} {
					if testing.Short() && s.dims[0] > 3 {
						continue
					}
					rng := rand.New(rand.NewPCG(4, uint64(how)))
					h := kerneltest.NewLaunch(rng, k, s.dims, s.kept, how)
					onEvery(t, ds, fmt.Sprintf("%v, %d kept, pattern %d", s.dims, s.kept, how), k, h)
				}
			}
		})
	}
}

func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

// everyDevice are the ways to run that must agree, opened once.
func everyDevice(t testing.TB) map[string]*device {
	ds := map[string]*device{}
	for _, threads := range []int{1, 2, 4} {
		ds[fmt.Sprintf("tier 0, %d threads", threads)] = openTest(t, runtime.Config{Tier: -1, Threads: threads})
	}
	ds["tier 1"] = openTest(t, runtime.Config{Tier: 1, Threads: 2})
	d := openTest(t, runtime.Config{Tier: -1, Threads: 2})
	d.exec = newGoExecutor(2)
	ds["go"] = d
	return ds
}

func onEvery(t *testing.T, ds map[string]*device, what string, k *codegen.Kernel, h *kerneltest.Launch) {
	t.Helper()
	want := reference(t, k, h)
	for name, d := range ds {
		if name == "tier 1" && testing.Short() {
			continue
		}
		compare(t, name+", "+what, k, onDevice(t, d, k, h), want)
	}
	if t.Failed() {
		t.FailNow()
	}
}
