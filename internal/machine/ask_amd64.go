//go:build gc

package machine

import "unsafe"

// Ask asks for memory that will be read and written soon: n bytes from p on, which need
// not be there.
//
//go:noescape
func Ask(p unsafe.Pointer, n int64)
