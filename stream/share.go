package stream

import (
	"fmt"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/runtime"
)

// Shares reports that tensors of the device can lie in Go's memory: see Share.
func (d *Device) Shares(dt ir.DType) bool {
	_, ok := d.Driver.(runtime.Sharer)
	return ok && d.Caps.DTypes.Has(dt) && d.Caps.ElemSize[dt] == dt.Size()
}

// Share makes dst a tensor of zeros in memory of Go's heap, and returns that: its
// elements in row-major order, to be read and written. The engine knows nothing
// of writes. Whoever does so sees to it that nothing that was recorded with the
// tensor is still to run, that no result is virtual or an alias of it, and
// that no op of it was recorded as a view. The memory is there for as long as
// anybody holds the slice, and once dst is released a result may lie there.
func Share(dst *Value, p Place, dt ir.DType, shape ir.Shape) ([]byte, error) {
	s := p.S
	data, err := s.share(dst, p.Scope, dt, shape)
	if err != nil {
		failIn(dst, s, p.Scope, "share", err, nil)
	}
	return data, err
}

func (s *Stream) share(dst *Value, scope *Scope, dt ir.DType, shape ir.Shape) ([]byte, error) {
	if err := shape.Check(); err != nil {
		return nil, fmt.Errorf("%w: %v", ir.ErrShape, err)
	}
	if !s.dev.Shares(dt) {
		return nil, fmt.Errorf("%w: %v of device %q in memory of Go", ir.ErrUnsupported, dt, s.dev.Caps.Name)
	}
	drv := s.dev.Driver.(runtime.Sharer)
	b, err := s.room(drv.AllocShared, dt, shape)
	if err != nil {
		return nil, err
	}
	data := drv.Shared(b.Buf)
	s.adopt(dst, scope, dt, shape, b)
	return data, nil
}

// Shared is the memory of a tensor that lies in memory which Share made: that
// tensor, or a result that came to lie there when it was given away, or an alias
// of either. It is nil for tensors that lie elsewhere, or not yet. alone says that
// no other handle is of that memory, and that it is the tensor's elements in
// row-major order.
func Shared(h *Value) (data []byte, alone bool) {
	v := h.lock()
	s := v.home
	if s == nil {
		return nil, false
	}
	defer s.mu.Unlock()
	drv, ok := s.dev.Driver.(runtime.Sharer)
	if !ok || v.readable() != nil || v.state != stReady {
		return nil, false
	}
	st := v.mem.Load()
	data = drv.Shared(st.Buf)
	alone = st.View == nil && st.Held.Load() < 2*memory.Handles && v.more.Load() == 0 && len(data) == v.form.Shape.Elems()*v.dt.Size()
	return data, alone && data != nil
}
