package millrace

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Integers makes a tensor of independent draws, uniform on the whole numbers from lo up to but
// not including hi, in an integer dtype: NumPy's integers, PyTorch's randint. They depend on
// seed, the element's row-major position i, lo and hi only, and are the same on every device. Take
// another seed for every call, such as those of a [Generator].
//
// Element i takes words 2i and 2i+1 of a stream of Philox4x32-10 as one number x, of which word 2i
// is the upper half, and is lo + x·(hi-lo)/2^64, rounded down. Word j is the first word of the
// block for the counter (j, 0, high, 0), where high is the upper half of the seed's splitmix64; its
// lower half is the key. Where hi-lo is 2^32 and more, and the dtype has 64 bits, words have 64
// bits, too: the block's first word is the lower half and its second the upper, for the counter
// (j, 0, 0, 0) and all of the splitmix64 as the key; the product is by 2^128. A range of 2^32 in a
// dtype of 32 bits is lo + word 2i.
//
// Another dtype, and one that cannot hold lo or hi-1, is ErrDType; a range without numbers, and
// 2^31 elements and more, are ErrShape. Shapes are as for [Full].
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
	if word == Uint32 && span > math.MaxUint32 { // all that there are
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

// placed is lo more than x, which nobody else has and which is no negative number, in
// an integer dtype that holds the sum.
func placed(x *Tensor, dt DType, lo int64) *Tensor {
	wide := dt
	if dt.Bits() < 32 {
		wide = Int32
	}
	r := x
	if x.DType() != wide {
		if wide.Bits() == x.DType().Bits() {
			r = x.Bitcast(wide) // it wraps, and back with lo
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

// drawable refuses shapes of more elements than there are words in a stream.
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

// Permutation makes the numbers from 0 up to but not including n in a random order, each order
// as likely, of dtype Int32 or Int64 (else ErrDType): NumPy's permutation, PyTorch's
// randperm. x.Take(Permutation(…), 0) is x shuffled. Position i comes where word 2i+1, as the upper
// half, and word 2i, as the lower one, of the stream of [Integers] stand among those of the others;
// equal ones keep their order. It is the same on every device. A negative n, and one above
// 2^31-1, are ErrShape.
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
	byHigh := moved.ArgSortAs(dt, 0, false) // keeps the order of equal ones
	r := byLow.Take(byHigh, 0, IndexClamp)
	done(low, high, byLow, moved, byHigh)
	return r
}

// Multinomial draws n positions along the last dimension of weights, each as likely as its share
// of their sum, for each row of the others: PyTorch's multinomial, and with [Tensor.Take]
// NumPy's choice. With replace one position may be drawn several times, else none is, and
// they come in the order in which they were drawn. The result has dtype dt, Int32 or Int64, and
// n in place of the last dimension.
//
// More than 2^20 weights a row are drawn from in float64: steps of float32 are too coarse for
// them. A device without float64 takes no more than that, else ErrUnsupported.
//
// Weights are floats (else ErrDType) and are not looked at: with negative ones, NaN or a sum of
// 0 the positions mean nothing; without replace those of weight 0 come last. Draws depend
// on seed as those of [Uniform] do; where sums or logarithms differ in the last
// bit, as on a GPU, a position may be another. A negative n, a dimension without elements or,
// without replace, with fewer than n, and more draws than can be addressed are ErrShape. There is no gradient.
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
	// Whose turn comes first where each comes at a rate that is its weight.
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

// coarseWeights is how many weights float32 tells apart well: its uniform numbers have steps of
// 2^-24, a sixteenth of the share of one of so many equal weights.
const coarseWeights = 1 << 20

// drawn are the first positions at which the sum of the weights is above u's share of all.
func drawn(dt DType, w, u *Tensor) *Tensor {
	last := w.Rank() - 1
	sums := w.CumSum(-1)
	ends := make([]Range, last+1)
	ends[last] = R(w.Dim(-1)-1, End)
	total := sums.Slice(ends...)
	share := u.Mul(total)
	below := share.Lt(total) // not where it was rounded up
	v := WhereScalar(below, share, 0)
	at := search(sums, v, true)
	in := at.ClampScalar(0, float64(w.Dim(-1)-1))
	done(sums, total, share, below, v, at)
	return narrowed(in, dt)
}
