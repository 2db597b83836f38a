// Package nap sleeps for less than the Go runtime's timers can: they wake a goroutine up to a
// millisecond late, which is longer than most messages take.
//
// Input: a duration. Output: none. Read nap_linux.go first.
package nap
