//go:build !cgo || !unix

package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen/cgo"
)

// runsCompiled says that this build can run kernels that a C compiler made: it cannot.
const runsCompiled = false

func hasLevel(int) bool { return false }

func probeObject(unsafe.Pointer) error { return nil }

// newCPhase is never called here.
func newCPhase(*compiled, unsafe.Pointer, *cgo.Unit) evaluator { return nil }
