// Package roofline measures the limits of this machine's cores: multiply and add, copy, and read. It is
// the yardstick of benchmarks: the roofline of Williams, Waterman and Patterson (2009).
//
// Input: sizes and numbers of threads. Output: operations per second and times. Read roof.go first.
package roofline
