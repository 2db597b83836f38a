//go:build !unix && !windows

package memory

import (
	"math"
	"unsafe"
)

// mapMemory allocates from Go's heap, where a lack of memory would end the process; hostmem's
// estimate of the available memory bounds the requests.
func mapMemory(n int64, _ bool) (m mapping, ok bool) {
	if n > math.MaxInt-64 {
		return m, false
	}
	m.all = make([]byte, n+63)
	p := unsafe.Pointer(unsafe.SliceData(m.all))
	m.first = unsafe.Add(p, -uintptr(p)&63)
	return m, true
}

// unmap leaves the memory to the garbage collector.
func (m *mapping) unmap() { *m = mapping{} }
