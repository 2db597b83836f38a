//go:build !cgo

package autodiff_test

const builtWithCgo = false
