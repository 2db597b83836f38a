package millrace

import (
	enc "encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Integers makes a tensor of independent random numbers, uniform on the whole numbers from lo up
// to but not including hi, in an integer dtype: NumPy's integers, PyTorch's randint. Each depends
// only on seed, the element's row-major position i, lo and hi, and is the same on every device.
// Use another seed for every call, such as one of a [Generator].
//
// Element i is lo + x·(hi-lo)/2^64, rounded down. The number x has word 2i of a stream of
// Philox4x32-10 as its upper half and word 2i+1 as its lower half. Word j is the first word of
// the block for the counter (j, 0, high, 0). Here high is the upper half of the seed's
// splitmix64, whose lower half is the key. If hi-lo is 2^32 or more, and the dtype has 64 bits,
// words have 64 bits too: the block's first word is the lower half of a word and its second one
// the upper half, the counter is (j, 0, 0, 0), the key is the whole splitmix64, and the product
// is divided by 2^128. For a range of 2^32 in a dtype of 32 bits, element i is lo + word 2i.
//
// Another dtype, and one that cannot hold lo or hi-1, is ErrDType. A range without numbers is
// ErrShape, and so are 2^31 elements or more. Shapes are as for [Full].
func Integers(dt DType, seed uint64, lo, hi int64, shape ...int) *Tensor {
	return integersIn(anywhere{}, dt, seed, lo, hi, shape)
}

// IntegersOn is [Integers] in a place, with the same shapes, dtypes and errors. A nil place, or one
// that was not opened, gives a tensor with an error.
func IntegersOn(p Place, dt DType, seed uint64, lo, hi int64, shape ...int) *Tensor {
	return integersIn(p, dt, seed, lo, hi, shape)
}

func integersIn(p Place, dt DType, seed uint64, lo, hi int64, shape []int) (r *Tensor) {
	const name = "integers"
	place, err := placeOf(p)
	switch {
	case err != nil:
	case !dt.IsInt():
		err = dtypeErr("%v is not an integer dtype", dt)
	case lo >= hi:
		err = shapeErr("there are no numbers from %d up to %d", lo, hi)
	case !holdsInt(dt, lo) || !holdsInt(dt, hi-1):
		err = dtypeErr("%v cannot hold %d to %d", dt, lo, hi-1)
	default:
		err = drawable(shape)
	}
	if err != nil {
		return failedAt(place, name, err)
	}
	place, c := composeIn(name, place)
	defer c.end(&r)
	span := uint64(hi) - uint64(lo)
	word := Uint32
	if span > math.MaxUint32 && dt.Bits() == 64 {
		word = Uint64
	}
	w := words{place, name, word, mixed(seed), shape}
	x := w.draw(0)
	if word == Uint32 && span > math.MaxUint32 { // the range has all numbers of 32 bits
		return placed(x, dt, lo)
	}
	y := w.draw(1)
	n := w.number(span)
	high, low, more := x.MulHigh(n), x.Mul(n), y.MulHigh(n)
	carry := low.Add(more).Lt(low).Cast(word)
	return placed(high.Add(carry), dt, lo)
}

// placed returns lo + x in an integer dtype that holds the sum. x is not negative.
func placed(x *Tensor, dt DType, lo int64) *Tensor {
	wide := dt
	if dt.Bits() < 32 {
		wide = Int32
	}
	switch {
	case x.DType() == wide:
	case x.DType().Bits() == wide.Bits():
		x = x.Bitcast(wide) // it wraps around, and wraps back when lo is added
	default:
		x = x.Cast(wide)
	}
	s := create(at{stream.PlaceOf(&x.v), x.steps()}, "integers", ir.Full, wide, nil, uint64(lo)<<(64-wide.Bits())>>(64-wide.Bits()), 0, 1)
	return inDType(x.Add(s), dt)
}

func holdsInt(dt DType, x int64) bool {
	if !dt.IsSigned() {
		return x >= 0 && bits.Len64(uint64(x)) <= dt.Bits()
	}
	n := 64 - dt.Bits()
	return x<<n>>n == x
}

// drawable returns an error for a shape of more elements than a stream has words for.
func drawable(shape []int) error {
	s := append(ir.Shape{}, shape...)
	if err := s.Check(); err != nil {
		return shapeErr("%v", err)
	}
	if s.Elems() > math.MaxInt32 {
		return shapeErr("%v has 2^31 elements or more", s)
	}
	return nil
}

// words draws numbers of 32 or 64 bits, two for each element of a shape.
type words struct {
	place at
	name  string
	dt    DType
	key   uint64
	shape []int
}

func (w words) number(x uint64) *Tensor {
	return create(w.place, w.name, ir.Full, w.dt, nil, x, 0, 1)
}

func (w words) draw(which uint64) *Tensor {
	at := create(w.place, w.name, ir.Iota, w.dt, w.shape, which, 2, 2)
	high, key := w.key>>32, w.key&math.MaxUint32
	if w.dt == Uint64 {
		high, key = 0, w.key
	}
	return at.Philox(w.number(high), w.number(key))
}

// Permutation makes the numbers from 0 up to but not including n in a random order, with all
// orders equally likely: NumPy's permutation, PyTorch's randperm. The dtype is Int32 or Int64
// (else ErrDType). x.Take(Permutation(…), 0) is x shuffled. The order is that of sorting
// positions i by a number with word 2i+1 of the stream of [Integers] as its upper half and word
// 2i as its lower half; equal numbers keep their order. It is the same on every device. A
// negative n, or one above 2^31-1, is ErrShape.
func Permutation(dt DType, seed uint64, n int) *Tensor { return permutation(anywhere{}, dt, seed, n) }

// PermutationOn is [Permutation] in a place, with the same shapes, dtypes and errors. A nil place,
// or one that was not opened, gives a tensor with an error.
func PermutationOn(p Place, dt DType, seed uint64, n int) *Tensor {
	return permutation(p, dt, seed, n)
}

func permutation(p Place, dt DType, seed uint64, n int) (r *Tensor) {
	const name = "permutation"
	place, err := placeOf(p)
	switch {
	case err != nil:
	case !ir.IndexDTypes.Has(dt):
		err = dtypeErr("positions cannot have dtype %v, only Int32 or Int64", dt)
	case n < 0 || n > maxSearch:
		err = shapeErr("the number of elements %d is negative or above 2^31-1", n)
	}
	if err != nil {
		return failedAt(place, name, err)
	}
	place, c := composeIn(name, place)
	defer c.end(&r)
	w := words{place, name, Uint32, mixed(seed), []int{n}}
	low, high := w.draw(0), w.draw(1)
	byLow := low.ArgSortAs(dt, 0, false)
	byHigh := high.Take(byLow, 0, IndexClamp).ArgSortAs(dt, 0, false) // equal numbers keep their order
	return byLow.Take(byHigh, 0, IndexClamp)
}

// Multinomial draws n positions along the last dimension of weights, for each row of the other
// dimensions: PyTorch's multinomial, and with [Tensor.Take] NumPy's choice. The probability of a
// position is its weight's share of the row's sum. With replace a position may be drawn several
// times. Without it, positions are distinct, in the order in which they were drawn. The result
// has dtype dt, Int32 or Int64 (else ErrDType), and n in place of the last dimension.
//
// With more than 2^20 weights in a row, Multinomial computes in float64, because the steps of
// float32 are too coarse. A device without float64 takes at most 2^20, else ErrUnsupported.
//
// Weights are floats (else ErrDType), and their values are not checked. With negative weights,
// NaN or a sum of 0, the positions are meaningless. Without replace, positions of weight 0 come
// last. The positions depend on seed as the numbers of [Uniform] do. If sums or logarithms differ
// in the last bit, as on a GPU, a position may differ. A negative n is ErrShape, and so are a
// dimension without elements or, without replace, with fewer than n, and more positions than can
// be addressed. There is no gradient.
func Multinomial(dt DType, seed uint64, weights *Tensor, n int, replace bool) (r *Tensor) {
	const name = "multinomial"
	c := compose(name, nil, &weights)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	shape := weights.Shape()
	last := len(shape) - 1
	switch {
	case !weights.DType().IsFloat():
		return failed(name, dtypeErr("weights cannot have dtype %v, only floats", weights.DType()), weights)
	case !ir.IndexDTypes.Has(dt):
		return failed(name, dtypeErr("positions cannot have dtype %v, only Int32 or Int64", dt), weights)
	case last < 0 || shape[last] == 0 || shape[last] > maxSearch || n < 0 || !replace && n > shape[last]:
		return failed(name, shapeErr("%d positions cannot be drawn from weights of shape %v", n, weights.shape()), weights)
	}
	if replace {
		shape[last] = n
	}
	if err := ir.Shape(shape).Check(); err != nil {
		return failed(name, shapeErr("%v", err), weights)
	}
	wide := weights.DType().Compute()
	if shape := weights.shape(); wide == Float32 && shape[last] > coarseWeights {
		wide = Float64
		if !weights.Stream().Device().Supports(wide) {
			return failed(name, fmt.Errorf("%w: more than %d weights need float64", ErrUnsupported, coarseWeights), weights)
		}
	}
	w := inDType(unfollowed(weights), wide)
	u := random(beside(weights), ir.Uniform, wide, seed, shape)
	if replace {
		return drawn(dt, w, u)
	}
	// If each position arrives at random with a rate equal to its weight, the first n arrivals
	// are the positions.
	order := u.Neg().Log1p().Neg().Div(w).ArgSortAs(dt, -1, false)
	head := make([]Range, last+1)
	head[last] = R(0, n)
	return order.Slice(head...)
}

// coarseWeights is the largest number of weights that float32 can tell apart well. Its uniform
// numbers have steps of 2^-24, which is a sixteenth of the share of one of 2^20 equal weights.
const coarseWeights = 1 << 20

// drawn returns, for each u, the first position at which the running sum of the weights is above
// u times the total.
func drawn(dt DType, w, u *Tensor) *Tensor {
	last := w.Rank() - 1
	sums := w.CumSum(-1)
	ends := make([]Range, last+1)
	ends[last] = R(w.Dim(-1)-1, End)
	total := sums.Slice(ends...)
	share := u.Mul(total)
	below := share.Lt(total) // false if the product was rounded up to the total
	at := search(sums, WhereScalar(below, share, 0), true)
	return inDType(at.ClampScalar(0, float64(w.Dim(-1)-1)), dt)
}

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

var errNilGenerator = errors.New("millrace: the Generator is nil")

const generatorVersion = 1

// MarshalBinary returns the generator's state in 17 bytes: a 1, then key and count, least byte
// first. Only a nil Generator is an error.
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
		return fmt.Errorf("millrace: the %d bytes are not the state of a Generator", len(state))
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
