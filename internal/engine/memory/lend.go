package memory

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Lend calls use with the device memory that stores a tensor in row-major order, starting at
// element off. It is the tensor's own memory, or a copy if that has another order.
func (m *Pool) Lend(dt ir.DType, shape ir.Shape, st *Storage, use func(dev runtime.Device, b runtime.Buffer, off int64) error) error {
	if st.View == nil {
		return use(m.Driver, st.Buf, 0)
	}
	if off, ok := inOrder(st.View, shape); ok {
		return use(m.Driver, st.Buf, off)
	}
	b, err := m.Alloc(m.Bytes(dt, shape), true)
	if err != nil {
		return err
	}
	defer b.Release()
	if err := m.copyBox(b, dt, st, Box{shape, st.Layout()}); err != nil {
		return err
	}
	return use(m.Driver, b.Buf, 0)
}
