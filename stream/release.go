package stream

import (
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/operror"
)

// releases caches what released values point at, by a hash of the releasing call stack. A program
// releases values at few places again and again, and so needs no allocation for most releases.
var releases [64]atomic.Pointer[ext]

// releasedHere returns a record of the call stack of its caller, which released a value.
func releasedHere() *ext {
	at := operror.Here()
	h := at[0]
	for _, pc := range at[1:] {
		h = h*31 + pc
	}
	known := &releases[h%uintptr(len(releases))]
	if x := known.Load(); x != nil && x.where == at {
		return x
	}
	x := &ext{where: at}
	known.Store(x)
	return x
}
