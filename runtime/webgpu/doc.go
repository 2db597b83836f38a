// Package webgpu is the GPU device: kernels printed as WGSL, run through Vulkan (Metal on macOS).
// Importing it registers the driver "webgpu".
//
// Tensors may have any dtype of up to 32 bits and take four bytes per element there. Results stay
// within the tolerances of the op table but do not have the CPU's bits, and denormals may be
// flushed to zero.
//
// A Run waits for the device in two cases only. First, if a kernel looks up or scatters elements at
// indices and one out of range is an error (ir.IndexError, the default): the wait finds out whether
// there was one. Second, if too many submissions are pending. The first case is counted in
// Stats.Waits. The other index modes never wait.
//
// A driver can end its process. This happens if the device is lost during a submission (the native
// library aborts), and may happen if memory runs out or the driver has a bug. With isolate=on
// ("webgpu:isolate=on", on Unix) the driver runs in another process, which ends alone. The device
// then fails with ErrDeviceLost, says how the process ended, and can be opened again; other devices
// continue. The process is this program started once more, which becomes the device's process when
// this package is initialised. Packages that are initialised before run their initialisation there,
// too. If the process hangs or is stopped, calls wait for it, as they wait here for a driver that
// hangs; so does Close. End the process, and the waiting calls fail with ErrDeviceLost. Calls take
// about 100 µs longer, and transfers need one more copy.
//
// The native library exists for linux/amd64, macOS and windows/amd64 and needs cgo. Elsewhere the
// driver is registered too, and opening it returns an error that says so.
//
// Of the source, read driver.go first.
//
// Engine part: no compatibility promise; use package millrace.
package webgpu
