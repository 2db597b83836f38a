// Package gpu is the only package that uses the WebGPU binding: an adapter as a gpurun.Device.
//
// The binding aborts the process on several mistakes that it could report: submitting a released or
// mapped buffer, submitting a command buffer twice, and requesting the memory of an unmapped
// buffer. Every object here therefore records its state, and every call checks it first. Error
// scopes belong to the native device and not to the caller; one mutex per device therefore guards
// every native call.
//
// # Handling of faults
//
// The binding puts an error scope around calls that make buffers, shaders, pipelines, bind groups
// and commands, end a pass or write through the queue. Errors outside of a scope reach a handler of
// this package, which replaces the native one, because that ends the process. A lost device becomes
// gpurun.ErrLost and a lack of memory gpurun.ErrMemory. A lost device is not called any more; other
// devices have separate queues and handlers and continue. A request to map memory is answered on
// every path, with a status if it fails.
//
// Three calls have neither scope nor status. The native library aborts the process if the driver
// reports a fault to them:
//
//   - wgpuQueueSubmit, if the driver answers that the device is lost or that it has no memory for the submission;
//   - wgpuDevicePoll, if waiting for a fence or collecting finished work finds a lost device;
//   - wgpuBufferGetMappedRange, in any state but mapped, which is checked here.
//
// The binding's callback for lost devices cannot be used: it passes C a pointer that Go's checks
// reject. The abort is no Go panic, so it cannot be recovered. Leaving it from a signal handler
// would leave the library's locks taken, which all devices of the instance share. A program that
// must outlive its GPU runs the GPU in another process.
//
// Input: an adapter, and the calls of a gpurun.Device. Output: calls of the WebGPU binding. Read
// open.go first.
//
// Engine part: no compatibility promise; use package millrace.
package gpu
