// Package vulkan is the GPU device for Vulkan: kernels are compiled to SPIR-V in this process and run
// by the system's driver. Importing it registers the driver "vulkan". It needs no cgo and nothing at
// build time.
//
// At run time it needs a Vulkan loader (libvulkan.so.1, vulkan-1.dll) and a driver of Vulkan 1.2 with
// VK_KHR_push_descriptor and timeline semaphores, which drivers since 2020 have. On Linux the program
// must be linked dynamically, as `go build` does, and run with a C library: glibc, or musl with
// -ldflags "-I /lib/ld-musl-x86_64.so.1". Opening a device says what is missing.
//
// Tensors may have any dtype of up to 32 bits. Elements of 8 and 16 bits take their own size in
// device memory if the adapter has 8- and 16-bit storage; else, and with narrow=off, they take four
// bytes. Results stay within the tolerances of the op table but do not have the CPU's bits, and
// denormals may be flushed to zero.
//
// A Run waits for the device in two cases only. First, if a kernel looks up or scatters elements at
// indices and one out of range is an error (ir.IndexError, the default): the wait finds out whether
// there was one. Second, if too many submissions are pending. The first case is counted in
// Stats.Waits. The other index modes never wait.
//
// Lists that repeat, of bound recordings, training steps and plain loops, are recorded as commands
// once: a run is one submission. Stats.Prepared, Recorded and Replayed count.
//
// A driver with a bug can end its process. With isolate=on ("vulkan:isolate=on", on Unix) the driver
// runs in another process, which ends alone; package webgpu describes that.
//
// The driver exists for linux, windows and darwin on amd64 and arm64. Elsewhere it is registered
// too, and opening it returns an error that says so.
//
// Of the source, read driver.go first.
//
// Engine part: no compatibility promise; use package millrace.
package vulkan
