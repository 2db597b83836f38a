// Package apitest runs tensor programs of package ir through the public API, and compares the
// results of users' calls with the oracle's. Its tests cover every op, random programs under random
// options, many goroutines, the memory limit and the counters.
//
// Input: programs of package ir, and bytes for their inputs. Output: their results by the public
// API, as tensors. Read run.go first.
//
// Engine part: no compatibility promise; use package millrace.
package apitest
