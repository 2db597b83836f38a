//go:build gc

package machine

import "unsafe"

// Ask prefetches n bytes from p on, which will be read and written soon. The memory need not exist.
//
//go:noescape
func Ask(p unsafe.Pointer, n int64)
