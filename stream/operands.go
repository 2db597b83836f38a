package stream

import (
	"fmt"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// operands are the operands of one op as they were found. Their handles may name other values
// now.
type operands [3]struct {
	v *Value // a value of the recording stream
	found
}

// found is a value in memory, with a reader for the finder.
type found struct {
	*memory.Storage
	kind
	of *Value
}

// kind is the type of an operand; form is nil for a scalar.
type kind struct {
	dt   ir.DType
	form *queue.Form
}

// sameAs returns the index of an earlier operand with the same handle as operand i, else -1. An
// op must see a single value of a handle.
func sameAs(args []Arg, i int) int {
	for k := range i {
		if args[k].V == args[i].V {
			return k
		}
	}
	return -1
}

// handOver makes the operands of other streams readable by home's queue.
func (o *operands) handOver(home *Stream, args []Arg) (err error) {
	for i := range args {
		h := args[i].V
		if h == nil {
			continue
		}
		if k := sameAs(args, i); k >= 0 {
			if o[i].found = o[k].found; o[i].Storage != nil {
				o[i].Retain()
			}
			continue
		}
		v := h.now()
		if v.home == home {
			continue
		}
		switch {
		case v.home == nil:
			err = errMoved // it has no stream now; the next try reports it
		case v.home.dev != home.dev:
			err = errDevices(home.dev.Name(), v.home.dev.Name())
		default:
			o[i].found, err = handOver(h, args[i].Is, home)
		}
		if err != nil {
			o.release()
			return err
		}
	}
	return nil
}

func (o *operands) release() {
	for i := range o {
		if o[i].Storage != nil {
			o[i].found.Release()
		}
	}
}

// complete adds the operands of the stream itself. The lock is held.
func (s *Stream) complete(o *operands, args []Arg) error {
	for i := range args {
		h := args[i].V
		if h == nil || o[i].Storage != nil {
			continue
		}
		if k := sameAs(args, i); k >= 0 {
			o[i] = o[k]
			continue
		}
		v := h.now()
		switch {
		case args[i].Is != nil && v != args[i].Is:
			return errNotIt
		case v.home != s:
			return errMoved
		}
		if v.state != stPending {
			if err := v.readable(); err != nil {
				return err
			}
		}
		o[i].v, o[i].kind = v, kind{v.dt, v.form}
	}
	return nil
}

// readable returns an error if a value cannot be an operand. The lock of its home is held.
func (v *Value) readable() error {
	switch v.state {
	case stFailed:
		return v.ext.err
	case stReleased:
		return v.ext.releasedErr()
	case stReady:
		if e := v.mem.Load().Failed(); e != nil {
			return e
		}
	case stNone:
		return operror.ErrNoValue
	}
	return nil
}

// handOver makes h's value readable by another stream, named to: the value is in memory, or will
// be when the submitted jobs have run. The result has a reader for the caller. The error is
// errNotIt if h names another value than is; with a nil is, any value is right. handOver cuts the
// value's stream right after the op that computes the value; this place depends on the program
// only. A value in memory is handed over without the lock of its stream.
func handOver(h, is *Value, to *Stream) (found, error) {
	v := h.now()
	if is == nil || v == is {
		if st := v.ready(); st != nil {
			to.takes(v)
			return found{st, kind{v.dt, v.form}, v}, nil
		}
	}
	v = h.lock()
	s := v.home
	if s == nil {
		return found{}, errMoved
	}
	defer s.unlock()
	to.takes(v)
	if is != nil && v != is {
		return found{}, errNotIt
	}
	err := v.readable()
	if err == nil && v.state == stVirtual {
		s.replay(v)
	}
	if err == nil && v.state == stPending {
		s.flushPrefix(s.itemOf(v.id)+1, segment.End{Reason: segment.ReasonHandOver, ID: v.id}, false)
		err = v.readable()
	}
	if err != nil {
		return found{}, err
	}
	if v.state != stReady {
		return found{}, s.neverReady()
	}
	if to != s && s.taped() {
		s.taping.leaks(v.mem.Load())
	}
	return v.found(), nil
}

// found returns a value in memory, with a reader for the caller. The lock is held.
func (v *Value) found() found {
	v.endLease()
	st := v.mem.Load()
	st.Retain()
	st.Used()
	return found{st, kind{v.dt, v.form}, v}
}

// errDevices returns the error for operands on two devices.
func errDevices(a, b string) error {
	if a == b {
		return fmt.Errorf("%w: the operands are on two devices, both opened as %s (each Open makes a new device, apart from the default one): move an operand with To", ir.ErrUnsupported, a)
	}
	return fmt.Errorf("%w: the operands are on devices %s and %s: move one of them with To", ir.ErrUnsupported, a, b)
}
