// Package native turns kernels into machine code without a compiler. The code also runs in static
// binaries, and is ready within microseconds.
//
// Input: a lowered kernel of package codegen and a [Variant], which says what the code may assume.
// Output: a [Func]: bytes, and the [Frame] with which they are called. [NewDot] makes the
// code of contractions, [CompileFold] and its neighbours that of folds in memory, and
// [CompileSequence] that of many small launches.
//
// The package is the emitter. It works on values, which have no registers yet ([Builder]), and asks a
// target for everything else through one interface, [Machine]. The targets are packages below it:
// amd64 and arm64. A new one implements Machine and describes itself as an [ISA].
//
// Read passes.go first: it lists the steps of [Compile]; sequence.go has the list of [CompileSequence].
// Then read machine.go.
//
// Engine part: no compatibility promise; use package millrace.
package native
