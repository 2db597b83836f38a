//go:build cgo && unix

package ccode

/*
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#if defined __x86_64__ || defined __i386__
#include <cpuid.h>
#endif
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

// What the compiler asks of a processor for -march=native, as text.
static void mr_processor(char *to, size_t size)
{
	int n = 0;
	to[0] = 0;
#if defined __x86_64__ || defined __i386__
	static const unsigned leaves[][2] = {{0, 0}, {1, 0}, {7, 0}, {7, 1}, {0x80000001u, 0}, {0x14, 0}, {0x19, 0}, {0x24, 0}};
	// Under a hypervisor each of these takes some microseconds.
	const unsigned most = __get_cpuid_max(0, NULL), extended = __get_cpuid_max(0x80000000u, NULL);
	unsigned saves = 0;
	for (unsigned i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
		unsigned a = 0, b = 0, c = 0, d = 0;
		if (leaves[i][0] <= (leaves[i][0] >> 31 ? extended : most))
			__cpuid_count(leaves[i][0], leaves[i][1], a, b, c, d);
		if (leaves[i][0] == 1)
			b = 0, saves = c >> 27 & 1; // which of the processors this is
		n += snprintf(to + n, size - n, "%x:%x:%x:%x:%x ", leaves[i][0], a, b, c, d);
	}
	if (saves) { // what the system saves of it
		unsigned lo, hi;
		__asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
		n += snprintf(to + n, size - n, "xcr0:%x:%x", lo, hi);
	}
#elif defined __linux__
	n = snprintf(to, size, "hwcap %lx %lx", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
#elif defined __APPLE__
	size_t len = size - 1;
	if (sysctlbyname("machdep.cpu.brand_string", to, &len, NULL, 0) == 0)
		to[len] = 0;
#endif
	(void)n;
}

static int mr_anonymous(const char *name)
{
#if defined __linux__ && defined SYS_memfd_create
	// Closed on exec, and to be executed from: older systems know no flag for
	// the latter, newer ones may ask for it.
	int fd = (int)syscall(SYS_memfd_create, name, 1u | 16u);
	return fd >= 0 ? fd : (int)syscall(SYS_memfd_create, name, 1u);
#else
	(void)name;
	return -1;
#endif
}
*/
import "C"

import (
	"errors"
	"os"
	"sync"
	"unsafe"
)

// Processor describes what compilers assume for -march=native here: instruction sets, family and
// model. Equal texts mean equal code.
var Processor = sync.OnceValue(func() string {
	var text [512]C.char
	C.mr_processor(&text[0], C.size_t(len(text)))
	return Describe() + " " + C.GoString(&text[0])
})

var errNoMemoryFiles = errors.New("this system has no unnamed files in memory")

// anonymous makes a file in memory that has no name in any directory.
func anonymous(name string) (*os.File, error) {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	fd := C.mr_anonymous(c)
	if fd < 0 {
		return nil, errNoMemoryFiles
	}
	return os.NewFile(uintptr(fd), name), nil
}
