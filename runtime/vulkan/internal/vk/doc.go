// Package vk calls Vulkan without cgo: it finds the system's Vulkan loader at run time and calls its
// functions by address.
//
// Handles are uint64 and uintptr, structures are Go structs of the same layout (z_structs.go, which
// gen writes from vulkan_core.h), and functions are uintptr fields that are filled by their names.
//
// A pointer becomes a uintptr only in the operand list of [Call]. The compiler then keeps the memory
// in place and alive until the call returns, and with it what the memory points to by an
// unsafe.Pointer. Everywhere else the collector would not see the pointer. A test checks the source.
//
// On Linux the program must be linked dynamically, which `go build` does; a loader in an image
// without a C library cannot be used.
//
// Input: names of functions. Output: calls. Read vk.go first.
//
// Engine part: no compatibility promise; use package millrace.
package vk
