package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/runtime"
)

// TestSwapped compares launches with swapped innermost dims with the oracle: results combined from
// two operands that are dense along the longer dim.
func TestSwapped(t *testing.T) {
	const text = "in 0 : float32\nindex 1\nin 2 : float32\nout 3 : float32\n%0 = indexlo 1 : uint32\n%1 = const 0x9 : uint32\n%2 = lt %0 %1 : bool\n" +
		"%3 = load 0 %2 : float32\n%4 = ge %0 %1 : bool\n%5 = load 2 %4 : float32\n%6 = where %2 %3 %5 : float32\nstore 3 %6\n"
	k := rowKernel(t, text)
	ds := map[string]*device{
		"tier 0": openTest(t, runtime.Config{Tier: -1, Threads: 3}), "tier 1": openTest(t, runtime.Config{Tier: 1, Threads: 2}),
		"go": openTest(t, runtime.Config{Tier: -1, Threads: 2}),
	}
	for n, c := range []struct {
		dims   []int64
		along  int // inputs are dense along this dim
		swaps  bool
		stands bool // only some points store to the output
	}{
		{[]int64{40, 2}, 0, true, false}, {[]int64{7, 3, 33, 4}, 2, true, false}, {[]int64{6, 70, 8}, 1, true, false}, {[]int64{300, 17, 3}, 1, true, true},
		{[]int64{40, 2}, 1, false, false}, {[]int64{40, 9}, 0, false, false}, {[]int64{9, 2, 2}, 1, false, false}, {[]int64{12, 5, 2}, 0, false, false},
	} {
		rng := rand.New(rand.NewPCG(9, uint64(n)))
		h := kernels.NewLaunch(rng, k, c.dims, len(c.dims), kernels.Dense)
		order := make([]int, 0, len(c.dims))
		for d := range c.dims {
			if d != c.along {
				order = append(order, d)
			}
		}
		order = append(order, c.along)
		for _, i := range []int{0, 2} {
			n := int64(1)
			for p := len(order) - 1; p >= 0; p-- {
				h.Args[i].Access.Stride[order[p]] = n
				n *= c.dims[order[p]]
			}
		}
		for d := range c.dims { // small and large positions
			h.Args[1].Access.Stride[d] = int64(rng.IntN(7))
		}
		if c.stands {
			h.Args[3].Access.Stride[0] = 0
		}
		want := reference(t, k, h)
		for on, d := range ds {
			bound(t, d, k, h, func(l *runtime.Launch) {
				r, err := d.prepareFor(l, d.threadsOf())
				if err != nil {
					t.Fatal(err)
				}
				if r.swapped != c.swaps {
					t.Errorf("%v with inputs along %d: swapped is %t", c.dims, c.along, r.swapped)
				}
				if err := d.Run([]runtime.Launch{*l}); err != nil {
					t.Fatal(err)
				}
				compare(t, fmt.Sprintf("%s, %v", on, c.dims), k, contents(t, d, k, h, l), want)
			})
		}
	}
}
