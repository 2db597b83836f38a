//go:build gc

package machine

import "unsafe"

// FPCR of the two ways of computing: no exception trapped, to nearest, NaNs kept,
// denormals kept or taken and given as zeros. (What is tiny is found out before it is
// rounded, other than on amd64.) What arithmetic sets is in another register.
const (
	KeepMXCSR  = 0
	FlushMXCSR = 1 << 24

	mxcsrFlags = 0
)

// trap is a byte of which a row is an instruction that traps: udf.
const trap = 0

// settle makes what was written visible to fetching: instruction caches of arm64 do not
// look into data caches. Lines are cleaned to where both meet, and then forgotten, by all
// cores. None of them has fetched any of it before: code that is there is never changed.
func settle(mem []byte) {
	p := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	syncCaches(p, p+uintptr(len(mem)))
}

func syncCaches(from, to uintptr)
