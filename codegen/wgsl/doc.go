// Package wgsl is the dialect of codegen/shader that WebGPU compiles.
//
// The text is for naga 0.13, which has no abstract numerics, no 64-bit
// integers and no booleans in memory. Compilers before and after it take it, too.
//
// Engine part: no compatibility promise; use package millrace.
package wgsl
