package stream

import "github.com/millrace-go/millrace/runtime"

// Lend computes v and gives use the device's memory in which its elements lie in
// row-major order, from element off on. What writes it has been handed to the device.
// Until use returns nobody writes there again; use does not either.
func Lend(v *Value, use func(dev runtime.Device, b runtime.Buffer, off int64) error) error {
	st, err := computed(v, nil, "lend")
	if err != nil {
		return err
	}
	defer st.ReleaseRead()
	return st.Mem.Lend(st.dt, st.form.Shape, st.Storage, use)
}
