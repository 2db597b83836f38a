//go:build gc && (amd64 || arm64)

package operror

const hasFramePointers = true

// returnPCs fills pcs with return addresses, the one in its caller and those that the
// chain of frame pointers leads to, and returns how many. It ends where the chain
// does not go up, or leaps further than any frame is large.
//
//go:noescape
func returnPCs(pcs []uintptr) int
