// Package spirv compiles shaders of codegen/shader to SPIR-V, the binary form that Vulkan takes. It
// needs no compiler of the system, and no cgo.
//
// The dialect is the notation of package shader with a type for every name. A text is parsed and
// translated in one pass: expressions become instructions at once, there is no tree. Types and
// constants are declared when they are first used. Variables stay variables, since drivers promote
// them to registers.
//
// Bindings may have elements u16 and u8. These types exist in memory only: a load becomes OpLoad and
// OpUConvert to u32, a store OpUConvert and OpStore. So a module with them needs the capabilities of
// 16- and 8-bit storage, and none of 16- and 8-bit arithmetic.
//
// SPIR-V can forbid what other languages leave to a driver. Every add, subtract, multiply and divide
// of floats is marked NoContraction, and a module asks for the float controls in [Floats].
//
// A text that begins with the word matrices uses cooperative matrices (VK_KHR_cooperative_matrix):
// see matrix.go. Its memory model is Vulkan's; that of all other texts is the simple one.
//
// Input: a shader in [Dialect]. Output: a [Module]. Read compile.go first.
//
// Engine part: no compatibility promise; use package millrace.
package spirv
