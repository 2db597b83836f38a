//go:build cgo && unix

package cpu

import (
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"
)

// maxObjects bounds the objects that a process has loaded, of all its devices. Each
// takes some five mappings, of which Linux grants a process 65,530, and some 40 kB:
// where mappings run out, Go's own runtime ends the process. What is more stays
// interpreted. A variable for tests.
var maxObjects int64 = 4096

// objectCount is how many there are.
var objectCount atomic.Int64

// fullError says that no more code is loaded.
type fullError struct{ objects int64 }

func (e *fullError) Error() string {
	return fmt.Sprintf("%d compiled kernels are loaded and in use, as many as there may be: this one stays interpreted", e.objects)
}

// objects are those that a device has loaded. One is closed when nobody has its code
// any more: the collector says so, and those who run code have it until they are
// done. It is no part of the device, which cleanups must not keep alive.
type objects struct {
	mu   sync.Mutex
	last uint64 // number given; linkers give handles again
	open map[uint64]loadedObject
	full bool // a collection found little that could go
}

type loadedObject struct {
	handle unsafe.Pointer
	code   weak.Pointer[compiled]
}

func newObjects() *objects { return &objects{open: map[uint64]loadedObject{}} }

// add has the object of some code closed when nobody has the code.
func (x *objects) add(handle unsafe.Pointer, code *compiled) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last++
	x.open[x.last] = loadedObject{handle, weak.Make(code)}
	objectCount.Add(1)
	goruntime.AddCleanup(code, x.close, x.last)
}

func (x *objects) close(number uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closeLocked(number)
}

// closeLocked is close with the lock held.
func (x *objects) closeLocked(number uint64) {
	o, ok := x.open[number]
	if !ok {
		return
	}
	delete(x.open, number)
	if unload(o.handle) {
		objectCount.Add(-1)
	}
	x.full = x.full && objectCount.Load() > maxObjects-maxObjects/16
}

// room reports that no more may be loaded. Where there are as many as there may be,
// garbage is collected first: small programs make little of it, and what they no
// longer have is still loaded. Where that is of little use it is not done again
// until some were closed.
func (x *objects) room() error {
	if objectCount.Load() < maxObjects {
		return nil
	}
	x.mu.Lock()
	full := x.full
	x.mu.Unlock()
	if !full {
		goruntime.GC()
		x.sweep()
	}
	if n := objectCount.Load(); n >= maxObjects {
		return &fullError{n}
	}
	return nil
}

// sweep closes what nobody has: cleanups come a while after a collection.
func (x *objects) sweep() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for number, o := range x.open {
		if o.code.Value() == nil {
			x.closeLocked(number)
		}
	}
	x.full = objectCount.Load() > maxObjects-maxObjects/16
}

// closeAll closes all. No code may run any more.
func (x *objects) closeAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for number := range x.open {
		x.closeLocked(number)
	}
}
