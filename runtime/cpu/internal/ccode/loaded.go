//go:build cgo && unix

package ccode

import (
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/millrace-go/millrace/codegen/cgo"
)

// objectCount is the number of loaded objects of the process.
var objectCount atomic.Int64

// Objects returns the number of loaded objects of the process.
func Objects() int64 { return objectCount.Load() }

// FullError reports that no more code can be loaded.
type FullError struct{ Objects int64 }

func (e *FullError) Error() string {
	return fmt.Sprintf("%d compiled kernels are in use, which is the limit: this kernel stays interpreted", e.Objects)
}

// objects are the loaded objects of a compiler. An object is closed when the garbage collector finds
// its code unreachable; whatever runs code keeps a reference to it. objects is separate from the
// compiler because cleanups must not keep the compiler alive.
type objects struct {
	most int64 // see Limits.Objects
	mu   sync.Mutex
	last uint64 // last number given; linkers reuse handles
	open map[uint64]loadedObject
	full bool // a collection freed little
}

type loadedObject struct {
	handle unsafe.Pointer
	code   weak.Pointer[code]
}

// code is the functions of an object. Each of them keeps it reachable.
type code struct{ phases []*Phase }

func newObjects(most int64) *objects { return &objects{most: most, open: map[uint64]loadedObject{}} }

// add returns the functions of an object, which is closed when they become unreachable.
func (x *objects) add(handle unsafe.Pointer, units []cgo.Unit, funcs []unsafe.Pointer) []*Phase {
	c := &code{}
	for i := range units {
		c.phases = append(c.phases, newPhase(c, funcs[i], &units[i]))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last++
	x.open[x.last] = loadedObject{handle, weak.Make(c)}
	objectCount.Add(1)
	goruntime.AddCleanup(c, x.close, x.last)
	return c.phases
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
	x.full = x.full && objectCount.Load() > x.most-x.most/16
}

// room returns nil if another object may be loaded, else an error. At the bound it first runs a
// garbage collection: small programs make little garbage, so code that is not used any more may
// still be loaded. If the collection freed little, room runs none again until some objects were
// closed.
func (x *objects) room() error {
	if objectCount.Load() < x.most {
		return nil
	}
	x.mu.Lock()
	full := x.full
	x.mu.Unlock()
	if !full {
		goruntime.GC()
		x.sweep()
	}
	if n := objectCount.Load(); n >= x.most {
		return &FullError{n}
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
	x.full = objectCount.Load() > x.most-x.most/16
}

// closeAll closes all objects. No code may run any more.
func (x *objects) closeAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for number := range x.open {
		x.closeLocked(number)
	}
}
