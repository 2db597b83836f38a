package stream

import (
	goruntime "runtime"
	"sync/atomic"
)

// site is where a call of the library came from: the callers of here, not looked
// up yet. A library call that asks for it is at most a few calls away from the
// program's.
type site [6]uintptr

// here takes down the callers of the function that calls it.
func here() (at site) {
	callers(at[:])
	return at
}

func (at site) String() string {
	n := 0
	for n < len(at) && at[n] != 0 {
		n++
	}
	return outside(at[:n])
}

// callers fills pcs with the return addresses of the stack, innermost first, and
// returns how many there are. Release asks, which takes ten times as long where
// the stack is unwound from tables: so the chain of frame pointers is followed
// where Go keeps one. Its addresses stand for inlined calls, too: see frameOf.
func callers(pcs []uintptr) int {
	if hasFramePointers {
		return returnPCs(pcs)
	}
	return goruntime.Callers(2, pcs)
}

// releases are what some released values point at, by a hash of who released them: a
// program releases at few places over and over, and need not allocate each time.
var releases [64]atomic.Pointer[ext]

// releasedHere says that the callers of the function that calls it released a value.
func releasedHere() *ext {
	at := here()
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
