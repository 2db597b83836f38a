package stream

import (
	"fmt"
	"io"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/ir"
)

// FromReader makes dst a tensor of the elements that it reads from r: dense, row-major,
// little-endian, a bool in one byte. The elements are copied to the device piece by piece. If r
// has fewer bytes than the shape needs, the error is io.ErrUnexpectedEOF. FromReader reads no
// further bytes of r.
func FromReader(dst *Value, p Place, dt ir.DType, shape ir.Shape, r io.Reader) error {
	s := p.S
	if err := shape.Check(); err != nil {
		return fmt.Errorf("%w: %v", ir.ErrShape, err)
	}
	b, err := s.room(s.dev.Driver.Alloc, dt, shape)
	if err != nil {
		return err
	}
	if err := s.dev.mem.Fill(b, dt, int64(shape.Elems()), r); err != nil {
		b.Release()
		return err
	}
	s.adopt(dst, p.Scope, dt, shape, b)
	return nil
}

// WriteTo writes v's elements to w in the format that FromReader reads, in row-major order.
func WriteTo(v *Value, w io.Writer) (int64, error) {
	st, err := computed(v, nil, "read")
	if err != nil {
		return 0, err
	}
	defer st.ReleaseRead()
	var done int64
	err = st.Mem.EachDense(st.dt, st.form.Shape, st.Storage, func(_ int64, part []byte) error {
		memory.HostOrder(part, st.dt)
		wrote, err := w.Write(part)
		done += int64(wrote)
		return err
	})
	return done, err
}
