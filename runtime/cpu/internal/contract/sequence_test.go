package contract

import (
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// TestContractSequence runs contractions of many sizes on the same executors, which reuse their
// jobs and memory, with and without packing for all threads.
func TestContractSequence(t *testing.T) {
	for _, threads := range []int{1, 2} {
		all, rng := contractors(threads), rand.New(rand.NewPCG(17, uint64(threads)))
		sizes := [][3]int64{{300, 200, 520}, {5, 40, 20}, {64, 64, 64}, {1, 700, 300}, {200, 33, 700}, {20, 9, 7}, {1500, 40, 30}, {40, 1500, 30}, {900, 900, 20}}
		for range 24 {
			s := sizes[rng.IntN(len(sizes))]
			checkContraction(t, all, rng, []ir.DType{ir.Float32, ir.Float64, ir.Int32}[rng.IntN(3)], s[0], s[1], s[2])
		}
	}
}
