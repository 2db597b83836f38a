//go:build !cgo || !unix

package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/ir"
)

// runsCompiled reports that this build can run kernels compiled from C: it cannot.
const runsCompiled = false

func hasLevel(int) bool { return false }

func probeObject(unsafe.Pointer) error { return nil }

func newCDot(ir.DType) (*dotCode, error) { return nil, errNoCDot }

// callC and newCPhase are never called in this build.
func callC(int32, int, unsafe.Pointer) {}

func newCPhase(*compiled, unsafe.Pointer, *cgo.Unit) evaluator { return nil }
