//go:build gc && (amd64 || (arm64 && linux))

package machine

import (
	"runtime"
	"unsafe"
)

// callable says that there is a call for this processor. On macOS for arm64 pages of code
// are to be mapped with MAP_JIT, and on Windows there caches are the system's: no call yet.
const callable = true

// Call calls machine code at addr with the address of frame in DI (arm64: R7), where
// the processor has a Level. MXCSR (arm64: FPCR) is as asked for while it runs, and what
// it was afterwards, but that on amd64 without cgo KeepMXCSR stays, which is what Go has it
// be; the upper halves of the vector registers are zero.
//
// The code may change every general register but SP, BP and R14 (arm64: RSP, R18, R28,
// R29 and R30), all vector and mask registers and the flags, but not the direction flag.
// It never moves SP and never calls Go; it returns within some 200 µs, since no collection can begin before.
// Frame may lie on a stack, on Go's heap or outside: no address is kept.
//
// A fault inside is a panic, as it is in Go code (other addresses than nil's:
// debug.SetPanicOnFault), except on Windows, where it ends the process. The race
// detector sees nothing of what the code reads and writes.
func Call(addr uintptr, frame unsafe.Pointer, mxcsr uint32) {
	if !call(addr, frame, mxcsr) {
		callSet(addr, frame, mxcsr)
	}
}

// call does nothing and returns false where the thread's MXCSR is not as asked for.
//
//go:noescape
func call(addr uintptr, frame unsafe.Pointer, mxcsr uint32) (done bool)

// callWith is call with MXCSR changed for its time.
//
//go:noescape
func callWith(addr uintptr, frame unsafe.Pointer, mxcsr uint32)

func getMXCSR() uint32

func setMXCSR(mxcsr uint32)

// callSet changes MXCSR, which belongs to the thread. A fault leaves the code without
// the rest of the stub, so that it is put back here, on the same thread, before
// anything of the program's computes on it.
func callSet(addr uintptr, frame unsafe.Pointer, mxcsr uint32) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, done := getMXCSR(), false
	defer func() {
		if !done {
			setMXCSR(before)
		}
	}()
	callWith(addr, frame, mxcsr)
	done = true
}
