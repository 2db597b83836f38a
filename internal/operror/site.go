package operror

import (
	goruntime "runtime"
)

// Site is where a call of the library came from: the callers of here, not looked
// up yet. A library call that asks for it is at most a few calls away from the
// program's.
type Site [6]uintptr

// Here takes down the callers of the function that calls it.
func Here() (at Site) {
	callers(at[:])
	return at
}

func (at Site) String() string {
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

// Trail is a Site of a call that may come from further away, through packages of the
// library that are built on others.
type Trail [14]uintptr

// TrailHere takes down the callers of the function that calls it.
func TrailHere() (at Trail) {
	callers(at[:])
	return at
}

func (at Trail) String() string {
	n := 0
	for n < len(at) && at[n] != 0 {
		n++
	}
	return outside(at[:n])
}
