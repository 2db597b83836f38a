//go:build !cgo || !unix

package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen/cgo"
)

// runsCompiled says that this build can run compiled kernels: it cannot.
const runsCompiled = false

func hasLevel(int) bool { return false }

func probeObject(unsafe.Pointer) error { return nil }

func (c *compiled) isa() *cgo.ISA { return cgo.Portable }
