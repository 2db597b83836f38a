//go:build linux || darwin

package machine

import (
	"syscall"
	"unsafe"
)

// pages says that this system has executable pages. Systems whose standard library lacks Mprotect
// are not supported.
const pages = true

const (
	allocateOp = "mmap"
	protectOp  = "mprotect"
)

func systemPage() int { return syscall.Getpagesize() }

func allocate(n int) ([]byte, error) {
	return syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
}

func protect(mem []byte) error { return syscall.Mprotect(mem, syscall.PROT_READ|syscall.PROT_EXEC) }

func release(mem []byte) error { return syscall.Munmap(mem) }

func address(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }
