package fold

import (
	"bytes"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// argFolder finds the position of the greatest key of a row, by the keys of sorts. With least,
// keys are those of a descending sort, so the least element has the greatest key. An accumulator
// of n columns is their keys, then their positions. Ties go to the lowest position, so the order
// of joining does not matter.
func argFolder[E rawBits](dt ir.DType, least bool) Folder {
	image := keyImageOf[E](dt, least)
	size := int64(unsafe.Sizeof(E(0)))
	return Folder{
		Size: 16, Lanes: 1,
		Start: func(unsafe.Pointer) {},
		Add: func(acc, values unsafe.Pointer, r, m, n, ld int64) {
			if n == 1 && ld == 1 {
				addArgRow(&image, acc, memory.Elements[E](values, m), r)
				return
			}
			keys, places := argParts(acc, n)
			for i := r; i < r+m; i++ {
				first := i%ir.FoldBlock == 0 // the first element of a block replaces any old value
				for j, x := range memory.Elements[E](unsafe.Add(values, (i-r)*ld*size), n) {
					if k := uint64(image.of(x)); first || k > keys[j] {
						keys[j], places[j] = k, i
					}
				}
			}
		},
		Finish: func(unsafe.Pointer, int64, int64) {},
		Combine: func(total, block unsafe.Pointer, n int64) {
			keys, places := argParts(total, n)
			other, theirs := argParts(block, n)
			for j := range keys {
				if other[j] > keys[j] {
					keys[j], places[j] = other[j], theirs[j]
				}
			}
		},
		Result: func(out unsafe.Pointer, size int64, total unsafe.Pointer, n int64) {
			_, places := argParts(total, n)
			for j, at := range places {
				operands.SetElement(unsafe.Add(out, int64(j)*size), int32(size), uint64(at))
			}
		},
	}
}

// argParts returns the keys and the positions of an accumulator.
func argParts(acc unsafe.Pointer, n int64) (keys []uint64, places []int64) {
	return memory.Elements[uint64](acc, n), memory.Elements[int64](unsafe.Add(acc, 8*n), n)
}

// addArgRow adds the elements v of a row, which begin at position r.
func addArgRow[E rawBits](image *keyImage[E], acc unsafe.Pointer, v []E, r int64) {
	keys, places := argParts(acc, 1)
	key, at := E(keys[0]), places[0]
	if r%ir.FoldBlock == 0 {
		key, at = image.of(v[0]), r
	}
	for i, x := range v {
		if k := image.of(x); k > key {
			key, at = k, r+int64(i)
		}
	}
	keys[0], places[0] = uint64(key), at
}

// addArgLanes is addArgRow with known maxima: lanes has the greatest element of each lane of the
// whole groups or, for bytes, the greatest of them all.
func addArgLanes[E rawBits](image *keyImage[E], acc unsafe.Pointer, lanes, v []E, r int64) {
	keys, places := argParts(acc, 1)
	best := lanes[0]
	key := image.of(best)
	for _, x := range lanes {
		if k := image.of(x); k > key {
			best, key = x, k
		}
	}
	grouped := len(v) / ir.FoldLanes * ir.FoldLanes
	if r%ir.FoldBlock == 0 || uint64(key) > keys[0] {
		at := grouped
		if unsafe.Sizeof(best) == 1 { // no other byte has the same key
			at = bytes.IndexByte(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), grouped), byte(best))
			lanes = lanes[:0]
		}
		for l, x := range lanes {
			if image.of(x) != key {
				continue
			}
			for i := l; i < at; i += ir.FoldLanes {
				if image.of(v[i]) == key {
					at = i
				}
			}
		}
		keys[0], places[0] = uint64(key), r+int64(at)
	}
	for i, x := range v[grouped:] {
		if k := uint64(image.of(x)); k > keys[0] {
			keys[0], places[0] = k, r+int64(grouped+i)
		}
	}
}
