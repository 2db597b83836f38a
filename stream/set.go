package stream

import (
	"fmt"

	"github.com/millrace-go/millrace/internal/operror"
)

// Set makes t name u's value, so that both handles name it, and gives up the value that t named.
// Other goroutines never see t without a value.
func Set(t, u *Value) {
	v, held := u.hold()
	if !held || v.home == nil && v.state == stNone {
		v = v.after("set", t)
	}
	if s := v.home; s != nil && s.trial != nil && t.now().home != s {
		s.trial.broken.Store(true) // a trial's value is never computed and is useless outside of it
		v.end(&dropped)
		return
	}
	old := t.name(v)
	if t.owner() == nil {
		v.strays()
	}
	v.stays()
	if old == nil { // t named v already
		old = v
	}
	noteSet(t, old, v)
	old.end(&dropped)
}

// Same makes dst another handle of the value that h names, in h's scope. An op that looks at an
// operand several times does so through one such handle. Drop ends it.
func Same(dst, h *Value) {
	dst.born = h.born
	dst.out.Store(h.out.Load())
	dst.marks = h.marks & inherited
	v, _ := h.hold() // if the value was not held, Drop does not let it go either
	dst.names.Store(v)
}

// name makes a handle name a value on which the caller has a hold for it. It returns the value
// that h named before, whose hold the caller must end, or nil if h named v already.
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

// after makes a value for a handle that is set to a released value or to one that never existed.
// The new value has the error of that use.
func (v *Value) after(op string, t *Value) *Value {
	err := error(operror.ErrNoValue)
	home := t.now().home
	if v.home != nil {
		home = v.home
		home.mu.Lock()
		if err = v.readable(); err == nil { // its last handle is about to release it
			err = fmt.Errorf("%w", operror.ErrReleased)
		}
		home.mu.Unlock()
	}
	f := new(Value)
	failIn(f, home, nil, op, err, nil)
	return f
}

// strays notes that a handle in no scope names the value. The collector then has to report when
// the value dies.
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

// stays notes that the program set a handle to the value and so will probably read it: see
// keepSet.
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

// keepSet makes the queue write the values to which handles were set, even if ops of the queue
// read them, provided that a handle still names them when the queue runs. A program does not
// release the temporary handle of a weight's new value. The number of handles therefore shows
// which of several values is the last one. The lock is held.
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

// unscoped reports that perhaps no scope's end will release the value.
func (v *Value) unscoped() bool { return v.stray || v.owner() == nil }

// end ends a handle's hold on a value. by tells later users of the handle in the same Value how
// it was given up.
func (v *Value) end(by *ext) {
	if v.letGo() && v.home != nil {
		v.ended(by)
	}
}

// ended ends a value that no handle names any more.
func (v *Value) ended(by *ext) {
	s := v.home
	s.mu.Lock()
	defer s.unlock()
	s.drop(v, by)
}

// giveUp ends a handle. If that was the value's last handle, it returns the value, which the
// caller must drop.
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
				return nil // it was given up before
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

// release calls giveUp and ends the value if no handle names it any more.
func (h *Value) release(by *ext) {
	if v := h.giveUp(by); v != nil {
		v.ended(by)
	}
}
