package cpu

import (
	"os"
	"syscall"
	"unsafe"
)

// regionLeast is how many blocks a region has at least.
const regionLeast = 4

var pageSize = int64(os.Getpagesize())

// askHuge asks for huge pages: to touch them costs a fraction, and so do misses of
// addresses.
func askHuge(b []byte) { _ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) }

// discard tells the system that what is in a block, which stays mapped, is not needed.
func discard(p unsafe.Pointer, n int64) {
	if n%pageSize == 0 && uintptr(p)%uintptr(pageSize) == 0 {
		_ = syscall.Madvise(unsafe.Slice((*byte)(p), n), syscall.MADV_DONTNEED)
	}
}
