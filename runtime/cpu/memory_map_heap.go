//go:build !unix && !windows

package cpu

import (
	"math"
	"unsafe"
)

// mapMemory takes memory from Go's heap, which would end the process where memory is
// short; what may be asked for is bounded by what hostmem knows of it.
func mapMemory(n int64, _ bool) (m mapping, ok bool) {
	if n > math.MaxInt-64 {
		return m, false
	}
	m.all = make([]byte, n+63)
	p := unsafe.Pointer(unsafe.SliceData(m.all))
	m.first = unsafe.Add(p, -uintptr(p)&63)
	return m, true
}

// unmap leaves the memory to the collector, once nothing points to it.
func (m *mapping) unmap() { *m = mapping{} }
