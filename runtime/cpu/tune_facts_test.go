package cpu

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// factsSeen maps facts to the list of choices returned with them.
type factsSeen map[string]string

// add compares a launch's choices with those of earlier launches with the same facts.
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

// TestFactsDecide checks that launches with equal facts and kernels have the same choices,
// whatever their sizes: stored timings are found by facts.
func TestFactsDecide(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 4})
	rng := rand.New(rand.NewPCG(11, 11))
	around := func(n int64) int64 { return n + rng.Int64N(n/2+1) }
	seen := factsSeen{}
	k := rowKernel(t, dotKernels["plain"])
	c := dotCases[0]
	for range 60 {
		size := map[string]int64{"i": around(64), "j": around(64), "k": around(512), "b": 2}
		bound(t, d, k, dotCase(k, c.dims, size, c.left, c.right, c.bias, c.residual, c.result), func(l *runtime.Launch) {
			seen.add(t, fmt.Sprint(size), d.Choices(l))
		})
	}
	if len(seen) < 5 && d.dots.Tiles(ir.Float32, false) {
		t.Errorf("only %d facts", len(seen))
	}
}
