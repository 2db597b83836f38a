// Package cpu runs kernels on the host's processors.
//
// Input: kernels, then lists of launches of them. Output: their results in memory, with the same
// bits whichever code computes them, on any number of threads. Read run.go first.
//
// A kernel can run at once in tier 0, a block interpreter. Later its code (tier 1) replaces the
// interpreter: machine code made by this process (targets.go), or, if the machine has a C compiler,
// an object compiled in the background. Launches are divided among a pool of threads.
//
// The parts are packages below internal: docs/architecture/cpu.md lists them.
//
// Engine part: no compatibility promise; use package millrace.
package cpu
