// Package operands holds the operands of a launch, bound to memory. Everything that computes points
// of a kernel on the CPU uses them.
//
// Input: a launch. Output: its Args. Read args.go first.
//
// Those who walk over a launch's points see the driver as a Host, whose Evaluators compute points,
// and as a Recorder, to which they report what they write (evaluator.go).
//
// An operand's element at a point is found from its offset and strides, and from the stages of its
// view. Move copies the elements of consecutive points to a dense block, or back.
//
// Engine part: no compatibility promise; use package millrace.
package operands
