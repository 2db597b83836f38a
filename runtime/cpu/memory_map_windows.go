package cpu

import (
	"math"
	"syscall"
	"unsafe"
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	virtualAlloc = kernel32.NewProc("VirtualAlloc")
	virtualFree  = kernel32.NewProc("VirtualFree")
)

const (
	memCommit     = 0x1000
	memReserve    = 0x2000
	memRelease    = 0x8000
	pageReadWrite = 4
)

// mapMemory maps memory; false where the system refuses. Huge pages are for processes
// with a privilege, and not asked for.
func mapMemory(n int64, _ bool) (m mapping, ok bool) {
	if n > math.MaxInt {
		return m, false
	}
	at, _, _ := virtualAlloc.Call(0, uintptr(n), memCommit|memReserve, pageReadWrite)
	if at == 0 {
		return m, false
	}
	m.first = *(*unsafe.Pointer)(unsafe.Pointer(&at)) // no memory of Go's: it does not move
	m.all = unsafe.Slice((*byte)(m.first), n)
	return m, true
}

func (m *mapping) unmap() { _, _, _ = virtualFree.Call(uintptr(m.first), 0, memRelease) }
