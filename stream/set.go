package stream

import (
	"fmt"

	"github.com/millrace-go/millrace/operror"
)

// Set makes t name u's value, which both have from then on, and gives up what t
// named. Others never see t without a value.
func Set(t, u *Value) {
	v, held := u.hold()
	if !held || v.home == nil && v.state == stNone {
		v = v.after("set", t)
	}
	if s := v.home; s != nil && s.trial != nil && t.now().home != s {
		s.trial.broken.Store(true) // what never runs is no value for others
		v.end(&dropped)
		return
	}
	old := t.name(v)
	if t.owner() == nil {
		v.strays()
	}
	v.stays()
	if old == nil { // as it was
		old = v
	}
	noteSet(t, old, v)
	old.end(&dropped)
}

// Same makes dst another handle of what h names, in h's scope: whoever looks at an
// operand several times does so through one, and Drop ends it.
func Same(dst, h *Value) {
	dst.born = h.born
	dst.out.Store(h.out.Load())
	dst.marks = h.marks & ofHandle
	v, _ := h.hold() // not held: nor does Drop let it go
	dst.names.Store(v)
}

// name has a handle name a value that is held for it. It returns what it named, which
// the caller ends the hold on, or nil where that is the same.
func (h *Value) name(v *Value) *Value {
	for {
		at := h.names.Load()
		old := at
		if at == nil {
			old = h
		}
		if old == v {
			return nil
		}
		if h.names.CompareAndSwap(at, v) {
			return old
		}
	}
}

// after is a value for handles that are given one which its last handle gave up, or
// that never was one: it carries the error of who uses that.
func (v *Value) after(op string, t *Value) *Value {
	err := error(operror.ErrNoValue)
	home := t.now().home
	if v.home != nil {
		home = v.home
		home.mu.Lock()
		if err = v.readable(); err == nil { // its last handle is about to say so
			err = fmt.Errorf("%w", operror.ErrReleased)
		}
		home.mu.Unlock()
	}
	f := new(Value)
	failIn(f, home, nil, op, err, nil)
	return f
}

// strays notes that a handle in no scope has the value, so that the collector is to
// tell when nobody has it any more.
func (v *Value) strays() {
	s := v.home
	if s == nil {
		return
	}
	s.mu.Lock()
	v.stray = true
	s.watch(v)
	s.mu.Unlock()
}

// stays notes that a program set a handle to the value, as it does with what it comes back
// to: see keepSet.
func (v *Value) stays() {
	s := v.home
	if s == nil {
		return
	}
	s.mu.Lock()
	if v.state == stPending {
		s.stay = append(s.stay, v)
	}
	v.endLease()
	s.mu.Unlock()
}

// keepSet has what handles are set to written, however much was made of it first, if they
// still are when the queue runs. Nobody releases the temporary handle of what a weight is
// set to, so that only the number of handles tells the last of several. The lock is held.
func (s *Stream) keepSet() {
	if len(s.stay) == 0 {
		return
	}
	left := s.stay[:0]
	for _, v := range s.stay {
		switch {
		case v.state != stPending:
		case int(v.id) >= len(s.q.Slots) || s.q.Slots[v.id].H.v != v:
			left = append(left, v) // behind the cut
		case v.more.Load() > 0 || v.names.Load() != nil:
			s.keep(v.id)
		}
	}
	clear(s.stay[len(left):])
	s.stay = left
}

// unscoped reports that the end of no scope is sure to release the value.
func (v *Value) unscoped() bool { return v.stray || v.owner() == nil }

// end is the end of a handle's hold on a value; by says who gave it up, for who uses
// the handle in the same place.
func (v *Value) end(by *ext) {
	if v.letGo() && v.home != nil {
		v.ended(by)
	}
}

// ended is the end of a value that no handle names any more.
func (v *Value) ended(by *ext) {
	s := v.home
	s.mu.Lock()
	defer s.unlock()
	s.drop(v, by)
}

// giveUp ends a handle. It returns the value that nobody has any more by that, which
// is to be dropped.
func (h *Value) giveUp(by *ext) *Value {
	if v := h.now(); v.home == nil && v.state == stNone {
		return nil
	}
	h.out.Store(ownedByNone)
	for {
		at := h.names.Load()
		v := at
		if at == nil {
			v = h
		}
		last := at == nil && v.more.CompareAndSwap(0, unnamed)
		if !last {
			if v.more.Load() == unnamed {
				return nil // somebody did before
			}
			gone := &Value{home: v.home, form: v.form, dt: v.dt, state: stReleased, ext: by}
			gone.more.Store(unnamed)
			if !h.names.CompareAndSwap(at, gone) {
				continue
			}
			last = v.letGo()
		}
		if last && v.home != nil {
			return v
		}
		return nil
	}
}

// release is giveUp, and the end of what nobody has any more.
func (h *Value) release(by *ext) {
	if v := h.giveUp(by); v != nil {
		v.ended(by)
	}
}
