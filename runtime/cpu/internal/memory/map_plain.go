//go:build !linux

package memory

import "unsafe"

// regionLeast is the least number of blocks in a region. Blocks of some pages are single mappings
// here, because only unmapping returns their memory.
const regionLeast = 1

func askHuge([]byte) {}

func discard(unsafe.Pointer, int64) {}
