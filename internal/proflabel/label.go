package proflabel

import "sync/atomic"

// Marks makes and sets labels.
type Marks struct {
	Make func(kernel, key string) any
	Set  func(mark any) // labels the calling goroutine; nil removes the label
}

var marks atomic.Pointer[Marks]

// Use labels kernels from now on.
func Use(m Marks) { marks.Store(&m) }

// On returns the functions that label kernels, nil if labels are off.
func On() *Marks { return marks.Load() }
