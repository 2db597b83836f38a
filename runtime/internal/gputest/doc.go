// Package gputest holds the tests of devices of package gpurun. With every API and language they
// pass the same suites, run the same random programs, and stay within the same tolerances.
//
// Input: a [Target]: a driver, its dialect and its shaders. Output: failed tests. Read suites.go
// first.
//
// Engine part: no compatibility promise; use package millrace.
package gputest
