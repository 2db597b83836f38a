package memory

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

// mapMemory maps memory; ok is false if the system refuses. It requests no huge pages, which need
// a privilege.
func mapMemory(n int64, _ bool) (m mapping, ok bool) {
	if n > math.MaxInt {
		return m, false
	}
	at, _, _ := virtualAlloc.Call(0, uintptr(n), memCommit|memReserve, pageReadWrite)
	if at == 0 {
		return m, false
	}
	m.first = *(*unsafe.Pointer)(unsafe.Pointer(&at)) // not Go's memory: it does not move
	m.all = unsafe.Slice((*byte)(m.first), n)
	return m, true
}

func (m *mapping) unmap() { _, _, _ = virtualFree.Call(uintptr(m.first), 0, memRelease) }
