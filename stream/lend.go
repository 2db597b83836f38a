package stream

import "github.com/millrace-go/millrace/runtime"

// Lend computes v and calls use with the device memory that stores v's elements in row-major
// order, starting at element off. The work that writes this memory has been submitted to the
// device. The engine does not write to the memory until use returns, and use must not write to
// it.
func Lend(v *Value, use func(dev runtime.Device, b runtime.Buffer, off int64) error) error {
	st, err := computed(v, nil, "lend")
	if err != nil {
		return err
	}
	defer st.ReleaseRead()
	return st.Mem.Lend(st.dt, st.form.Shape, st.Storage, use)
}
