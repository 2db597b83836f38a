//go:build cgo && unix

package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// TestFoldLevels folds rows at every ISA level there is: each is compiled on its
// own, and GCC 12 has lost lanes at one level where the others were right.
func TestFoldLevels(t *testing.T) {
	best, _ := nativeLevel()
	if best < 0 {
		missing(t, "the C that folds fails its probe here")
	}
	d := openTest(t, runtime.Config{Tier: -1, Threads: 1})
	lengths := []int64{5, 64, 128, 200, 4160}
	if testing.Short() {
		lengths = lengths[:4]
	}
	defer useFolds(best)
	for level := range best + 1 {
		useFolds(level)
		for op := range ir.NumOps {
			for _, dt := range kerneltest.DTypes {
				if !folds(op, dt) {
					continue
				}
				k := folding(op, dt)
				for _, n := range lengths {
					h := kerneltest.NewLaunch(rand.New(rand.NewPCG(6, uint64(n))), k, []int64{20, n}, 1, kerneltest.Dense)
					compare(t, "rows", k, onDevice(t, d, k, h), reference(t, k, h))
					if t.Failed() {
						t.Fatalf("level %d: %v of %v over rows of %d", level, op, dt, n)
					}
				}
			}
		}
	}
}
