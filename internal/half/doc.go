// Package half converts 16-bit floats to float32, exactly, and back, with one rounding to nearest
// even. Its bits are those of ir.BitsFloat and ir.FloatBits, which are slower.
//
// Input: bits, or a float32. Output: a float32, or bits. Read half.go first.
//
// Engine part: no compatibility promise; use package millrace.
package half
