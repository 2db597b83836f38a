// Package scatter joins values to the elements of a tensor that indices name.
//
// Input: a Kernel, which describes a kernel with a scatter, and a Launch of it. Output: the launch's
// output in memory, the same for any number of threads. Read scatter.go first.
//
// An Order (order.go) says how threads share the work. A Job runs the steps; a walk (walk.go) is the
// share of one thread. The operand is copied to the output if they differ (copy.go). The caller's
// Host evaluates the kernel's two phases, which compute indices and values. record.go passes the
// work to a Recorder, for launches that are replayed.
//
// Engine part: no compatibility promise; use package millrace.
package scatter
