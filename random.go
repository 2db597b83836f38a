package millrace

import (
	"fmt"
	"math"
	"math/bits"

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

// IntegersOn is [Integers] in a place.
func IntegersOn(p Place, dt DType, seed uint64, lo, hi int64, shape ...int) *Tensor {
	return integersIn(p, dt, seed, lo, hi, shape)
}

func integersIn(p Place, dt DType, seed uint64, lo, hi int64, shape []int) *Tensor {
	const name = "integers"
	place, err := placeOf(p)
	switch {
	case err != nil:
	case !dt.IsInt():
		err = dtypeErr("%v is no integer type", dt)
	case lo >= hi:
		err = shapeErr("no numbers from %d up to %d", lo, hi)
	case !holdsInt(dt, lo) || !holdsInt(dt, hi-1):
		err = dtypeErr("%v cannot hold %d to %d", dt, lo, hi-1)
	default:
		err = drawable(shape)
	}
	if err != nil {
		return failedAt(place, name, err)
	}
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
	sum := low.Add(more)
	over := sum.Lt(low)
	carry := over.Cast(word)
	r := high.Add(carry)
	done(x, y, n, high, low, more, sum, over, carry)
	return placed(r, dt, lo)
}

// placed returns lo + x in an integer dtype that holds the sum. x is not negative, and only the
// caller has it; placed ends it.
func placed(x *Tensor, dt DType, lo int64) *Tensor {
	wide := dt
	if dt.Bits() < 32 {
		wide = Int32
	}
	r := x
	if x.DType() != wide {
		if wide.Bits() == x.DType().Bits() {
			r = x.Bitcast(wide) // it wraps around, and wraps back when lo is added
		} else {
			r = x.Cast(wide)
		}
		done(x)
	}
	s := create(stream.PlaceOf(&r.v), "integers", ir.Full, wide, nil, uint64(lo)<<(64-wide.Bits())>>(64-wide.Bits()), 0, 1)
	sum := r.Add(s)
	done(r, s)
	return narrowed(sum, dt)
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
		return shapeErr("%v: 2^31 elements and more", s)
	}
	return nil
}

// words draws numbers of 32 or 64 bits, two for each element of a shape.
type words struct {
	place stream.Place
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
	h, k := w.number(high), w.number(key)
	r := at.Philox(h, k)
	done(at, h, k)
	return r
}

// Permutation makes the numbers from 0 up to but not including n in a random order, with all
// orders equally likely: NumPy's permutation, PyTorch's randperm. The dtype is Int32 or Int64
// (else ErrDType). x.Take(Permutation(…), 0) is x shuffled. The order is that of sorting
// positions i by a number with word 2i+1 of the stream of [Integers] as its upper half and word
// 2i as its lower half; equal numbers keep their order. It is the same on every device. A
// negative n, or one above 2^31-1, is ErrShape.
func Permutation(dt DType, seed uint64, n int) *Tensor { return permutation(anywhere{}, dt, seed, n) }

// PermutationOn is [Permutation] in a place.
func PermutationOn(p Place, dt DType, seed uint64, n int) *Tensor {
	return permutation(p, dt, seed, n)
}

func permutation(p Place, dt DType, seed uint64, n int) *Tensor {
	const name = "permutation"
	place, err := placeOf(p)
	switch {
	case err != nil:
	case !ir.IndexDTypes.Has(dt):
		err = dtypeErr("positions of %v: Int32 or Int64", dt)
	case n < 0 || n > maxSearch:
		err = shapeErr("%d numbers", n)
	}
	if err != nil {
		return failedAt(place, name, err)
	}
	w := words{place, name, Uint32, mixed(seed), []int{n}}
	low, high := w.draw(0), w.draw(1)
	byLow := low.ArgSortAs(dt, 0, false)
	moved := high.Take(byLow, 0, IndexClamp)
	byHigh := moved.ArgSortAs(dt, 0, false) // equal numbers keep their order
	r := byLow.Take(byHigh, 0, IndexClamp)
	done(low, high, byLow, moved, byHigh)
	return r
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
func Multinomial(dt DType, seed uint64, weights *Tensor, n int, replace bool) *Tensor {
	const name = "multinomial"
	h := hold(name, &weights)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	shape := weights.Shape()
	last := len(shape) - 1
	switch {
	case !weights.DType().IsFloat():
		return failed(name, dtypeErr("%v weights: floats only", weights.DType()), weights)
	case !ir.IndexDTypes.Has(dt):
		return failed(name, dtypeErr("positions of %v: Int32 or Int64", dt), weights)
	case last < 0 || shape[last] == 0 || shape[last] > maxSearch || n < 0 || !replace && n > shape[last]:
		return failed(name, shapeErr("%d positions of %v", n, weights.shape()), weights)
	}
	if replace {
		shape[last] = n
	}
	if err := ir.Shape(shape).Check(); err != nil {
		return failed(name, shapeErr("%v", err), weights)
	}
	w := plainly(weights)
	wide := weights.DType().Compute()
	if shape := weights.shape(); wide == Float32 && shape[last] > coarseWeights {
		wide = Float64
		if !weights.Stream().Device().Supports(wide) {
			done(w)
			return failed(name, fmt.Errorf("%w: more than %d weights need float64", ErrUnsupported, coarseWeights), weights)
		}
	}
	if wide != weights.DType() {
		done(w)
		w = weights.Cast(wide)
	}
	defer done(w)
	u := random(weights.Stream(), ir.Uniform, w.DType(), seed, shape)
	defer done(u)
	if replace {
		return drawn(dt, w, u)
	}
	// If each position arrives at random with a rate equal to its weight, the first n arrivals
	// are the positions.
	back := u.Neg()
	log := back.Log1p()
	minus := log.Neg()
	turn := minus.Div(w)
	order := turn.ArgSortAs(dt, -1, false)
	head := make([]Range, last+1)
	head[last] = R(0, n)
	r := order.Slice(head...)
	done(back, log, minus, turn, order)
	return r
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
	v := WhereScalar(below, share, 0)
	at := search(sums, v, true)
	in := at.ClampScalar(0, float64(w.Dim(-1)-1))
	done(sums, total, share, below, v, at)
	return narrowed(in, dt)
}
