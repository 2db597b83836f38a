package stream

import (
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/runtime"
)

// A bound tape has dense arguments and states, and so they can be set to any value of the same
// shape. If a handle names a view of other memory, the elements are copied to memory of their
// own. The program cannot see the difference.

// Lay replaces views that the handles name by dense tensors. It skips handles with an error and
// handles that were given up; the next user of such a handle gets the error.
func (s *Stream) Lay(handles []*Value) error {
	for _, h := range handles {
		if err := s.lay(h); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stream) lay(h *Value) error {
	at := h.names.Load()
	v := h.now()
	if v.home == nil || v.home.dev != s.dev || v.more.Load() == unnamed {
		return nil
	}
	st, err := computed(h, v, "bind")
	if err != nil {
		return nil
	}
	defer st.Release()
	if st.View == nil || st.form.Shape.Elems() == 0 {
		return nil
	}
	s.mu.Lock()
	own, err := s.densely(st)
	s.unlock()
	if err != nil {
		return err
	}
	if h.names.CompareAndSwap(at, own) {
		v.end(&dropped)
	} else { // another goroutine set or released it meanwhile
		own.end(&dropped)
	}
	return nil
}

// densely returns a new value of the stream that is a dense copy. The lock is held.
func (s *Stream) densely(st found) (*Value, error) {
	blk, err := s.dev.mem.Alloc(s.dev.Bytes(st.dt, st.form.Shape), true)
	if err != nil {
		return nil, err
	}
	own := s.value(nil, st.dt, st.form, &blk.Dense)
	l, err := s.dev.mem.CopyLaunch(blk, st.dt, st.form.Shape, st.Storage)
	if err == nil {
		err = s.dev.Launch([]runtime.Launch{l}, nil, device.Submitter{Stream: s.num})
	}
	if err != nil {
		if own.letGo() {
			s.drop(own, &dropped)
		}
		return nil, err
	}
	return own, nil
}

// lay makes the arguments and states dense that the tape needs dense.
func (b *Binding) lay() error {
	for i, h := range b.in {
		if b.t.inputs[i].view == nil {
			if err := b.s.lay(h); err != nil {
				return err
			}
		}
	}
	for i := range b.t.states {
		if x := &b.t.states[i]; x.view == nil && x.seen == nil {
			if err := b.s.lay(x.h); err != nil {
				return err
			}
		}
	}
	return nil
}

// LayStates makes the states of a tape dense. fits is true if the tape was recorded with dense
// states and arguments; otherwise a tape recorded now will be.
func (t *Tape) LayStates(s *Stream) (fits bool, err error) {
	fits = true
	for i := range t.states {
		x := &t.states[i]
		fits = fits && x.view == nil
		if err := s.lay(x.h); err != nil {
			return false, err
		}
	}
	for i := range t.inputs {
		fits = fits && t.inputs[i].view == nil
	}
	return fits, nil
}
