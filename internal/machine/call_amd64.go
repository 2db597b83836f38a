//go:build gc

package machine

// MXCSR of the two ways of computing: all exceptions masked, to nearest, denormals
// kept or taken and given as zeros.
const (
	KeepMXCSR  = 0x1F80
	FlushMXCSR = 0x9FC0
)

// mxcsrFlags are the bits that arithmetic sets, no part of how it is done.
const mxcsrFlags = 0x3F

// trap is a byte of which a row is an instruction that traps.
const trap = 0xCC

// settle makes what was written visible to fetching, which it is here.
func settle([]byte) {}
