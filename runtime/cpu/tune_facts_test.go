package cpu

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/internal/rowtext"
	"github.com/millrace-go/millrace/runtime"
)

// factsSeen are the lists of choices that were given for facts.
type factsSeen map[string]string

// add holds a unit's choices against those of units with the same facts.
func (seen factsSeen) add(t *testing.T, what string, c runtime.Choices) {
	t.Helper()
	if len(c.List) == 0 {
		return
	}
	var names []string
	for i := range c.List {
		names = append(names, c.List[i].Name)
	}
	list := strings.Join(names, ", ")
	if before, ok := seen[c.Facts]; ok && before != list {
		t.Errorf("%s: %s, of equal facts %s", what, list, before)
	}
	seen[c.Facts] = list
}

// TestFactsDecide: what is kept of a unit is found by its facts, so units of
// equal facts and kernels must have the same choices, whatever their sizes.
func TestFactsDecide(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 4, Tier: -1})
	sum, err := codegen.Parse("in 0 : float32\nin 1 : float32\nout 2 : float32\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = add %0 %1 : float32\nstore 2 %2\n")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(11, 11))
	around := func(n int64) int64 { return n + rng.Int64N(n/2+1) }
	t.Run("points", func(t *testing.T) {
		seen := factsSeen{}
		sizes := []int64{8226, 10965} // equal facts, and another number of threads pays
		for range 150 {
			sizes = append(sizes, around(1<<(13+rng.IntN(6))))
		}
		for _, n := range sizes {
			h := kerneltest.NewLaunch(rng, sum, []int64{n}, 1, kerneltest.Dense)
			bound(t, d, sum, h, func(l *runtime.Launch) { seen.add(t, fmt.Sprint(n), d.Choices([]runtime.Launch{*l})) })
		}
		if len(seen) < 5 {
			t.Errorf("only %d facts", len(seen))
		}
	})
	t.Run("rows", func(t *testing.T) {
		seen := factsSeen{}
		k := rowKernel(t, rowtext.All["softmax"])
		for range 150 {
			dims := []int64{around(1 << rng.IntN(9)), around(1 << (4 + rng.IntN(5)))}
			h := kerneltest.NewLaunch(rng, k, dims, 1, kerneltest.Dense)
			if rng.IntN(2) == 0 {
				for a := range h.Args {
					transpose(h, a, 1)
				}
			}
			bound(t, d, k, h, func(l *runtime.Launch) { seen.add(t, fmt.Sprint(dims), d.Choices([]runtime.Launch{*l})) })
		}
		if len(seen) < 5 {
			t.Errorf("only %d facts", len(seen))
		}
	})
	t.Run("contractions", func(t *testing.T) {
		seen := factsSeen{}
		k := rowKernel(t, dotKernels["plain"])
		c := dotCases[0]
		for range 60 {
			size := map[string]int64{"i": around(64), "j": around(64), "k": around(96), "b": 2}
			bound(t, d, k, dotCase(k, c.dims, size, c.left, c.right, c.bias, c.residual, c.result), func(l *runtime.Launch) {
				seen.add(t, fmt.Sprint(size), d.Choices([]runtime.Launch{*l}))
			})
		}
		if len(seen) < 5 {
			t.Errorf("only %d facts", len(seen))
		}
	})
	t.Run("chains", func(t *testing.T) {
		seen := factsSeen{}
		for range 150 {
			rows, cols := around(1<<(2+rng.IntN(8))), around(256)
			x, y := mustAlloc(t, d, rows*cols*4), mustAlloc(t, d, rows*cols*4)
			seen.add(t, fmt.Sprint(rows, cols), d.Choices(chained(t, d, x, y, rows, cols)[:2]))
			d.Free(x)
			d.Free(y)
		}
		if len(seen) < 5 {
			t.Errorf("only %d facts", len(seen))
		}
	})
}
