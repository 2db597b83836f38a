//go:build cgo && unix

package cpu

/*
#include "tier0.h"
*/
import "C"

import "github.com/millrace-go/millrace/codegen/cgo"

// runsCompiled says that this build can run compiled kernels.
const runsCompiled = true

// Kernels are compiled for the levels of the block functions.
var _ [ShipLevels]byte = [len(levelNames)]byte{}

// hasLevel reports that the processor has an ISA level.
func hasLevel(level int) bool { return C.mr_t0_level(C.int(level)) != nil }

// isa is what the code was printed for.
func (c *compiled) isa() *cgo.ISA {
	if c.shipped != nil {
		return levelISAs[c.shipped.object.level]
	}
	return nativeISA()
}
