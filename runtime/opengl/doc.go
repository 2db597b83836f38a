// Package opengl is the GPU device of machines with OpenGL 4.3: kernels printed as GLSL, run by
// compute shaders of go-gl. Importing it registers the driver "opengl".
//
// It needs no window: EGL makes a context, on the first graphics card that supports one, else in
// software (Mesa's llvmpipe). A program that draws can run computations in a context of its own
// instead, next to its textures: see [Use], [Share] and [Lend].
//
// Dtypes, memory, tolerances and waiting Runs are as in package runtime/webgpu.
//
// With isolate=on the driver runs in another process, as described in package runtime/webgpu. There
// it always uses a context made by EGL, since a program's own context cannot be moved to another
// process.
//
// It exists on Linux, with cgo: building needs OpenGL's headers (Debian: libgl-dev pkg-config),
// starting needs libGL, and opening a device needs libEGL with a driver, which is loaded only then.
// Elsewhere, and with the tag noopengl, opening the registered driver returns an error that says
// so.
//
// Of the source, read driver.go first.
//
// Engine part: no compatibility promise; use package millrace.
package opengl
