//go:build cgo

package nn_test

const builtWithCgo = true
