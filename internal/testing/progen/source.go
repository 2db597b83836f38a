package progen

import "math/rand/v2"

// source is the source of choices: a seeded generator, or the bytes of a fuzzer, which then mutates
// choices.
type source interface {
	// intn is a number in [0, n); n is at least 1.
	intn(n int) int
	uint64() uint64
}

type seeded struct{ r *rand.Rand }

func (s seeded) intn(n int) int { return s.r.IntN(n) }
func (s seeded) uint64() uint64 { return s.r.Uint64() }

func newSeeded(seed, stream uint64) seeded {
	return seeded{rand.New(rand.NewPCG(seed, stream))}
}

// bytesSource uses one byte per small choice; a fuzzer's change of one byte therefore changes one
// choice. At the end of the data it always chooses 0.
type bytesSource struct{ data []byte }

func (b *bytesSource) byte() byte {
	if len(b.data) == 0 {
		return 0
	}
	c := b.data[0]
	b.data = b.data[1:]
	return c
}

func (b *bytesSource) intn(n int) int {
	v := uint(b.byte())
	if n > 256 {
		v = v<<8 | uint(b.byte())
	}
	return int(v % uint(n))
}

func (b *bytesSource) uint64() uint64 {
	v := uint64(0)
	for range 8 {
		v = v<<8 | uint64(b.byte())
	}
	return v
}

func chance(s source, percent int) bool { return s.intn(100) >= 100-percent }

func pick[T any](s source, of []T) T { return of[s.intn(len(of))] }
