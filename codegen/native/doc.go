// Package native turns kernels into machine code without a compiler, for the processors that it
// knows. The code also runs in static binaries, and is ready within microseconds.
//
// Engine part: no compatibility promise; use package millrace.
package native
