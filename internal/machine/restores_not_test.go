//go:build !cgo && amd64

package machine

// restores: without cgo no thread has another MXCSR than what Go set, and a call sets that.
const restores = false
