// Package glsl is the dialect of codegen/shader that OpenGL compiles: GLSL 4.30, the first version
// with compute shaders and storage buffers.
//
// Compilers of GLSL may contract and reassociate floats, and treat comparisons as those of numbers:
// Mesa makes (x < 0 ? 0 : x) a maximum, which loses NaN. So every variable is "precise", which had
// no measurable cost. WGSL has no such word. If a rounding must be kept, package shader's forms do
// it in both languages: an exclusive-or with a run-time zero, and tests of the bits of NaN.
//
// Input: what package shader asks a [shader.Dialect]. Output: GLSL. Read dialect.go first.
//
// Engine part: no compatibility promise; use package millrace.
package glsl
