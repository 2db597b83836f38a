//go:build !cgo || !unix

package main

const builtWithCgo = false
