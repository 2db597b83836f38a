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

// maxObjects bounds the loaded objects of a process, over all its devices. Each takes about five
// mappings, of which Linux grants a process 65,530, and about 40 kB. If mappings run out, Go's own
// runtime ends the process. Kernels beyond the bound stay interpreted. It is a variable for tests.
var maxObjects int64 = 4096

// objectCount is the number of loaded objects.
var objectCount atomic.Int64

// fullError reports that no more code can be loaded.
type fullError struct{ objects int64 }

func (e *fullError) Error() string {
	return fmt.Sprintf("%d compiled kernels are loaded and in use, as many as there may be: this one stays interpreted", e.objects)
}

// objects are the loaded objects of a device. An object is closed when the garbage collector finds
// its code unreachable; whatever runs code keeps a reference to it. objects is separate from the
// device because cleanups must not keep the device alive.
type objects struct {
	mu   sync.Mutex
	last uint64 // last number given; linkers reuse handles
	open map[uint64]loadedObject
	full bool // a collection freed little
}

type loadedObject struct {
	handle unsafe.Pointer
	code   weak.Pointer[compiled]
}

func newObjects() *objects { return &objects{open: map[uint64]loadedObject{}} }

// add arranges that the object is closed when its code becomes unreachable.
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

// room returns nil if another object may be loaded, else an error. At the bound it first runs a
// garbage collection: small programs make little garbage, so code that is not used any more may
// still be loaded. If the collection freed little, room runs none again until some objects were
// closed.
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

// sweep closes the objects of unreachable code: cleanups run some time after a collection.
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

// closeAll closes all objects. No code may run any more.
func (x *objects) closeAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for number := range x.open {
		x.closeLocked(number)
	}
}
