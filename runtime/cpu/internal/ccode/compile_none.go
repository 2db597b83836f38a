//go:build !cgo || !unix

package ccode

import "github.com/millrace-go/millrace/runtime/cpu/internal/operands"

// Supported reports that this build can run kernels compiled from C. Without cgo, objects cannot
// be loaded.
const Supported = false

// Compiler is never made in this build.
type Compiler struct{}

// New returns nil.
func New(Config) *Compiler { return nil }

// Add is never called in this build.
func (*Compiler) Add(*Job) {}

// Await is never called in this build.
func (*Compiler) Await(*Job) {}

// Forget is never called in this build.
func (*Compiler) Forget(func(Kernel) bool) int64 { return 0 }

// Wait is never called in this build.
func (*Compiler) Wait() {}

// Stop is never called in this build.
func (*Compiler) Stop() {}

// Close is never called in this build.
func (*Compiler) Close() {}

// Phase is never made in this build.
type Phase struct{}

// Eval is never called in this build.
func (*Phase) Eval(*operands.Args, int64, int64) {}

// Scratch is never called in this build.
func (*Phase) Scratch() int64 { return 0 }

// Find returns "": there is no compiler.
func Find() string { return "" }

// Processor returns Describe.
func Processor() string { return Describe() }
