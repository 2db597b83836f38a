//go:build cgo

package autodiff_test

// builtWithCgo: compiled kernels can be loaded, so a required CPU has them.
const builtWithCgo = true
