package contract

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestContractSingle checks that a single result over many blocks of k is the same as with the
// blocks one after another.
func TestContractSingle(t *testing.T) {
	all := contractors(2)
	for _, dt := range contractDTypes {
		for _, k := range []int64{3 * blockK, 3*blockK + 1, 16 * blockK, 17*blockK + 130, 40*blockK - 3} {
			t.Run(fmt.Sprintf("%v/%d", dt, k), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(31, uint64(k)))
				for range 12 {
					checkContractionOf(t, all, rng, dt, 1, 1, k, func(c *Contraction, _, _ []byte) {
						if rng.IntN(4) > 0 { // else random layouts
							c.X.KStride, c.Y.KStride = 1, 1
						}
					})
				}
			})
		}
	}
}
