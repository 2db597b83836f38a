// Package opengl is the GPU device of machines that have OpenGL 4.3: kernels printed
// as GLSL, run by compute shaders of go-gl. Importing it registers the driver "opengl".
//
// It needs no window: a context of its own is made by EGL, on the first graphics card that
// has one, else in software (Mesa's llvmpipe). A program that draws can have it compute in
// a context of its own instead, beside its textures: see [Use], [Share] and [Lend].
//
// Dtypes, memory, tolerances, and when a Run waits for the device are as package
// runtime/webgpu says.
//
// With isolate=on the driver is in a process of its own, as package runtime/webgpu says:
// in a context that EGL makes, since a program's own context cannot be there.
//
// It exists on Linux, with cgo: building needs OpenGL's headers (Debian: libgl-dev
// pkg-config), starting libGL, and opening a device libEGL with a driver, which is looked
// up then. Elsewhere, and by the tag noopengl, opening the registered driver says so.
//
// Engine part: no compatibility promise; use package millrace.
package opengl
