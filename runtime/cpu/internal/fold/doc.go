// Package fold folds, scans, scatters and sorts elements in memory.
//
// Input: addresses of elements of one dtype, and their number. Output: the result of the op, with
// the bits that docs/numerics/order.md defines, whichever code computes it. Read table.go first.
//
// A Table has a Folder for each op and compute dtype, and the conversions and Joins of each dtype.
// ByGo returns the tables in Go (loops.go, scan.go, arg.go, scatter.go); ByMachine returns those
// whose loops over many elements are machine code (machine*.go). A Sort sorts rows.
//
// Callers divide rows and points among threads, and place values and accumulators.
//
// Engine part: no compatibility promise; use package millrace.
package fold
