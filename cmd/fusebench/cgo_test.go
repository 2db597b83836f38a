//go:build cgo && unix

package main

// builtWithCgo: kernels can be compiled into programs.
const builtWithCgo = true
