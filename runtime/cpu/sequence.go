package cpu

import "github.com/millrace-go/millrace/runtime"

// Prepare makes a list ready to be run many times: as one function where machine code is
// made of kernels and the list is short, else for C.
func (d *device) Prepare(list []runtime.Launch, own []runtime.Buffer) runtime.Prepared {
	if d.machine {
		return nil
	}
	return d.prepareList(list)
}

var _ runtime.Preparer = (*device)(nil)
