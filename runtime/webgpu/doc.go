// Package webgpu is the GPU device: kernels printed as WGSL, run through
// Vulkan (Metal on macOS). Importing it registers the driver "webgpu".
//
// Tensors may be of any dtype of up to 32 bits and take four bytes per element
// there. Results stay within the tolerances of the op table
// instead of being the CPU's bits, and denormals may be flushed to zero.
//
// A Run waits for the device in two cases only: a kernel looks up or
// scatters elements at indices of which one out of range is an error
// (ir.IndexError, the default), so that it can be told whether there was one; and
// too many submissions have piled up. The first is counted in Stats.Waits. The
// other index modes never wait.
//
// The native library exists for linux/amd64, macOS and windows/amd64 and needs
// cgo. Elsewhere the driver is registered too, and opening it says so.
//
// Engine part: no compatibility promise; use package millrace.
package webgpu
