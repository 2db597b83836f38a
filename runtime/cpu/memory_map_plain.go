//go:build !linux

package cpu

import "unsafe"

// regionLeast is how many blocks a region has at least: blocks of some pages are
// mappings of their own, as that alone gives their memory back.
const regionLeast = 1

func askHuge([]byte) {}

func discard(unsafe.Pointer, int64) {}
