//go:build !cgo || !unix

package cpu

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

const maxReduces = 16

// prepareList does nothing: what Go runs as a list it looks at each time.
func (d *device) prepareList([]runtime.Launch) runtime.Prepared { return nil }

func newExecutor(threads int, _ ir.Denormals) (executor, error) { return newGoExecutor(threads), nil }
