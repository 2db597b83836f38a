package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// FromHost makes dst a tensor with a copy of data. data has the elements in row-major order,
// without gaps, in Go's representation.
func FromHost(dst *Value, p Place, dt ir.DType, shape ir.Shape, data []byte) {
	s := p.S
	if err := s.fromHost(dst, p.Scope, dt, shape, data); err != nil {
		failIn(dst, s, p.Scope, "from slice", err, nil)
	}
}

func (s *Stream) fromHost(dst *Value, scope *Scope, dt ir.DType, shape ir.Shape, data []byte) error {
	if err := shape.Check(); err != nil {
		return fmt.Errorf("%w: %v", ir.ErrShape, err)
	}
	if want := shape.Elems() * dt.Size(); len(data) != want {
		return fmt.Errorf("%w: shape %v of %s takes %d bytes, the data has %d", ir.ErrShape, shape, dt, want, len(data))
	}
	b, err := s.room(s.dev.Driver.Alloc, dt, shape)
	if err != nil {
		return err
	}
	if len(data) > 0 {
		if err := s.dev.Driver.Write(b.Buf, dt, 0, data); err != nil {
			b.Release()
			return err
		}
	}
	s.adopt(dst, scope, dt, shape, b)
	return nil
}

// room allocates memory for a dense tensor; from is the source of device memory. The shape was
// checked. The block has one reader, which is the caller's.
func (s *Stream) room(from func(int64) (runtime.Buffer, error), dt ir.DType, shape ir.Shape) (*memory.Block, error) {
	s.mu.Lock()
	err := s.usable()
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := s.supported(dt); err != nil {
		return nil, err
	}
	b, err := s.dev.mem.Take(from, s.dev.Bytes(dt, shape), true)
	if errors.Is(err, runtime.ErrOutOfMemory) {
		// The queue may hold a lot of memory that is free once its ops have run.
		s.mu.Lock()
		s.flush(segment.End{Reason: segment.ReasonCap, ID: -1}, true)
		s.unlock()
		b, err = s.dev.mem.Take(from, s.dev.Bytes(dt, shape), true)
	}
	return b, err
}

// adopt makes dst the tensor whose elements b stores.
func (s *Stream) adopt(dst *Value, scope *Scope, dt ir.DType, shape ir.Shape, b *memory.Block) {
	s.mu.Lock()
	dst.home, dst.dt, dst.form, dst.state = s, dt, queue.NewForm(shape), stReady
	dst.mem.Store(&b.Dense)
	b.Count(memory.Handles)
	s.enterReady(dst, scope, nil)
	s.mu.Unlock()
	s.entered(dst, scope)
}

// Flush runs the ops that v needs, and v is in memory afterwards.
func Flush(v *Value) error { return FlushContext(context.Background(), v) }

// FlushContext is Flush for a caller that stops waiting when ctx is done. The work continues.
func FlushContext(ctx context.Context, v *Value) error {
	home := v.now().home
	if home == nil {
		_, err := materialise(v, nil, "sync")
		return err
	}
	return home.dev.Within(ctx, func() error {
		st, err := computed(v, nil, "sync")
		if err != nil {
			return err
		}
		defer st.Release()
		return st.Mem.Driver.Wait(false)
	})
}

// Read copies v's elements into dst, dense and in row-major order, in Go's representation.
func Read(v *Value, dst []byte) error {
	_, err := ReadAs(v, nil, dst)
	return err
}

// ReadAs is Read if v still names the value that is points to, for which dst was made. It returns
// false, and does nothing, if v names another value now.
func ReadAs(v, is *Value, dst []byte) (bool, error) {
	st, err := computed(v, is, "read")
	if err != nil {
		return err != errNotIt, err
	}
	defer st.ReleaseRead()
	d, shape := st.Mem, st.form.Shape
	if want := shape.Elems() * st.dt.Size(); len(dst) != want {
		return true, fmt.Errorf("%w: shape %v of %s takes %d bytes, the destination has %d", ir.ErrShape, shape, st.dt, want, len(dst))
	}
	return true, d.ReadDense(dst, st.dt, shape, st.Storage)
}

// computed waits until v's value is written, and returns its memory with a reader for the caller.
// The error is errNotIt if v names another value than is; with a nil is, any value is right.
func computed(v, is *Value, op string) (found, error) {
	st, err := materialise(v, is, op)
	if err != nil {
		return found{}, err
	}
	st.Written().Wait()
	if e := st.Fault.Load(); e != nil {
		operror.See(e)
		st.Release()
		return found{}, e
	}
	return st, nil
}

// materialise makes sure that h's value is in memory, or will be when the submitted jobs have
// run. It returns the memory with a reader for the caller.
func materialise(h, is *Value, op string) (found, error) {
	v := h.now()
	if st := v.ready(); st != nil && (is == nil || v == is) {
		if !st.Mem.Closed.Load() {
			return found{st, kind{v.dt, v.form}, v}, nil
		}
		st.Release()
	}
	v = h.lock()
	s := v.home
	if s == nil && v.state == stFailed {
		return found{}, v.ext.err
	}
	if s == nil {
		return found{}, newOpError(op, operror.ErrNoValue, nil)
	}
	defer s.unlock()
	if is != nil && v != is {
		return found{}, errNotIt
	}
	if op != "sync" {
		s.spoil()
	}
	err := v.readable()
	if err == nil && s.dev.Closed.Load() {
		err = runtime.ErrClosed
	}
	if err == nil && v.state != stReady {
		if v.state == stVirtual {
			s.replay(v)
		}
		s.flush(segment.End{Reason: segment.ReasonRead, ID: v.id}, true)
		if err = v.readable(); err == nil && v.state != stReady {
			err = s.neverReady()
		}
	}
	if err != nil {
		e, ok := err.(*operror.Error)
		if !ok {
			e = newOpError(op, err, []Arg{{V: h}})
		}
		operror.See(e)
		return found{}, e
	}
	return v.found(), nil
}

// To makes dst h's value on another stream or device. On the same device it is an alias, on
// another device a copy through the host.
func To(dst *Value, p Place, h *Value) {
	s := p.S
	err := s.to(dst, p.Scope, h)
	for err == errMoved {
		err = s.to(dst, p.Scope, h)
	}
	if err != nil {
		failIn(dst, s, p.Scope, "to", err, []Arg{{V: h}})
	}
}

func (s *Stream) to(dst *Value, scope *Scope, h *Value) error {
	v := h.now()
	switch {
	case v.home == nil && v.state == stFailed:
		return v.ext.err
	case v.home == nil:
		return operror.ErrNoValue
	case v.home.dev != s.dev:
		st, err := computed(h, nil, "read")
		if err != nil {
			return err
		}
		return s.copyFrom(dst, scope, st)
	}
	if s.trial != nil && s.trial.alias(dst, scope, v) {
		return nil
	}
	st, err := handOver(h, nil, s)
	if err != nil {
		return err
	}
	if st.Mem != &s.dev.mem {
		st.Release()
		return errMoved
	}
	s.mu.Lock()
	if err := s.usable(); err != nil {
		s.mu.Unlock()
		st.Release()
		return err
	}
	dst.home, dst.dt, dst.form, dst.state = s, st.dt, st.form, stReady
	dst.mem.Store(st.Storage)
	st.Count(memory.Handles)
	s.enterReady(dst, scope, st.of)
	s.mu.Unlock()
	s.entered(dst, scope)
	return nil
}

// copyFrom makes dst a copy of a value of another device.
func (s *Stream) copyFrom(dst *Value, scope *Scope, st found) error {
	defer st.ReleaseRead()
	dt, shape := st.dt, st.form.Shape
	b, err := s.room(s.dev.Driver.Alloc, dt, shape)
	if err != nil {
		return err
	}
	err = st.Mem.EachDense(dt, shape, st.Storage, func(at int64, part []byte) error {
		return s.dev.Driver.Write(b.Buf, dt, at, part)
	})
	if err != nil {
		b.Release()
		return err
	}
	s.adopt(dst, scope, dt, shape, b)
	return nil
}
