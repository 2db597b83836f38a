// Package kernels makes kernels and launches for tests of printers and devices: kernels with
// every op, and launches with every kind of access to operands.
//
// Input: a dtype, or random numbers. Output: kernels, and launches with their memory. Read every.go
// first.
//
// Engine part: no compatibility promise; use package millrace.
package kernels
