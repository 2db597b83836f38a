//go:build cgo || !amd64

package machine

// restores says that calls leave MXCSR, or what the processor has for it, as it was.
const restores = true
