//go:build gc

package machine

// MXCSR for the two treatments of denormals: keep them, or read and write them as zeros. All
// exceptions are masked, and rounding is to nearest.
const (
	KeepMXCSR  = 0x1F80
	FlushMXCSR = 0x9FC0
)

// mxcsrFlags are status bits that arithmetic sets; they do not control it.
const mxcsrFlags = 0x3F

// trap is a byte; a sequence of it is an instruction that traps.
const trap = 0xCC

// settle makes written code visible to instruction fetch; here it always is.
func settle([]byte) {}
