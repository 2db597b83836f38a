// Package rows computes kernels with rows: phases over points, and folds, scans and sorts of the
// points of each row between them.
//
// Input: a Plan of the kernel's phases, and a Launch of it. Output: the launch's outputs in memory,
// the same for any number of threads. Read rows.go first.
//
// A Job divides a launch into tiles (tile.go) that threads run phase by phase (phase.go). If few
// rows are long, threads share the rows block by block (split.go). The caller's Host evaluates the
// phases. Values that are in memory already are folded there (stored.go), machine code folds what
// it computes (code.go, columns.go), and rows that end in equal points are cut short (even.go).
// total.go folds all points of a launch. record.go passes folds to a Recorder, for launches that
// are replayed.
//
// Engine part: no compatibility promise; use package millrace.
package rows
