//go:build cgo

package apitest

// builtWithCgo: compiled kernels can be loaded, so a required CPU has them.
const builtWithCgo = true
