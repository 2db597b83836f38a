//go:build cgo && unix

package cpu

/*
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <stdint.h>

#define HUGE_PAGE ((size_t)2 << 20)

// Blocks of whole huge pages are mapped on their own, and begin on one.
static void *mr_sys_alloc(size_t n)
{
	if (n < 2 * HUGE_PAGE) {
		void *p;
		return posix_memalign(&p, 64, n) == 0 ? p : NULL;
	}
	char *p = mmap(NULL, n + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	size_t skip = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
	if (skip > 0)
		munmap(p, skip);
	if (skip < HUGE_PAGE)
		munmap(p + skip + n, HUGE_PAGE - skip);
#ifdef MADV_HUGEPAGE
	madvise(p + skip, n, MADV_HUGEPAGE);
#endif
	return p + skip;
}

static void mr_sys_free(void *p, size_t n)
{
	if (n < 2 * HUGE_PAGE)
		free(p);
	else
		munmap(p, n);
}
*/
import "C"

import "unsafe"

// sysAlloc takes a block from the system: outside Go's heap, 64-byte aligned,
// nil where there is none.
func sysAlloc(n int64) unsafe.Pointer { return C.mr_sys_alloc(C.size_t(n)) }

func sysFree(p unsafe.Pointer, n int64) { C.mr_sys_free(p, C.size_t(n)) }
