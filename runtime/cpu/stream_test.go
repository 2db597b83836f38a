package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/runtime"
)

func TestCacheShare(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		what       string
		size       int64
		processors int
		want       int64
	}{
		{"a chip of one's own", 32 * mib, 16, 32 * mib},
		{"two of a server's processors", 32 * mib, 2, 8 * mib},
		{"two of a larger one's", 260 * mib, 2, 8 * mib},
		{"all of it", 105 * mib, 112, 105 * mib},
		{"no third level", mib, 8, mib},
	} {
		if got := cacheShare(c.size, c.processors); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

const negText = "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = neg %0 : float32\nstore 1 %1\n"

// TestLargeResultsPassCaches checks that results too large for the caches are stored past them, by
// every kind of kernel and by the same code that stores smaller ones normally.
func TestLargeResultsPassCaches(t *testing.T) {
	const from = 1 << 20
	d := openTest(t, runtime.Config{Tier: 1, Threads: 2, Compile: runtime.CompileWait})
	d.streamBytes = from
	neg := rowKernel(t, negText)
	sum := rowKernel(t, "in 0 : float32\nout 1 : float32 row\n%0 = load 0 : float32\n%1 = sum %0 : float32\nstore 1 %1\n")
	for _, c := range []struct {
		what string
		k    *codegen.Kernel
		dims []int64
		kept int
		with func(l *runtime.Launch)
		want bool // of the first output
	}{
		{"elementwise", neg, []int64{from / 4}, 1, nil, true},
		{"what the next kernel finds in the cache", neg, []int64{from/4 - 16}, 1, nil, false},
		{"rows", rowKernel(t, rowtext.Softmax), []int64{64, from / 4 / 64}, 1, nil, true},
		{"rows whose results are small", sum, []int64{64, from / 4}, 1, nil, false},
		{"in the operand's memory", neg, []int64{from / 4}, 1, func(l *runtime.Launch) { l.Args[1].Buf = l.Args[0].Buf }, false},
		{"rows of lines", neg, []int64{from / 4 / 32, 32}, 2, pitch(48), true},
		{"rows of a line and a half", neg, []int64{from / 4 / 24, 24}, 2, pitch(48), false},
		{"long rows", neg, []int64{from / 4 / 1000, 1008}, 2, pitch(1024), true},
	} {
		h := kernels.NewLaunch(rand.New(rand.NewPCG(1, 1)), c.k, c.dims, c.kept, kernels.Dense)
		if c.with != nil { // room for a pitch
			for i := range h.Args {
				h.Args[i].Data = make([]byte, 4*from)
			}
		}
		bound(t, d, c.k, h, func(l *runtime.Launch) {
			if c.with != nil {
				c.with(l)
			}
			r, err := d.order(l, 2)
			if err != nil {
				t.Fatal(c.what, err)
			}
			out := 0
			for c.k.Operands[out].Kind != codegen.Output {
				out++
			}
			if got := r.streams(out); got != c.want {
				t.Errorf("%s: past the caches %v, want %v", c.what, got, c.want)
			}
		})
	}
	if d.comp == nil {
		return
	}
	hold(t, d, neg)
	before := d.Stats().Compiles
	for _, n := range []int64{64, from / 4} {
		onDevice(t, d, neg, kernels.NewLaunch(rand.New(rand.NewPCG(2, 2)), neg, []int64{n}, 1, kernels.Dense))
	}
	if n := d.Stats().Compiles - before; n != 1 {
		t.Errorf("%d compiles of one kernel for two sizes", n)
	}
}

// pitch makes rows n elements apart.
func pitch(n int64) func(*runtime.Launch) {
	return func(l *runtime.Launch) {
		for i := range l.Args {
			l.Args[i].Stride[0] = n
		}
	}
}

// TestStoredPastCaches compares results stored past the caches with the oracle: blocks, rows and
// ends of both that are not whole lines, for elements of every size, beginning within a line and
// at its start.
func TestStoredPastCaches(t *testing.T) {
	ds := everyDevice(t)
	for _, dt := range []string{"float32", "float64", "int8", "float16"} {
		texts := map[string]string{
			"copy": fmt.Sprintf("in 0 : %[1]s\nout 1 : %[1]s\n%%0 = load 0 : %[1]s\nstore 1 %%0\n", dt),
			"twice": fmt.Sprintf("in 0 : %[1]s\nout 1 : %[1]s\nout 2 : %[1]s\n%%0 = load 0 : %[1]s\n%%1 = neg %%0 : %[1]s\n%%2 = neg %%1 : %[1]s\n"+
				"store 1 %%1\nstore 2 %%2\n", dt),
		}
		for name, text := range texts {
			k := rowKernel(t, text)
			for _, dims := range [][]int64{{130}, {9000}, {3, 1024}, {5, 2100}, {2, 3, 640}} {
				for _, shift := range []int64{0, 3} {
					h := kernels.NewLaunch(rand.New(rand.NewPCG(8, 8)), k, dims, len(dims), kernels.Dense)
					for i := range h.Args {
						size := k.Operands[i].DT.Size()
						h.Args[i].Data = append(h.Args[i].Data, make([]byte, shift*int64(size))...)
						h.Args[i].Access.Offset += shift
					}
					want := reference(t, k, h)
					for on, d := range ds {
						if on == "tier 1" && testing.Short() {
							continue
						}
						past := d.streamBytes
						d.streamBytes = 1
						compare(t, fmt.Sprintf("%s, %s of %s, %v, %d further on", on, name, dt, dims, shift), k, onDevice(t, d, k, h), want)
						d.streamBytes = past
					}
				}
			}
		}
	}
}
