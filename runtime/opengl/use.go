package opengl

import (
	"sync"
	"unsafe"
)

// Context is a context of OpenGL 4.3 that the program made, for one device at a time. The device
// calls everything on its own thread.
//
// A context is current on one thread only, so the program must release it first. If the program
// continues to draw, it should keep its context and pass a second one of the same share group: from
// [Share], or (GLFW) from a hidden window that is made with the first as its last argument. The
// second context has the same buffers and textures, and a separate state.
type Context struct {
	MakeCurrent func() error // makes it current on the calling thread, such as (*glfw.Window).MakeContextCurrent
	Release     func()       // releases it there, such as glfw.DetachCurrentContext; nil: nothing to do

	// ProcAddress finds OpenGL's functions; nil: EGL's lookup is used.
	ProcAddress func(name string) unsafe.Pointer
}

// brought are the program's named contexts.
var brought sync.Map

// Use names a context: a device opened with that name as its adapter, "opengl:adapter=NAME",
// computes in that context, and releases it when it is closed. A context without MakeCurrent
// removes the name.
func Use(name string, c Context) {
	if c.MakeCurrent == nil {
		brought.Delete(name)
		return
	}
	brought.Store(name, c)
}
