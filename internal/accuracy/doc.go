// Package accuracy measures the mathematical functions over every float32, on the CPU device as
// programs use it, and compares them with the bounds in docs/numerics.md. It takes about an hour on
// two cores, so a build tag guards it:
//
//	go test -tags accuracy -timeout 0 -v ./internal/accuracy
//
// The flag -stride n takes every n-th input only, -run Float32/erf one function.
//
// Engine part: no compatibility promise; use package millrace.
package accuracy
