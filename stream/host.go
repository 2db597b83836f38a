package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// FromHost makes dst a tensor with a copy of data: dense row-major elements as
// Go holds them.
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
		return fmt.Errorf("%w: %v of %s is %d bytes, not %d", ir.ErrShape, shape, dt, want, len(data))
	}
	b, err := s.room(s.dev.drv.Alloc, dt, shape)
	if err != nil {
		return err
	}
	if len(data) > 0 {
		if err := s.dev.drv.Write(b.buf, dt, 0, data); err != nil {
			b.release()
			return err
		}
	}
	s.adopt(dst, scope, dt, shape, b)
	return nil
}

// room is memory, from where the device has it, for a dense tensor of a shape
// that was checked. It has one reference.
func (s *Stream) room(from func(int64) (runtime.Buffer, error), dt ir.DType, shape ir.Shape) (*block, error) {
	s.mu.Lock()
	err := s.usable()
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := s.supported(dt); err != nil {
		return nil, err
	}
	b, err := s.dev.mem.take(from, s.dev.bytes(dt, shape), true)
	if errors.Is(err, runtime.ErrOutOfMemory) {
		// What the queue holds may be all garbage but for its last results.
		s.mu.Lock()
		s.flush(segment.End{Reason: segment.ReasonCap, ID: -1}, true)
		s.unlock()
		b, err = s.dev.mem.take(from, s.dev.bytes(dt, shape), true)
	}
	return b, err
}

// adopt makes dst the tensor whose elements b holds.
func (s *Stream) adopt(dst *Value, scope *Scope, dt ir.DType, shape ir.Shape, b *block) {
	s.mu.Lock()
	dst.home, dst.dt, dst.form, dst.state = s, dt, queue.NewForm(shape), stReady
	dst.mem.Store(&b.dense)
	b.count(handles)
	s.enterReady(dst, scope)
	s.mu.Unlock()
	s.entered(dst, scope)
}

// bytes is what a dense tensor takes on the device.
func (d *Device) bytes(dt ir.DType, shape ir.Shape) int64 {
	return int64(shape.Elems()) * int64(d.caps.ElemSize[dt])
}

// Flush runs what v needs and makes it be in memory.
func Flush(v *Value) error { return FlushContext(context.Background(), v) }

// FlushContext is Flush for a caller who gives up when ctx is done: the work goes on.
func FlushContext(ctx context.Context, v *Value) error {
	home := v.now().home
	if home == nil {
		_, err := materialise(v, nil, "sync")
		return err
	}
	return home.dev.within(ctx, func() error {
		st, err := computed(v, nil, "sync")
		if err != nil {
			return err
		}
		defer st.release()
		return st.dev.drv.Wait(false)
	})
}

// Read copies v's elements into dst, dense and row-major as Go holds them.
func Read(v *Value, dst []byte) error {
	_, err := ReadAs(v, nil, dst)
	return err
}

// ReadAs is Read for a dst that was made for what v was found to name. It reports false,
// and has done nothing, where that is something else now.
func ReadAs(v, is *Value, dst []byte) (bool, error) {
	st, err := computed(v, is, "read")
	if err != nil {
		return err != errNotIt, err
	}
	defer st.releaseRead()
	d, shape := st.dev, st.form.Shape
	if want := shape.Elems() * st.dt.Size(); len(dst) != want {
		return true, fmt.Errorf("%w: reading %v of %s takes %d bytes, not %d", ir.ErrShape, shape, st.dt, want, len(dst))
	}
	return true, d.readDense(dst, st.dt, shape, st.storage)
}

// computed is v's memory once what writes it has run, with a reader for the
// caller. Where v names another value than is, if that is not nil, it is errNotIt.
func computed(v, is *Value, op string) (found, error) {
	st, err := materialise(v, is, op)
	if err != nil {
		return found{}, err
	}
	st.written().wait()
	if e := st.fault.Load(); e != nil {
		e.seen.Store(true)
		st.release()
		return found{}, e
	}
	return st, nil
}

// materialise makes h's value be in memory, or be about to be when submitted work has
// run, and returns its memory with a reader for the caller.
func materialise(h, is *Value, op string) (found, error) {
	v := h.now()
	if st := v.ready(); st != nil && (is == nil || v == is) {
		if !st.dev.closed.Load() {
			return found{st, kind{v.dt, v.form}}, nil
		}
		st.release()
	}
	v = h.lock()
	s := v.home
	if s == nil && v.state == stFailed {
		return found{}, v.ext.err
	}
	if s == nil {
		return found{}, newOpError(op, ErrNoValue, nil)
	}
	defer s.unlock()
	if is != nil && v != is {
		return found{}, errNotIt
	}
	if op != "sync" {
		s.spoil()
	}
	err := v.readable()
	if err == nil && s.dev.closed.Load() {
		err = runtime.ErrClosed
	}
	if err == nil && v.state != stReady {
		if v.state == stVirtual {
			s.replay(v)
		}
		s.flush(segment.End{Reason: segment.ReasonRead, ID: v.id}, true)
		err = v.readable()
	}
	if err != nil {
		e, ok := err.(*OpError)
		if !ok {
			e = newOpError(op, err, []Arg{{V: h}})
		}
		e.seen.Store(true)
		return found{}, e
	}
	return v.found(), nil
}

// gather reads a box whose memory is not dense: the range of the buffer that it
// touches is read and taken apart on the host. to is where in dst, in elements from
// one to the next along each dimension, its elements go. A wide range is read by
// halves, so that the host need not hold all that lies between them; room is what it
// held last.
func gather(d *Device, dst []byte, to []int64, dt ir.DType, buf runtime.Buffer, b box, room *[]byte) error {
	size := int64(dt.Size())
	lo, hi := extent(&b.view, b.shape)
	if (hi-lo+1)*size > rawChunk && len(b.view.Stages) == 0 && hi > lo {
		wide, reach := 0, int64(0) // the dimension whose ends lie farthest apart
		for k, n := range b.shape {
			if far := max(b.view.Stride[k], -b.view.Stride[k]) * int64(n-1); far > reach {
				wide, reach = k, far
			}
		}
		first, rest := box{slices.Clone(b.shape), b.view}, box{slices.Clone(b.shape), b.view}
		half := b.shape[wide] / 2
		first.shape[wide], rest.shape[wide] = half, b.shape[wide]-half
		rest.view.Offset += int64(half) * b.view.Stride[wide]
		if err := gather(d, dst, to, dt, buf, first, room); err != nil {
			return err
		}
		return gather(d, dst[int64(half)*to[wide]*size:], to, dt, buf, rest, room)
	}
	*room = slices.Grow((*room)[:0], int((hi-lo+1)*size))
	src := (*room)[:(hi-lo+1)*size]
	if err := d.drv.Read(src, dt, buf, lo); err != nil {
		return err
	}
	var at [ir.MaxRank]int
	rank := len(b.shape)
	for range b.shape.Elems() {
		from, into := (address(&b.view, at[:rank])-lo)*size, int64(0)
		for k, i := range at[:rank] {
			into += int64(i) * to[k]
		}
		copy(dst[into*size:][:size], src[from:])
		for k := rank - 1; k >= 0; k-- {
			if at[k]++; at[k] < b.shape[k] {
				break
			}
			at[k] = 0
		}
	}
	return nil
}

// address is where a view finds the element at an index.
func address(w *fusion.View, at []int) int64 {
	p := w.Offset
	for k, i := range at {
		p += int64(i) * w.Stride[k]
	}
	for _, stage := range w.Stages {
		q := stage.Offset
		for k := len(stage.Dims) - 1; k >= 0; k-- {
			q += p % stage.Dims[k] * stage.Stride[k]
			p /= stage.Dims[k]
		}
		p = q
	}
	return p
}

// extent is the range of elements a view can touch.
func extent(w *fusion.View, shape ir.Shape) (lo, hi int64) {
	span := func(off int64, dims func(k int) int64, stride []int64) (lo, hi int64) {
		lo, hi = off, off
		for k, st := range stride {
			if d := (dims(k) - 1) * st; d < 0 {
				lo += d
			} else {
				hi += d
			}
		}
		return lo, hi
	}
	if n := len(w.Stages); n > 0 {
		last := w.Stages[n-1]
		return span(last.Offset, func(k int) int64 { return last.Dims[k] }, last.Stride)
	}
	return span(w.Offset, func(k int) int64 { return int64(shape[k]) }, w.Stride)
}

// To makes dst h's value on another stream or device: an alias on the same
// device, a copy through the host on another one.
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
		return ErrNoValue
	case v.home.dev != s.dev:
		st, err := computed(h, nil, "read")
		if err != nil {
			return err
		}
		return s.copyFrom(dst, scope, st)
	}
	st, err := handOver(h, nil, s)
	if err != nil {
		return err
	}
	if st.dev != s.dev {
		st.release()
		return errMoved
	}
	s.mu.Lock()
	if err := s.usable(); err != nil {
		s.mu.Unlock()
		st.release()
		return err
	}
	dst.home, dst.dt, dst.form, dst.state = s, st.dt, st.form, stReady
	dst.mem.Store(st.storage)
	st.count(handles)
	s.enterReady(dst, scope)
	s.mu.Unlock()
	s.entered(dst, scope)
	return nil
}

// copyFrom makes dst a copy of what was found on another device.
func (s *Stream) copyFrom(dst *Value, scope *Scope, st found) error {
	defer st.releaseRead()
	dt, shape := st.dt, st.form.Shape
	b, err := s.room(s.dev.drv.Alloc, dt, shape)
	if err != nil {
		return err
	}
	err = st.dev.eachDense(dt, shape, st.storage, func(at int64, part []byte) error {
		return s.dev.drv.Write(b.buf, dt, at, part)
	})
	if err != nil {
		b.release()
		return err
	}
	s.adopt(dst, scope, dt, shape, b)
	return nil
}
