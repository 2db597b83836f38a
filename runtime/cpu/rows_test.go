package cpu

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/runtime"
)

func rowKernel(t testing.TB, text string) *codegen.Kernel {
	t.Helper()
	k, err := codegen.Parse(strings.TrimPrefix(text, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// rowShapes are dims of launches and the number of kept dims, with sizes around those of lanes and
// of the blocks of scans and folds.
var rowShapes = []struct {
	dims []int64
	kept int
}{
	{[]int64{1}, 0}, {[]int64{2}, 0}, {[]int64{63}, 0}, {[]int64{64}, 0}, {[]int64{65}, 0}, {[]int64{255}, 0}, {[]int64{257}, 0},
	{[]int64{4095}, 0}, {[]int64{4096}, 0}, {[]int64{4097}, 0}, {[]int64{8200}, 0}, {[]int64{40000}, 0},
	{[]int64{5, 7}, 1}, {[]int64{3, 64}, 1}, {[]int64{2, 1500}, 1}, {[]int64{3, 4100}, 1}, {[]int64{50, 65}, 1}, {[]int64{700, 3}, 1},
	{[]int64{3, 2, 9}, 1}, {[]int64{2, 40, 3, 5}, 2}, {[]int64{2, 17, 300}, 2}, {[]int64{3, 90, 70}, 2}, {[]int64{20, 4100}, 1}, {[]int64{2, 130, 2, 2100}, 2},
}

// TestRows compares row kernels with the oracle: as rows, as columns and split, in every way to
// run.
func TestRows(t *testing.T) {
	for name, text := range rowtext.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
					h := kernels.NewLaunch(rng, k, s.dims, s.kept, kernels.Dense)
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

// TestRowPatterns accesses operands of row kernels in every pattern.
func TestRowPatterns(t *testing.T) {
	for name, text := range rowtext.All {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, ds := rowKernel(t, text), everyDevice(t)
			for how := range kernels.NumPatterns {
				for _, s := range []struct {
					dims []int64
					kept int
				}{{[]int64{3, 20, 70}, 2}, {[]int64{0, 3}, 1}, {[]int64{40, 2, 2500}, 1}, {[]int64{9000}, 0}} {
					if testing.Short() && s.dims[0] > 3 {
						continue
					}
					rng := rand.New(rand.NewPCG(4, uint64(how)))
					h := kernels.NewLaunch(rng, k, s.dims, s.kept, how)
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

// everyDevice opens one device for each of the ways to run that must agree.
func everyDevice(t testing.TB) map[string]*device {
	ds := map[string]*device{}
	for _, threads := range []int{1, 2, 4} {
		ds[fmt.Sprintf("tier 0, %d threads", threads)] = openTest(t, runtime.Config{Tier: -1, Threads: threads})
	}
	ds["tier 1"] = openTest(t, runtime.Config{Tier: 1, Threads: 2})
	return ds
}

func onEvery(t *testing.T, ds map[string]*device, what string, k *codegen.Kernel, h *kernels.Launch) {
	t.Helper()
	want := reference(t, k, h)
	for name, d := range ds {
		if name == "tier 1" && testing.Short() {
			continue
		}
		out := onDevice(t, d, k, h)
		compare(t, name+", "+what, k, out, want)
		again(t, d, k, h, out)
		stream, look, lean := d.streamBytes, d.lookBytes, d.leanBytes
		d.streamBytes, d.lookBytes, d.leanBytes = 1, 1, 1
		compare(t, name+", as large tensors, "+what, k, onDevice(t, d, k, h), want)
		d.streamBytes, d.lookBytes, d.leanBytes = stream, look, lean
	}
	if t.Failed() {
		t.FailNow()
	}
}
