//go:build !linux

package nap

import "time"

// Precise does nothing: this system has no such setting.
func Precise() {}

// For sleeps for d.
func For(d time.Duration) { time.Sleep(d) }
