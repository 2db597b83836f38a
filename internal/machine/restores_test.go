//go:build cgo || !amd64

package machine

// restores says that calls leave MXCSR, or the processor's equivalent, unchanged.
const restores = true
