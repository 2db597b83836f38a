// Package procs has what tests of concurrent code need: a number of processors for the length of a
// test, and a count of allocations on all processors.
//
// Input: a number of processors, or a function. Output: GOMAXPROCS until the test ends, or a number
// of allocations. Read procs.go first.
package procs
