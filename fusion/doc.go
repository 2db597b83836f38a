// Package fusion turns a segment into a plan. A plan says which operations run together in one
// kernel, which results are written to memory, which stay in registers, and which are only views.
// The package also binds plans: from the real shapes of a segment it computes where every kernel
// operand finds its elements.
//
// Input: a segment.Segment and a device's runtime.Caps. Output: a Plan, which holds no pointer to a
// device or buffer and no concrete shape. Read explore.go first.
//
// Engine part: no compatibility promise; use package millrace.
package fusion
