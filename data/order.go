package data

import (
	"math/bits"
	"math/rand/v2"
)

// splitEpoch is the number of the order that Split deals by: no loader gets there.
const splitEpoch = 1<<64 - 1

// shuffle makes order a permutation of 0 to len(order)-1 that depends on its length, the
// seed and the epoch only, by the shuffle of Fisher and Yates (Durstenfeld, 1964). It is
// written out so that it stays what it is: runs that are resumed rely on it.
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

// below is a uniform draw from [0, n), by Lemire's method (2019).
func below(draw *rand.PCG, n uint64) uint64 {
	hi, lo := bits.Mul64(draw.Uint64(), n)
	if lo < n {
		for least := -n % n; lo < least; {
			hi, lo = bits.Mul64(draw.Uint64(), n)
		}
	}
	return hi
}
