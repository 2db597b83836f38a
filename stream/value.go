package stream

import (
	"math"
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
)

type state uint8

const (
	stNone     state = iota // zero Value: never recorded
	stPending               // result of an op that is still in its stream's queue
	stVirtual               // computed but not written: see recipe
	stReady                 // in memory
	stFailed                // has an error
	stReleased              // released by Release or by the end of its scope
)

// Value has two roles in one allocation: it is a handle, and it is a value. A handle names a
// value; at first it names the value in the same Value, and Set makes it name another one. A
// value never changes its stream, dtype or shape. A handle may name another value at any time, so
// a function that gets a handle calls now once and uses the value that now returned.
//
// The public Tensor embeds a Value, so recording an op costs one allocation. A Value must not be
// copied after it was passed to this package.
type Value struct {
	// Fields of the handle. Scope and count determine its owner: see owner.
	names atomic.Pointer[Value] // nil: the handle names the value in the same Value
	born  *Scope                // the scope in which the handle was made, nil for none; never changes
	out   atomic.Uint32         // how many scopes outwards from born the handle has moved

	// Fields of the value. The lock of home guards them, except where noted.
	more  atomic.Int32 // number of handles that name the value, minus one: see hold
	home  *Stream      // never changes, like form and dt
	form  *queue.Form  // nil: unknown
	mem   atomic.Pointer[memory.Storage]
	ext   *ext  // recipe, error or release line; few values have one
	id    int32 // relative id in the home's queue, valid if that queue knows the value: see queued
	dt    ir.DType
	state state
	stray bool  // a handle in no scope was set to the value
	marks Marks // marks of the handle and of the value: see Marks
}

// unnamed is the handle count of a value that no handle names any more.
const unnamed = -1

// now returns the value that the handle names.
func (h *Value) now() *Value {
	if v := h.names.Load(); v != nil {
		return v
	}
	return h
}

// Now returns the value that the handle names at this moment.
func (h *Value) Now() *Value { return h.now() }

// lock returns the value that the handle names and takes the lock of its home, if it has one.
// While the lock is held, a concurrent Set of the handle does not end the value.
func (h *Value) lock() *Value {
	for {
		v := h.now()
		if v.home == nil {
			return v
		}
		v.home.mu.Lock()
		if h.now() == v {
			return v
		}
		v.home.mu.Unlock()
	}
}

// hold returns the value that the handle names and counts one more handle of it. The caller must
// end this hold with letGo. held is false if the value was given up already.
func (h *Value) hold() (v *Value, held bool) {
	for {
		v = h.now()
		n := v.more.Load()
		if n == unnamed {
			if h.now() == v {
				return v, false
			}
		} else if v.more.CompareAndSwap(n, n+1) {
			return v, true
		}
	}
}

// letGo ends a handle's hold on a value. It reports whether this was the last hold; the caller
// must then end the value.
func (v *Value) letGo() (last bool) {
	for {
		n := v.more.Load()
		if n == unnamed {
			return false
		}
		if v.more.CompareAndSwap(n, n-1) {
			return n == 0
		}
	}
}

// Shape returns the shape of the value. It is empty if an error left the shape unknown.
func (h *Value) Shape() ir.Shape {
	v := h.now()
	if v.form == nil {
		return nil
	}
	return v.form.Shape
}

// DType returns the dtype of the value. It is ir.Invalid if an error left the dtype unknown.
func (h *Value) DType() ir.DType { return h.now().dt }

// Home returns the stream to which the value belongs.
func (h *Value) Home() *Stream { return h.now().home }

// Err returns the error that h has, without running anything. It is nil if no error is known yet.
func (h *Value) Err() error {
	err := h.Cause()
	if err == nil {
		return nil
	}
	e, ok := err.(*operror.Error)
	if !ok {
		e = newOpError("err", err, []Arg{{V: h}})
	}
	operror.See(e)
	return e
}

// Cause returns the error that h has, as an op finds it. After Release it is not an *OpError yet,
// because that names the op. Cause does not mark the error as seen.
func (h *Value) Cause() error {
	if st := h.now().mem.Load(); st != nil && st.Fault.Load() == nil {
		return nil // the stream's lock is not needed, so values that other streams read are fast
	}
	v := h.lock()
	if v.home == nil {
		if v.state == stFailed {
			return v.ext.err
		}
		return nil
	}
	defer v.home.mu.Unlock()
	return v.readable()
}

// ready returns the memory of a value together with a reader for the caller, without taking a
// lock. It returns nil if the value has no memory or if reading it needs the lock.
func (v *Value) ready() *memory.Storage {
	st := v.mem.Load()
	if st == nil || st.Lent || v.home.onTape.Load() || v.home.bindings.Load() > 0 || !st.RetainLive() {
		return nil
	}
	// Another goroutine may have given the value up before this reader was added. It may then
	// have found no readers and let a kernel overwrite the memory.
	if v.mem.Load() != st || st.Fault.Load() != nil {
		st.Release()
		return nil
	}
	st.Used()
	return st
}

// queued reports that the home's queue has the value, which is in memory, as an operand. The lock
// is held.
func (v *Value) queued() bool {
	slots := v.home.q.Slots
	return int(v.id) < len(slots) && slots[v.id].H.v == v
}

// owner returns the scope whose end will release the handle, nil for none.
func (h *Value) owner() *Scope {
	sc := h.born
	if n := h.out.Load(); n > 0 {
		sc = sc.outwards(n)
	}
	return sc
}

// ownedByNone is the out count of a handle that has left all scopes.
const ownedByNone = math.MaxUint32

// leave moves h from scope sc, which owns it, to the next outer scope, or out of all scopes. It
// returns false if h was released in the meantime.
func (h *Value) leave(sc *Scope) bool {
	for {
		n := h.out.Load()
		if h.born.outwards(n) != sc {
			return false
		}
		if h.out.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
