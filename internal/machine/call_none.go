//go:build !gc || (!amd64 && !(arm64 && linux))

package machine

import "unsafe"

// callable: no call for this processor.
const (
	callable = false
	trap     = 0
)

// What Call is given elsewhere for denormals kept, and flushed.
const (
	KeepMXCSR  = 0
	FlushMXCSR = 0
)

// Call has nothing to call here: Map gives no code.
func Call(uintptr, unsafe.Pointer, uint32) { panic("machine: no machine code for this processor") }

func settle([]byte) {}
