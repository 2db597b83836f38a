// Package glsl is the dialect of codegen/shader that OpenGL compiles: GLSL 4.30,
// which is the first with compute shaders and storage buffers.
//
// Compilers of GLSL may contract and reassociate floats as those of WGSL may, so
// the two rest on the same forms of package shader where a rounding must be kept: an
// exclusive-or with a run-time zero, which nobody can look through, and NaN told
// by bits. "precise" would ask for that, too, but holds for a whole variable and
// what it is computed from, and costs elementwise kernels their multiply-adds.
//
// Engine part: no compatibility promise; use package millrace.
package glsl
