// Package gpu is the only place that touches the WebGPU binding: an adapter as a
// gpurun.Device.
//
// The binding aborts the process on several mistakes that it could report:
// submitting a released or mapped buffer, submitting a command buffer twice,
// asking an unmapped buffer for its memory. So every object here carries its
// state and every call checks it first. Error scopes belong to the native
// device and not to the caller, hence one mutex per device around every native
// call.
//
// # What becomes of faults
//
// Errors of making buffers, shaders, pipelines, bind groups and commands, of
// ending a pass and of a write through the queue are caught by the error scope
// that the binding puts around each call; what arrives outside of one reaches a
// handler of ours, in place of the native one, which ends the process. A lost
// device and a lack of memory among them become gpurun.ErrLost and gpurun.ErrMemory, and a
// device once lost is not called any more; others have queues and handlers of
// their own and go on. A request to map memory is answered on every path, with
// a status if it fails.
//
// Three calls have neither scope nor status and end the process, by an abort of
// the native library, where the driver itself reports a fault to them:
//
//   - wgpuQueueSubmit, where the driver answers that the device is lost or that it
//     has no memory for the submission;
//   - wgpuDevicePoll, where waiting for a fence or collecting what is done meets a
//     lost device;
//   - wgpuBufferGetMappedRange, in any state but mapped, which is checked here.
//
// The binding's callback for lost devices cannot be used: it passes C a pointer
// that Go's checks refuse. The abort is no Go panic, so nothing can recover it;
// leaving it from a signal handler would leave the library's locks taken, which
// all devices of the instance share. A program that must outlive its GPU runs it
// in a process of its own.
//
// Engine part: no compatibility promise; use package millrace.
package gpu
