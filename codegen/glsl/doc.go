// Package glsl is the dialect of codegen/shader that OpenGL compiles: GLSL 4.30,
// which is the first with compute shaders and storage buffers.
//
// Compilers of GLSL may contract and reassociate floats, and take comparisons for
// those of numbers: Mesa makes (x < 0 ? 0 : x) a maximum, which loses NaN. So every
// variable is "precise", which costs nothing that could be measured. Where a rounding
// must be kept the forms of package shader hold besides, as for WGSL, which has no
// such word: an exclusive-or with a run-time zero, and NaN told by bits.
//
// Engine part: no compatibility promise; use package millrace.
package glsl
