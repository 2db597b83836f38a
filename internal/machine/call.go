//go:build gc && (amd64 || (arm64 && linux))

package machine

import (
	"runtime"
	"unsafe"
)

// callable says that there is a call for this processor. There is none yet on macOS for arm64,
// where code pages need MAP_JIT, and on Windows for arm64, where the system flushes the caches.
const callable = true

// Call calls machine code at addr with the address of frame in DI (arm64: R7), if the processor has
// a Level. MXCSR (arm64: FPCR) has the given value during the call, and its old value after it. On
// amd64 without cgo it instead has KeepMXCSR after the call, the value that Go sets. The upper
// halves of the vector registers are zero.
//
// The code may change every general register but SP, BP and R14 (arm64: RSP, R18, R28, R29 and
// R30), all vector and mask registers and the flags, but not the direction flag. It must not move
// SP or call Go. It must return within about 200 µs, because no collection can begin before. The
// frame may be on a stack, on Go's heap or outside: no address is kept.
//
// A fault inside is a panic, as it is in Go code (for other addresses than nil's:
// debug.SetPanicOnFault). On Windows it ends the process. The race detector does not see the code's
// reads and writes.
func Call(addr uintptr, frame unsafe.Pointer, mxcsr uint32) {
	if !call(addr, frame, mxcsr) {
		callSet(addr, frame, mxcsr)
	}
}

// call does nothing and returns false if the thread's MXCSR differs from mxcsr.
//
//go:noescape
func call(addr uintptr, frame unsafe.Pointer, mxcsr uint32) (done bool)

// callWith is call with MXCSR changed during the call.
//
//go:noescape
func callWith(addr uintptr, frame unsafe.Pointer, mxcsr uint32)

func getMXCSR() uint32

func setMXCSR(mxcsr uint32)

// callSet changes MXCSR, which belongs to the thread. A fault leaves the code without running the
// end of the assembly function. callSet therefore restores MXCSR itself, on the same thread, before the program
// computes anything there.
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
