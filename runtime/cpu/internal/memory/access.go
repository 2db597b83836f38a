package memory

import "unsafe"

// Aligned rounds a number of bytes up to whole cache lines.
func Aligned(n int64) int64 { return (n + 63) &^ 63 }

// Elements returns n elements in memory.
func Elements[T any](p unsafe.Pointer, n int64) []T { return unsafe.Slice((*T)(p), n) }

// At returns the address of element i.
func At[E any](base unsafe.Pointer, i int64) *E {
	var e E
	return (*E)(unsafe.Add(base, i*int64(unsafe.Sizeof(e))))
}

// Copy copies n bytes.
func Copy(to, from unsafe.Pointer, n int64) {
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
}
