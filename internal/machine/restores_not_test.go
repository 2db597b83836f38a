//go:build !cgo && amd64

package machine

// restores is false: without cgo every thread has Go's MXCSR, and a call sets that value.
const restores = false
