// Package contract computes contractions: sums of products of elements of two tensors.
//
// Input: a Contraction, whose sides are in memory or are written by functions. Output: each result
// once, in memory or passed to a function, with the bits that docs/numerics/order.md defines. Read
// contract.go first, then engine.go.
//
// An Engine plans how a contraction is cut into tiles (plan.go), and shares the tiles among threads
// (job.go). A thread packs both sides into panels (pack.go, walk.go), skips work that cannot change
// a used result (facts.go), and calls functions that compute a tile of panels (code.go). Few rows
// of x (skinny.go), single results (single.go) and narrow integers (narrow.go) have ways of their
// own. The functions are machine code, or C (tiles.c) if a probe finds its arithmetic right
// (probe.go). Without either, Go's loops compute (loops.go).
//
// Engine part: no compatibility promise; use package millrace.
package contract
