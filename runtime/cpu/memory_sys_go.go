//go:build !cgo || !unix

package cpu

import "unsafe"

// sysAlloc takes a block from Go's heap, 64-byte aligned. The heap would end
// the process where memory is short; what may be asked for is bounded by
// what hostmem knows of it.
func sysAlloc(n int64) unsafe.Pointer {
	b := make([]byte, n+63)
	p := unsafe.Pointer(unsafe.SliceData(b))
	return unsafe.Add(p, -uintptr(p)&63)
}

// sysFree leaves the block to the collector, once nothing points to it.
func sysFree(unsafe.Pointer, int64) {}
