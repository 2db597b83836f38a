package millrace

import (
	enc "encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"
)

// Generator makes seeds for functions that take one, another each time: [Uniform], [Normal],
// [Integers], [Permutation], [Multinomial]. The random numbers are the same on every device, and
// after saving and restoring the state. The zero Generator has a key of its own; [NewGenerator]
// makes others. All methods are safe for concurrent use. A nil Generator gives seeds of 0 and has
// no state.
//
// Seed n, from 0 on, is the first two words of Philox4x32-10 for the counter n, low word first.
// The key has 64 bits: the splitmix64 of the generator's seed. A [Recording] keeps the seeds that
// its function was called with.
type Generator struct {
	mu         sync.Mutex
	key, count uint64
}

// NewGenerator makes a generator whose seeds depend only on seed.
func NewGenerator(seed uint64) *Generator { return &Generator{key: mixed(seed)} }

// Seed returns the next seed.
func (g *Generator) Seed() uint64 {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
	return philoxWord(g.count-1, 0, g.key)
}

// Split returns a generator with seeds of its own, for a goroutine or a part of a program whose
// random numbers should not depend on how many the others draw. It is independent of this
// generator and of all others that were split from it. A Split advances the counter like a seed:
// the new key is the Philox word of the counter with a third word of 1.
func (g *Generator) Split() *Generator {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
	return &Generator{key: philoxWord(g.count-1, 1, g.key)}
}

var errNilGenerator = errors.New("millrace: nil Generator")

const generatorVersion = 1

// MarshalBinary returns the generator's state in 17 bytes: a 1, then key and count, least byte
// first.
func (g *Generator) MarshalBinary() ([]byte, error) {
	if g == nil {
		return nil, errNilGenerator
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	b := enc.LittleEndian.AppendUint64([]byte{generatorVersion}, g.key)
	return enc.LittleEndian.AppendUint64(b, g.count), nil
}

// UnmarshalBinary restores a state that MarshalBinary returned. Other bytes are an error and
// change nothing.
func (g *Generator) UnmarshalBinary(state []byte) error {
	if g == nil {
		return errNilGenerator
	}
	if len(state) != 17 || state[0] != generatorVersion {
		return fmt.Errorf("millrace: %d bytes are no state of a Generator", len(state))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.key, g.count = enc.LittleEndian.Uint64(state[1:]), enc.LittleEndian.Uint64(state[9:])
	return nil
}

// mixed spreads a seed over 64 bits, as splitmix64 does (Steele, Lea, Flood, 2014).
func mixed(seed uint64) uint64 {
	seed += 0x9e3779b97f4a7c15
	seed = (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
	seed = (seed ^ seed>>27) * 0x94d049bb133111eb
	return seed ^ seed>>31
}

// philoxWord returns the first half of a block of Philox4x32-10, as package ir's op computes it.
func philoxWord(counter, high, key uint64) uint64 {
	c := [4]uint32{uint32(counter), uint32(counter >> 32), uint32(high), uint32(high >> 32)}
	k := [2]uint32{uint32(key), uint32(key >> 32)}
	for range 10 {
		h0, l0 := bits.Mul32(0xD2511F53, c[0])
		h1, l1 := bits.Mul32(0xCD9E8D57, c[2])
		c = [4]uint32{h1 ^ c[1] ^ k[0], l1, h0 ^ c[3] ^ k[1], l0}
		k[0], k[1] = k[0]+0x9E3779B9, k[1]+0xBB67AE85
	}
	return uint64(c[1])<<32 | uint64(c[0])
}
