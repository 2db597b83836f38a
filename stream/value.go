package stream

import (
	"math"
	"sync/atomic"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/queue"
)

type state uint8

const (
	stNone     state = iota // zero Value: never recorded
	stPending               // result of an op still in its stream's queue
	stVirtual               // ran, was not written: see recipe
	stReady                 // in memory
	stFailed                // carries an error
	stReleased              // Release was called, or its scope ended
)

// Value is two things in one allocation: a handle, which names a value, and a value,
// which is what the handle names until Set has it name another one. A value never
// changes its stream, dtype or shape; a handle may, at any time: whoever is given one
// looks once at what it names, and asks that value all else.
//
// The public Tensor embeds one, so that recording an op costs one allocation. A Value
// must not be copied after it was passed to this package.
type Value struct {
	// Of the handle. Scope and count say whose it is: see owner.
	names atomic.Pointer[Value] // nil: the value in the same place
	born  *Scope                // the scope it was made in, nil for none: never changes
	out   atomic.Uint32         // how many scopes out of born it has moved since

	// Of the value. What is not said to be anybody's belongs to its home's lock.
	more  atomic.Int32 // handles that name it, less one: see hold
	home  *Stream      // never changes, nor do form and dt
	form  *queue.Form  // nil: unknown
	mem   atomic.Pointer[memory.Storage]
	ext   *ext  // recipe, error or release line: what few values have
	id    int32 // relative id in the home's queue, if that has it: see queued
	dt    ir.DType
	state state
	stray bool  // a handle that Set gave it to is in no scope
	marks Marks // of the handle, and of the value: see there
}

// names nothing any more: what a count of handles is then.
const unnamed = -1

// now is the value that a handle names.
func (h *Value) now() *Value {
	if v := h.names.Load(); v != nil {
		return v
	}
	return h
}

// Now is the value that a handle names at this moment.
func (h *Value) Now() *Value { return h.now() }

// lock finds the value that a handle names and takes the lock of its home, if it has
// one. While that is held the value is not given up by whoever has the handle name
// another one meanwhile.
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

// hold finds the value that a handle names and adds a handle to it, whose hold ends
// with letGo. It reports false where the value was given up already.
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

// letGo ends a handle's hold on a value. It reports that this was the last one: the
// caller ends the value.
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

// Shape of the value; empty where it carries an error that left it unknown.
func (h *Value) Shape() ir.Shape {
	v := h.now()
	if v.form == nil {
		return nil
	}
	return v.form.Shape
}

// DType of the value; ir.Invalid where it carries an error that left it unknown.
func (h *Value) DType() ir.DType { return h.now().dt }

// Home is the stream the value belongs to.
func (h *Value) Home() *Stream { return h.now().home }

// Err is the error that h carries, without running anything: nil where it is
// usable as far as anybody knows.
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

// Cause is the same as an op finds it: for use after Release no *OpError yet,
// since that names the op. Nobody is told by it.
func (h *Value) Cause() error {
	if st := h.now().mem.Load(); st != nil && st.Fault.Load() == nil {
		return nil // as it is of what others compute with: their stream's lock is not needed
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

// ready is the value's memory where it has some, with a reader for the caller, and
// needs no lock for it; else nil.
func (v *Value) ready() *memory.Storage {
	st := v.mem.Load()
	if st == nil || st.Lent || v.home.onTape.Load() || v.home.bindings.Load() > 0 || !st.RetainLive() {
		return nil
	}
	// Who gave the value up before the reader was there may have found it without
	// readers and let a kernel write over it.
	if v.mem.Load() != st || st.Fault.Load() != nil {
		st.Release()
		return nil
	}
	return st
}

// queued reports that the home's queue knows a value that is in memory. The lock is
// held.
func (v *Value) queued() bool {
	slots := v.home.q.Slots
	return int(v.id) < len(slots) && slots[v.id].H.v == v
}

// owner is the scope whose end will release the handle, nil for none.
func (h *Value) owner() *Scope {
	sc := h.born
	if n := h.out.Load(); n > 0 {
		sc = sc.outwards(n)
	}
	return sc
}

// ownedByNone is the count of a handle that is out of all scopes.
const ownedByNone = math.MaxUint32

// leave moves h from a scope that owns it to the next one out, or out of all
// scopes. It reports false where h was released meanwhile.
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
