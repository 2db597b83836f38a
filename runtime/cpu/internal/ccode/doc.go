// Package ccode runs kernels as C that the machine's compiler compiles.
//
// Input: a Kernel, which prints to a C function for each phase. Output: a Phase for each function,
// which evaluates any range of points. Read compiler.go first.
//
// A Compiler has a queue of jobs (compile.go). One process at a time compiles in the background
// (toolchain.go), in a private directory (workdir.go). An object is checked (object_whole.go),
// opened (load.go), and closed when its code is unreachable (loaded.go). Objects of earlier
// processes come from the cache (objects.go). phase.go calls the code.
//
// Builds without cgo have no compiler: Supported is false.
//
// Engine part: no compatibility promise; use package millrace.
package ccode
