package data

import (
	"math/bits"
	"math/rand/v2"
)

// splitEpoch is the epoch number of Split's order, which no loader reaches.
const splitEpoch = 1<<64 - 1

// shuffle makes order a permutation of 0 to len(order)-1 that depends on its length, the seed and
// the epoch only, by the shuffle of Fisher and Yates (Durstenfeld, 1964). It does not use the
// standard library's shuffle, because resumed runs rely on a permutation that never changes.
func shuffle(order []uint32, seed, epoch uint64) {
	for i := range order {
		order[i] = uint32(i)
	}
	draw := rand.NewPCG(seed, epoch)
	for i := len(order) - 1; i > 0; i-- {
		j := below(draw, uint64(i)+1)
		order[i], order[j] = order[j], order[i]
	}
}

// below draws a uniform number from [0, n), by Lemire's method (2019).
func below(draw *rand.PCG, n uint64) uint64 {
	hi, lo := bits.Mul64(draw.Uint64(), n)
	if lo < n {
		for least := -n % n; lo < least; {
			hi, lo = bits.Mul64(draw.Uint64(), n)
		}
	}
	return hi
}
