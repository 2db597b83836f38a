package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestContractLone checks that a single result over many blocks of k is the same as with the
// blocks one after another.
func TestContractLone(t *testing.T) {
	all := contractors(2)
	for _, dt := range contractDTypes {
		for _, k := range []int64{3 * contractK, 3*contractK + 1, 16 * contractK, 17*contractK + 130, 40*contractK - 3} {
			t.Run(fmt.Sprintf("%v/%d", dt, k), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(31, uint64(k)))
				for range 12 {
					checkContractionOf(t, all, rng, dt, 1, 1, k, func(c *contraction, _, _ []byte) {
						if rng.IntN(4) > 0 { // else random layouts
							c.x.kstride, c.y.kstride = 1, 1
						}
					})
				}
			})
		}
	}
}
