//go:build !amd64 || !gc

package machine

import "unsafe"

// Ask does nothing where it is not known how to ask.
func Ask(unsafe.Pointer, int64) {}
