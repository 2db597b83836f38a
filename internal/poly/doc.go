// Package poly finds polynomials with whole coefficients through given values: how the sizes inside
// a computation depend on those of its arguments.
//
// Input: points, and the value at each. Output: the [Poly] through them, if there is one. Read
// poly.go first.
//
// Engine part: no compatibility promise; use package millrace.
package poly
