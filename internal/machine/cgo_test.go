//go:build cgo

package machine

// restores says that calls leave MXCSR what it was, whatever that is.
const restores = true
