// Package gpu is the only package that uses go-gl and EGL: an OpenGL context as a gpurun.Device. A
// separate thread makes every call; other threads put functions into its queue. They do not wait
// for calls without results, such as dispatches and releases.
//
// The caller's arguments are checked before anything is queued. An error of OpenGL is therefore a
// fault of the device. A lack of memory for a buffer is an error of that call. Any other error of a
// dispatch makes the device lost, since its results are unknown. So does a reset of the graphics
// card, and a context that is no longer the thread's.
//
// If the driver supports it, the context is robust: an access outside of a buffer reads some value
// or writes nothing. A crash of the driver cannot be recovered from.
//
// Input: a context, and the calls of a gpurun.Device. Output: OpenGL's calls. Read open.go first.
//
// Engine part: no compatibility promise; use package millrace.
package gpu
