// Package gpu is the only place that touches go-gl and EGL: a context of OpenGL as a
// gpurun.Device. A thread of its own makes every call; others hand it functions, in a
// queue. What needs no answer, such as dispatches and releases, is left there.
//
// The caller's arguments are checked before anything is queued, so what OpenGL still
// reports is a fault of the device: no memory where a buffer is made is an error of
// that call; anything else that a dispatch reports makes the device lost, since
// what it should have written is unknown, and so do a reset of the graphics card
// and a context that is not the thread's any more.
//
// Where the driver has it, the context is robust: an access outside of a buffer reads
// some value or writes nothing. What makes a driver crash cannot be recovered from.
//
// Engine part: no compatibility promise; use package millrace.
package gpu
