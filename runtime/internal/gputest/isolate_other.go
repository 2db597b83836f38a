//go:build !unix

package gputest

import "testing"

// apart is empty: no device has another process here.
var apart []struct{ name string }

// Isolated needs a Unix system.
func Isolated(t *testing.T, _ Target) { t.Skip("isolate=on is for Unix systems") }

// ServeFaults has nothing to serve.
func ServeFaults(Target) {}
