// Package wgsl is the dialect of codegen/shader that WebGPU compiles.
//
// The text is written for naga 0.13, which has no abstract numerics, no 64-bit integers and no
// booleans in memory. Older and newer compilers accept it, too.
//
// Input: what package shader asks a [shader.Dialect]. Output: WGSL. Read dialect.go first.
//
// Engine part: no compatibility promise; use package millrace.
package wgsl
