package ir

import (
	"errors"
	"fmt"
)

// Causes of a bad op. The public package re-exports them.
var (
	// ErrShape: invalid shapes, or shapes that do not fit together.
	ErrShape = errors.New("shape mismatch")
	// ErrDType: an operand of a dtype the op does not take.
	ErrDType = errors.New("wrong dtype")
	// ErrIndex: an index, read from a tensor, that is out of range.
	ErrIndex = errors.New("index out of range")
	// ErrUnsupported: valid, but not on this device.
	ErrUnsupported = errors.New("unsupported on this device")
)

// IndexFault is the first index, in row-major order of the index tensor, that is out of range in a
// gather or scatter with mode IndexError. It wraps ErrIndex.
type IndexFault struct {
	Op    Op
	Index int64
	At    int // row-major position in the index tensor
	Axis  int
	Size  int // elements along the axis
}

// Error names the index, its position and the number of elements along the axis.
func (f *IndexFault) Error() string {
	return fmt.Sprintf("%v: %v: index %d at position %d, but axis %d has %d elements", ErrIndex, f.Op, f.Index, f.At, f.Axis, f.Size)
}

// Unwrap returns ErrIndex.
func (f *IndexFault) Unwrap() error { return ErrIndex }
