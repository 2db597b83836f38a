// Package webgpu is the GPU device: kernels printed as WGSL, run through
// Vulkan (Metal on macOS). Importing it registers the driver "webgpu".
//
// Tensors may be float32, int32, uint8 and bool; the last two take four bytes
// per element there. Results stay within the tolerances of the op table
// instead of being the CPU's bits, and denormals may be flushed to zero.
//
// The native library exists for linux/amd64, macOS and windows/amd64 and needs
// cgo. Elsewhere the driver is registered too, and opening it says so.
//
// Engine part: no compatibility promise; use package millrace.
package webgpu
