// Package gpurun runs kernels on a GPU. It chooses the shader of a launch, cuts it into dispatches,
// manages pools of memory, reports index faults, keeps and releases shaders, and tunes. It runs
// them on a [Device], a small interface that each GPU API implements; a dialect of package
// codegen/shader is the language. [Runner] combines both as a device of the engine.
//
// Input: kernels and launches, as every driver gets them. Output: shaders and dispatches of a
// [Device]. Read run.go first.
//
// Engine part: no compatibility promise; use package millrace.
package gpurun
