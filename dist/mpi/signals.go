//go:build linux && (amd64 || arm64)

package mpi

import (
	"unsafe"

	"github.com/ebitengine/purego"
)

// MPI libraries set handlers of signals when they are loaded and when MPI_Init runs: UCX, which
// Debian's MPICH uses, takes SIGSEGV. Then a nil dereference would end the program where the Go
// runtime makes a panic of it. So all handlers are saved before the library is loaded and put back
// after MPI_Init.

const (
	lastSignal = 64
	actionSize = 512 // more than any libc's struct sigaction has
)

// signals reads and sets handlers by libc's sigaction, whose struct this package need not know.
type signals struct{ sigaction uintptr }

func openSignals() (signals, error) {
	at, err := purego.Dlsym(purego.RTLD_DEFAULT, "sigaction")
	return signals{at}, err
}

// handlers has the struct sigaction of every signal; nil for signals that have none.
type handlers [lastSignal + 1][]byte

func (c signals) handlers() *handlers {
	h := new(handlers)
	for sig := 1; sig <= lastSignal; sig++ {
		action := make([]byte, actionSize)
		if r, _, _ := purego.SyscallN(c.sigaction, uintptr(sig), 0, uintptr(unsafe.Pointer(&action[0]))); int32(r) == 0 {
			h[sig] = action
		}
	}
	return h
}

// restore puts all handlers back. It cannot skip those that have not changed: parts of a struct
// sigaction are not defined and differ from call to call.
func (c signals) restore(saved *handlers) {
	for sig, action := range saved {
		if action != nil {
			purego.SyscallN(c.sigaction, uintptr(sig), uintptr(unsafe.Pointer(&action[0])), 0)
		}
	}
}
