package ir

import "errors"

// Causes of a bad op. The public package re-exports them.
var (
	// ErrShape: shapes that do not fit together, or no shape at all.
	ErrShape = errors.New("shape mismatch")
	// ErrDType: an operand of a dtype the op does not take.
	ErrDType = errors.New("wrong dtype")
	// ErrUnsupported: valid, but not on this device.
	ErrUnsupported = errors.New("unsupported on this device")
)
