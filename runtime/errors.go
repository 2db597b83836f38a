package runtime

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/ir"
)

// Errors of devices. The public package re-exports them.
var (
	// ErrOutOfMemory: an allocation failed even after the device freed its pools.
	ErrOutOfMemory = errors.New("out of memory")
	// ErrDeviceLost: the device is gone; every later call on it fails.
	ErrDeviceLost = errors.New("device lost")
	// ErrNoDriver: no driver of that name is linked in, or the driver cannot start on this
	// machine.
	ErrNoDriver = errors.New("no driver")
	// ErrClosed: the device or stream was closed.
	ErrClosed = errors.New("closed")
)

// LaunchError reports a launch of a Run that failed before it changed memory. The launches before
// Index have run; those from Index on have not.
type LaunchError struct {
	Index int
	Err   error
}

func (e *LaunchError) Error() string { return fmt.Sprintf("launch %d: %v", e.Index, e.Err) }

func (e *LaunchError) Unwrap() error { return e.Err }

// OutOfRange returns the error of a launch that read an index outside an axis of size elements.
func OutOfRange(launch int, index, size int64) *LaunchError {
	return &LaunchError{Index: launch, Err: fmt.Errorf("%w: index %d, but the axis has %d elements", ir.ErrIndex, index, size)}
}

// CompileError reports a kernel that a compiler refused.
type CompileError struct {
	Kernel string // canonical text of the kernel
	Source string // source text given to the compiler
	Log    string // output of the compiler
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
