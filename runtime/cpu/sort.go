package cpu

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// Sorts of rows: elements become unsigned keys in the total order of
// docs/numerics.md. Short rows are inserted; long ones go through a radix sort, byte by
// byte from the lowest, leaving out bytes that all keys share. What is sorted is how far a
// key is from the row's least, in few bytes often, and no more than there must be: keys alone
// where positions do not matter, else those of up to 32 bits in front of their positions in
// one word.

// sortItem is an element of a row whose key takes a word.
type sortItem struct {
	key uint64
	at  int64
}

const (
	// insertedRow is the most elements of a row that is sorted by insertion.
	insertedRow = 40
	// digitValues are those of a digit.
	digitValues = 256
)

type digitCounts [digitValues]int

// sortBytes is the memory that sorting n elements takes: items twice, and counts.
func sortBytes(n int64) int64 {
	return 2*n*int64(unsafe.Sizeof(sortItem{})) + 8*int64(unsafe.Sizeof(digitCounts{}))
}

// sortRow sorts a row of n elements, to out.
func sortRow(o *rowOp, out, values unsafe.Pointer, n int64, work unsafe.Pointer) {
	switch size := o.dt.Size(); {
	case n == 0: // and no memory behind the counts
	case size == 1:
		sortElements[uint8, uint32](o, out, values, n, work)
	case size == 2:
		sortElements[uint16, uint32](o, out, values, n, work)
	case size == 4:
		sortElements[uint32, uint32](o, out, values, n, work)
	default:
		sortElements[uint64, uint64](o, out, values, n, work)
	}
}

type rawBits interface {
	uint8 | uint16 | uint32 | uint64
}

// keyImage turns elements, as bits, into keys and back.
type keyImage[E rawBits] struct {
	top      E // an element's highest bit where that is a sign, else 0
	infinity E // of a float; bits above are NaN
	flip     E // all bits where the order is descending
	last     uint
}

func keyImageOf[E rawBits](dt ir.DType, descending bool) (k keyImage[E]) {
	k.last = uint(dt.Bits() - 1)
	if dt == ir.Bool {
		k.last = 7
	}
	if dt.IsFloat() || dt.IsSigned() {
		k.top = 1 << k.last
	}
	if dt.IsFloat() {
		k.infinity = E(ir.FloatBits(dt, math.Inf(1)))
	}
	if descending {
		k.flip = ^E(0)
	}
	return k
}

func (k *keyImage[E]) of(x E) E {
	if k.infinity == 0 {
		return x ^ k.top ^ k.flip
	}
	if x&^k.top > k.infinity {
		return ^E(0) // NaN is last, either way
	}
	return x ^ (-(x >> k.last) | k.top) ^ k.flip
}

// back is the element of a key; any NaN stands for any other.
func (k *keyImage[E]) back(x E) E {
	if k.infinity == 0 {
		return x ^ k.top ^ k.flip
	}
	if x == ^E(0) {
		return k.infinity | k.infinity>>1
	}
	x ^= k.flip
	return x ^ ((x >> k.last) - 1 | k.top)
}

// span finds the least key, and how far the greatest is from it. Those of floats differ in
// their highest byte as a rule, so nobody looks.
func (k *keyImage[E]) span(list []E) (least, span E) {
	if k.infinity != 0 {
		return 0, ^E(0)
	}
	least = k.of(list[0])
	most := least
	for _, x := range list {
		key := k.of(x)
		least, most = min(least, key), max(most, key)
	}
	return least, most - least
}

// sortElements sorts elements whose keys fit K.
func sortElements[E rawBits, K uint32 | uint64](o *rowOp, out, values unsafe.Pointer, n int64, work unsafe.Pointer) {
	image := keyImageOf[E](o.dt, o.descending)
	from := elements[E](values, n)
	least, span := image.span(from)
	digits := (bits.Len64(uint64(span)) + 7) / 8
	count := elements[digitCounts](work, int64(digits))
	work = unsafe.Add(work, 8*unsafe.Sizeof(digitCounts{}))
	switch {
	case !o.positions:
		x := elements[K](work, 2*n)
		for i, e := range from {
			x[i] = K(image.of(e) - least)
		}
		sorted := sortWords(x[:n], x[n:], count, 0)
		to := elements[E](out, n)
		for i, key := range sorted {
			to[i] = image.back(E(key) + least)
		}
	case digits <= 4 && n <= 1<<32:
		x := elements[uint64](work, 2*n)
		for i, e := range from {
			x[i] = uint64(image.of(e)-least)<<32 | uint64(i)
		}
		sorted := sortWords(x[:n], x[n:], count, 32)
		if o.size == 4 {
			for i, w := range sorted {
				elements[uint32](out, n)[i] = uint32(w)
			}
			return
		}
		for i, w := range sorted {
			elements[uint64](out, n)[i] = uint64(uint32(w))
		}
	default:
		x := elements[sortItem](work, 2*n)
		for i, e := range from {
			x[i] = sortItem{uint64(image.of(e) - least), int64(i)}
		}
		for i, it := range sortItems(x[:n], x[n:], count) {
			storeElement(unsafe.Add(out, int64(i)*o.size), int32(o.size), uint64(it.at))
		}
	}
}

// sortWords sorts x by its digits from bit shift on, of which there are as many as counts.
// What is below, if anything, is in order. The result is in x or in y.
func sortWords[K uint32 | uint64](x, y []K, count []digitCounts, shift int) []K {
	if len(x) <= insertedRow {
		for i := 1; i < len(x); i++ {
			it, j := x[i], i
			for ; j > 0 && x[j-1] > it; j-- {
				x[j] = x[j-1]
			}
			x[j] = it
		}
		return x
	}
	clear(count)
	for d := range count {
		c, s := &count[d], shift+8*d
		for _, w := range x {
			c[uint8(w>>s)]++
		}
	}
	for d := range count {
		c, s := &count[d], shift+8*d
		if !c.start(uint8(x[0]>>s), len(x)) {
			continue
		}
		y = y[:len(x)]
		for _, w := range x {
			at := &c[uint8(w>>s)]
			y[*at] = w
			*at++
		}
		x, y = y, x
	}
	return x
}

// start turns counts into where each value's elements go; false where one that all n have
// is the only one.
func (c *digitCounts) start(first uint8, n int) bool {
	if c[first] == n {
		return false
	}
	sum := 0
	for v, here := range c {
		c[v] = sum
		sum += here
	}
	return true
}

// sortItems is sortWords of items.
func sortItems(x, y []sortItem, count []digitCounts) []sortItem {
	if len(x) <= insertedRow {
		for i := 1; i < len(x); i++ {
			it, j := x[i], i
			for ; j > 0 && x[j-1].key > it.key; j-- {
				x[j] = x[j-1]
			}
			x[j] = it
		}
		return x
	}
	clear(count)
	for d := range count {
		c, s := &count[d], 8*d
		for i := range x {
			c[uint8(x[i].key>>s)]++
		}
	}
	for d := range count {
		c, s := &count[d], 8*d
		if !c.start(uint8(x[0].key>>s), len(x)) {
			continue
		}
		y = y[:len(x)]
		for _, it := range x {
			at := &c[uint8(it.key>>s)]
			y[*at] = it
			*at++
		}
		x, y = y, x
	}
	return x
}
