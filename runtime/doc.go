// Package runtime is the contract between the engine and its devices: buffers, programs, launches,
// and the registry of drivers. It does not depend on printers or plans. Drivers (runtime/cpu,
// runtime/webgpu, runtime/opengl, runtime/vulkan, runtime/null) implement Device and register themselves, as
// database/sql drivers do.
//
// A file that also needs the standard library's runtime imports that one as goruntime.
//
// Input: kernels, buffers and launches. Output: programs, and results in buffers. Read device.go
// first.
//
// Engine part: no compatibility promise; use package millrace.
package runtime
