package memory

import (
	"os"
	"syscall"
	"unsafe"
)

// regionLeast is the least number of blocks in a region.
const regionLeast = 4

var pageSize = int64(os.Getpagesize())

// askHuge requests huge pages: touching them costs a fraction of the time, and they cause fewer
// address-translation misses.
func askHuge(b []byte) { _ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) }

// discard tells the system that the contents of a block are not needed. The block stays mapped.
func discard(p unsafe.Pointer, n int64) {
	if n%pageSize == 0 && uintptr(p)%uintptr(pageSize) == 0 {
		_ = syscall.Madvise(unsafe.Slice((*byte)(p), n), syscall.MADV_DONTNEED)
	}
}
