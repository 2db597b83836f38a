//go:build !amd64 || !gc

package machine

import "unsafe"

// Ask does nothing on processors without a known prefetch.
func Ask(unsafe.Pointer, int64) {}
