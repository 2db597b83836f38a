// Package interp runs kernels without a compiler: tier 0 of the CPU driver.
//
// Input: a kernel that Lower prepared. Output: a block program, whose Run computes a range of points
// with bound operands. Read compile.go first; eval.go runs the program.
//
// In a block program, each instruction is one call of a block function that handles some hundred
// elements. Values between instructions are blocks of scratch memory that stay in the first-level
// cache. Block functions are generated from the expansions of package ir (z_block_*.go).
//
// A block function always handles whole groups of 64 elements, so it has no remainder loop. If a
// block ends inside a group, its loads are copied and filled up with zeros. The lanes after the
// end then hold the kernel's values for zero operands, never garbage that could trap in an integer
// division or a table lookup.
//
// A value that is the same at every point (a scalar, a constant, an operand of stride 0, and
// anything computed from these) is a single group, computed once per call. Readers read this group
// again for each of their groups.
//
// Engine part: no compatibility promise; use package millrace.
package interp
