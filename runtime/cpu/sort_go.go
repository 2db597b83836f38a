package cpu

import (
	"cmp"
	"slices"
	"unsafe"
)

// sortItem is an element of a row that is sorted. Equal ones stay in the order of their
// places.
type sortItem struct {
	key uint64
	at  int64
}

// sortBytes is the memory that sorting n elements takes.
func sortBytes(n int64) int64 { return n * int64(unsafe.Sizeof(sortItem{})) }

// sortRow sorts a row of n elements in the total order of docs/numerics.md, to out.
func sortRow(dt *rowDType, o *rowOp, out, values unsafe.Pointer, n int64, work unsafe.Pointer) {
	items := unsafe.Slice((*sortItem)(work), n)
	for i := range items {
		items[i] = sortItem{dt.key(values, int64(i), o.descending), int64(i)}
	}
	slices.SortFunc(items, func(a, b sortItem) int {
		if c := cmp.Compare(a.key, b.key); c != 0 {
			return c
		}
		return cmp.Compare(a.at, b.at)
	})
	for i, it := range items {
		bits := uint64(it.at)
		if !o.positions {
			bits = element(unsafe.Add(values, it.at*dt.size), int32(dt.size))
		}
		storeElement(unsafe.Add(out, int64(i)*o.size), int32(o.size), bits)
	}
}
