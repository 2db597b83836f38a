// Package label gives goroutines that run a kernel its name, for Go's CPU profiler: where
// package debug is imported, which brings the profiler with it.
package label

import "sync/atomic"

// Marks makes and sets labels.
type Marks struct {
	Make func(kernel, key string) any
	Set  func(mark any) // of the calling goroutine; nil takes it away
}

var marks atomic.Pointer[Marks]

// Use has kernels labelled from now on.
func Use(m Marks) { marks.Store(&m) }

// On is what labels kernels, nil where nobody wants that.
func On() *Marks { return marks.Load() }
