//go:build !cgo

package apitest

const builtWithCgo = false
