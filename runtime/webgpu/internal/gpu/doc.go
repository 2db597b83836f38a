// Package gpu is the only place that touches the WebGPU binding. It offers the
// few calls the device needs: open, buffer, pipeline, submit, write, read,
// wait, close.
//
// The binding aborts the process on several mistakes that it could report:
// submitting a released or mapped buffer, submitting a command buffer twice,
// asking an unmapped buffer for its memory. So every object here carries its
// state and every call checks it first. Error scopes belong to the native
// device and not to the caller, hence one mutex per device around every native
// call.
//
// What is left are faults of the driver itself: an adapter that vanishes while
// the native library submits or polls still ends the process, because it
// offers no way to learn of it first.
//
// Engine part: no compatibility promise; use package millrace.
package gpu
