//go:build !gc || (!amd64 && !(arm64 && linux))

package machine

import "unsafe"

// callable is false: there is no call for this processor.
const (
	callable = false
	trap     = 0
)

// KeepMXCSR and FlushMXCSR are Call's argument elsewhere, for denormals kept and flushed.
const (
	KeepMXCSR  = 0
	FlushMXCSR = 0
)

// Call is never reached: Map returns no code here.
func Call(uintptr, unsafe.Pointer, uint32) { panic("machine: no machine code for this processor") }

func settle([]byte) {}
