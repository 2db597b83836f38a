package stream

import (
	"fmt"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Shares reports that tensors of the device can use memory of Go's heap: see Share.
func (d *Device) Shares(dt ir.DType) bool {
	_, ok := d.Driver.(runtime.Sharer)
	return ok && d.Caps.DTypes.Has(dt) && d.Caps.ElemSize[dt] == dt.Size()
}

// Share makes dst a tensor of zeros in memory of Go's heap. It returns that memory, which has the
// elements in row-major order and may be read and written. The engine does not notice writes. The
// writer must make sure that all ops recorded with the tensor have run, that no result is virtual
// or an alias of the tensor, and that no op of it was recorded as a view. The memory exists as
// long as the slice is referenced. After dst is released, a result may use the memory.
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
		return nil, fmt.Errorf("%w: device %[3]q cannot keep %[2]v in memory of Go", ir.ErrUnsupported, dt, s.dev.Caps.Name)
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

// Shared returns the memory of a tensor, if Share made that memory: the tensor of Share, a result
// that took over its memory, or an alias of either. It returns nil for tensors that are stored
// elsewhere or not yet in memory. alone reports that no other handle uses the memory, and that it
// has exactly the tensor's elements in row-major order.
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
