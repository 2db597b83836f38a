// Package proflabel names goroutines after the kernel they run, for Go's CPU profiler, if package debug
// is imported, which imports the profiler.
//
// Input: the kernel that a goroutine runs. Output: labels of Go's profiler. Read label.go first.
package proflabel
