// Package accuracy measures the mathematical functions over every float32, on the CPU device as
// programs use it, and compares them with the bounds in docs/numerics.md. It takes about an hour on
// two cores, so a build tag guards it:
//
//	go test -tags accuracy -timeout 0 -v ./internal/testing/accuracy
//
// The flag -stride n takes every n-th input only, -run Float32/erf one function.
//
// Input: functions, their references and bounds. Output: the largest error of each; a failure if it
// exceeds the bound. Read accuracy_test.go first.
//
// Engine part: no compatibility promise; use package millrace.
package accuracy
