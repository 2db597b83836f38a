// Package null is a device that plans like any other and computes nothing: it
// checks kernels and launches, counts them, and reads zeros. Tests of the
// engine run on it with the limits they need.
//
// Input: kernels and launches. Output: zeros, and counts. Read null.go first.
//
// Engine part: no compatibility promise; use package millrace.
package null
