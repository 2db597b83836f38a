//go:build unix

package memory

import (
	"math"
	"syscall"
	"unsafe"
)

// mapMemory maps memory. With huge, the memory begins at a huge page. ok is false if the system
// refuses.
func mapMemory(n int64, huge bool) (m mapping, ok bool) {
	if n > math.MaxInt-hugePage {
		return m, false
	}
	if m.all, ok = mapped(int(n)); !ok {
		return m, false
	}
	m.first = unsafe.Pointer(unsafe.SliceData(m.all))
	if !huge {
		return m, true
	}
	if uintptr(m.first)%hugePage != 0 { // newer systems choose an aligned address by themselves
		m.unmap()
		if m.all, ok = mapped(int(n) + hugePage); !ok { // the unused ends are never touched
			return m, false
		}
		m.first = unsafe.Pointer(unsafe.SliceData(m.all))
		m.first = unsafe.Add(m.first, -uintptr(m.first)%hugePage)
	}
	askHuge(unsafe.Slice((*byte)(m.first), n))
	return m, true
}

func mapped(n int) ([]byte, bool) {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	return b, err == nil
}

func (m *mapping) unmap() { _ = syscall.Munmap(m.all) }
