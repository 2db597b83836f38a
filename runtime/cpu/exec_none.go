//go:build !cgo || !unix

package cpu

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

const maxReduces = 16

func (d *device) prepareList(list []runtime.Launch) runtime.Prepared { return d.prepareGo(list) }

func newExecutor(threads int, _ ir.Denormals) (executor, error) { return newGoExecutor(threads), nil }
