//go:build gc

package machine

import "unsafe"

// FPCR for the two treatments of denormals: keep them, or read and write them as zeros. No
// exception is trapped, rounding is to nearest, and NaNs keep their payload. (Unlike on amd64, tiny
// results are detected before rounding.) The status bits are in another register.
const (
	KeepMXCSR  = 0
	FlushMXCSR = 1 << 24

	mxcsrFlags = 0
)

// trap is a byte; a sequence of it is an instruction that traps: udf.
const trap = 0

// settle makes written code visible to instruction fetch, because instruction caches of arm64 do
// not look into data caches. It cleans the data lines to the point of unification, and then
// invalidates the instruction lines on all cores. No core has fetched the code before: existing
// code never changes.
func settle(mem []byte) {
	p := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	syncCaches(p, p+uintptr(len(mem)))
}

func syncCaches(from, to uintptr)
