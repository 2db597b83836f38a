package fold

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// Sorts of rows. Elements become unsigned keys in the total order of docs/numerics.md. Short rows
// use insertion sort. Long rows use a radix sort, byte by byte from the lowest; it skips bytes
// that all keys share. Keys are stored as their distance from the row's least key, which often
// needs few bytes, and with no more data than necessary: as keys alone if positions do not matter;
// as words of key and position if the distance has up to 32 bits; else as items.

// sortItem is an element of a row whose key needs a whole word.
type sortItem struct {
	key uint64
	at  int64
}

const (
	// insertedRow is the most elements of a row that is sorted by insertion.
	insertedRow = 40
	// digitValues is the number of values of a digit.
	digitValues = 256
)

type digitCounts [digitValues]int

// SortBytes returns the bytes that sorting n elements needs: two lists of items, and counts.
func SortBytes(n int64) int64 {
	return 2*n*int64(unsafe.Sizeof(sortItem{})) + 8*int64(unsafe.Sizeof(digitCounts{}))
}

// Sort sorts rows.
type Sort struct {
	DT         ir.DType // of the elements
	Size       int64    // bytes of one element of the result
	Descending bool
	Positions  bool // the result is the elements' old positions
}

// Row sorts a row of n elements to out. work has room for SortBytes(n).
func (o *Sort) Row(out, values unsafe.Pointer, n int64, work unsafe.Pointer) {
	switch size := o.DT.Size(); {
	case n == 0: // nothing to sort, and no memory after the counts
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

// keyImage maps elements, as bits, to keys and back.
type keyImage[E rawBits] struct {
	top      E // an element's sign bit, 0 for unsigned dtypes
	infinity E // for floats; greater bits are NaN
	flip     E // all bits for a descending order, else 0
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
		return ^E(0) // NaN is last in both orders
	}
	return x ^ (-(x >> k.last) | k.top) ^ k.flip
}

// back returns the element of a key. Every NaN becomes the same NaN.
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

// span returns the least key and the distance of the greatest key from it. Keys of floats usually
// differ in their highest byte, so it does not search them.
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
func sortElements[E rawBits, K uint32 | uint64](o *Sort, out, values unsafe.Pointer, n int64, work unsafe.Pointer) {
	image := keyImageOf[E](o.DT, o.Descending)
	from := memory.Elements[E](values, n)
	least, span := image.span(from)
	digits := (bits.Len64(uint64(span)) + 7) / 8
	count := memory.Elements[digitCounts](work, int64(digits))
	work = unsafe.Add(work, 8*unsafe.Sizeof(digitCounts{}))
	switch {
	case !o.Positions:
		x := memory.Elements[K](work, 2*n)
		for i, e := range from {
			x[i] = K(image.of(e) - least)
		}
		sorted := sortWords(x[:n], x[n:], count, 0)
		to := memory.Elements[E](out, n)
		for i, key := range sorted {
			to[i] = image.back(E(key) + least)
		}
	case digits <= 4 && n <= 1<<32:
		x := memory.Elements[uint64](work, 2*n)
		for i, e := range from {
			x[i] = uint64(image.of(e)-least)<<32 | uint64(i)
		}
		sorted := sortWords(x[:n], x[n:], count, 32)
		if o.Size == 4 {
			for i, w := range sorted {
				memory.Elements[uint32](out, n)[i] = uint32(w)
			}
			return
		}
		for i, w := range sorted {
			memory.Elements[uint64](out, n)[i] = uint64(uint32(w))
		}
	default:
		x := memory.Elements[sortItem](work, 2*n)
		for i, e := range from {
			x[i] = sortItem{uint64(image.of(e) - least), int64(i)}
		}
		for i, it := range sortItems(x[:n], x[n:], count) {
			operands.SetElement(unsafe.Add(out, int64(i)*o.Size), int32(o.Size), uint64(it.at))
		}
	}
}

// sortWords sorts x by the digits from bit shift on, as many as there are counts. The bits below
// shift, if any, are already in order. The result is in x or in y.
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

// start converts counts to the first positions of each value's elements. It returns false if all n
// elements have the same value.
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

// sortItems is sortWords for items.
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
