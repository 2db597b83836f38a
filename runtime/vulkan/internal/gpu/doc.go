// Package gpu is a Vulkan adapter as a gpurun.Device.
//
// # Memory
//
// Buffers are parts of slabs; a large one has a slab of its own (memory.go). If the host sees the
// memory, as on processors and integrated GPUs, transfers copy to and from it. Otherwise they go
// through staging buffers (transfer.go).
//
// # Synchronisation
//
// One queue has all dispatches. Its submission n sets its timeline semaphore to n; whoever waits for
// n waits for that value. If the host does not see the memory and the adapter has a second queue,
// larger writes go through that, beside the dispatches (arrive.go). A buffer that submitted work may use is freed when the semaphore has its value. Within
// a submission there is a barrier before a dispatch only if it uses a range of a buffer that was
// written since the last barrier, or writes one that was used (hazard.go). A recording is submitted
// many times, also while it runs, and begins with a barrier after all earlier work (recording.go).
//
// # Words
//
// Run-time words of at most 256 bytes are push constants, recorded with their dispatch. A buffer of
// words keeps a copy of its contents on the host for them, and its memory is written when a shader
// with more words is to read it (words.go).
//
// # Faults
//
// VK_ERROR_DEVICE_LOST becomes gpurun.ErrLost and a lack of memory gpurun.ErrMemory. A lost device
// is not called any more, and Close leaves it to the process. Shaders are checked against the
// device's limits and bindings before a driver sees them. A driver that crashes ends the process;
// a program that must outlive that runs the device in another process.
//
// Input: an adapter, and the calls of a gpurun.Device. Output: calls of package vk. Read device.go
// first.
//
// Engine part: no compatibility promise; use package millrace.
package gpu
