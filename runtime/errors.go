package runtime

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/ir"
)

// Faults of devices. The public package re-exports them.
var (
	// ErrOutOfMemory: an allocation that failed after everything was tried.
	ErrOutOfMemory = errors.New("out of memory")
	// ErrDeviceLost: the device vanished; every later call on it fails.
	ErrDeviceLost = errors.New("device lost")
	// ErrNoDriver: no driver of that name is linked in or can start here.
	ErrNoDriver = errors.New("no driver")
	// ErrClosed: the device or stream was closed.
	ErrClosed = errors.New("closed")
)

// LaunchError is a launch of a Run that failed before it changed memory. The
// launches before Index have run, those from Index on have not.
type LaunchError struct {
	Index int
	Err   error
}

func (e *LaunchError) Error() string { return fmt.Sprintf("launch %d: %v", e.Index, e.Err) }

func (e *LaunchError) Unwrap() error { return e.Err }

// OutOfRange is the failure of a launch that met an index out of range of an
// axis of size elements.
func OutOfRange(launch int, index, size int64) *LaunchError {
	return &LaunchError{Index: launch, Err: fmt.Errorf("%w: index %d, but the axis has %d elements", ir.ErrIndex, index, size)}
}

// CompileError is a kernel that a compiler refused.
type CompileError struct {
	Kernel string // canonical text of the kernel
	Source string // what was compiled
	Log    string // what the compiler said
	Err    error
}

func (e *CompileError) Error() string {
	return fmt.Sprintf("compile: %v: %s", e.Err, firstLine(e.Log))
}

func (e *CompileError) Unwrap() error { return e.Err }

func firstLine(s string) string {
	for i, c := range s {
		if c == '\n' {
			return s[:i]
		}
	}
	return s
}
