//go:build cgo && unix

package cpu

/*
#include "tier0.h"

static const char *mr_built_by(void)
{
#ifdef __VERSION__
	return __VERSION__;
#else
	return "unknown";
#endif
}
*/
import "C"

import (
	"sync"

	"github.com/millrace-go/millrace/codegen/cgo"
)

// runsCompiled says that this build can run compiled kernels.
const runsCompiled = true

// Kernels are compiled for the levels of the block functions.
var _ [ShipLevels]byte = [len(levelNames)]byte{}

// hasLevel reports that the processor has an ISA level.
func hasLevel(level int) bool { return C.mr_t0_level(C.int(level)) != nil }

// builtBy is the version of the compiler that the C of this program was built
// with, in its own words, as toolchain.version is.
var builtBy = sync.OnceValue(func() string { return C.GoString(C.mr_built_by()) })

// isa is what the code was printed for.
func (c *compiled) isa() *cgo.ISA {
	if c.shipped != nil {
		return levelISAs[c.shipped.object.level]
	}
	return nativeISA()
}
