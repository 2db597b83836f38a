//go:build goexperiment.simd

package main

// simd reports that the Go backend of this build uses vector instructions.
const simd = true
