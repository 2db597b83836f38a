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
// A driver can end the process it is in: one whose device is lost during a submission
// does (the native library aborts), as may one that runs out of memory, or has a fault.
// With isolate=on ("webgpu:isolate=on", on Unix) it is in a process of its own, which
// ends alone: the device then fails with ErrDeviceLost, says how the process ended, and
// can be opened again, and other devices go on. The process is this program started
// once more, which turns into the device's when this package is initialised: what
// packages that are initialised before do then is done there, too. One that hangs, or is
// stopped, is waited for as a driver that hangs here is, by Close, too: end it, and what
// waits fails with ErrDeviceLost. Calls take some 100 µs
// longer, and transfers one copy more.
//
// The native library exists for linux/amd64, macOS and windows/amd64 and needs
// cgo. Elsewhere the driver is registered too, and opening it says so.
//
// Engine part: no compatibility promise; use package millrace.
package webgpu
