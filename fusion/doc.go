// Package fusion turns a segment into a plan: which ops run together in which
// kernel, what is written to memory, what stays in registers, what is only a
// view. It also binds plans: from the real shapes of a segment it computes
// where every kernel operand finds its elements.
//
// What enters is a segment.Segment and a device's runtime.Caps; what leaves is
// a Plan, which holds no pointer to a device or buffer and no concrete size.
//
// Engine part: no compatibility promise; use package millrace.
package fusion
