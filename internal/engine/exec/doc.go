// Package exec binds plans to memory and runs them as launches of the device. If a launch fails,
// it runs the operations one by one.
//
// A Binder makes a Job of one plan, for one run. A Sketch makes a Bound of several plans: a list of
// launches for many runs. A run of the list is a Replay, with other memory each time, or a Fixed,
// with the same.
//
// Input: a known plan, and a segment with the memory of its operands. Output: jobs that fill the
// memory of the segment's results. Read bind.go first, and bound.go for lists.
//
// Engine part: no compatibility promise; use package millrace.
package exec
