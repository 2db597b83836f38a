//go:build !cgo || !unix

package contract

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

func newC(ir.DType) (*functions, error) { return nil, errNoC }

// callC is never called in this build.
func callC(int32, int, unsafe.Pointer) {}
