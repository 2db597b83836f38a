package opengl

import (
	"sync"
	"unsafe"
)

// Context is a context of OpenGL 4.3 that the program made, for one device at a
// time. The device has a thread of its own and calls everything there.
//
// A context is current on one thread, so that the program lets go of it first. One
// in which the program goes on to draw is better left to it: a second context of the
// same share group, of [Share] or (GLFW) of a hidden window that is made with the first
// as its last argument, has the same buffers and textures and a state of its own.
type Context struct {
	MakeCurrent func() error // for the calling thread, such as (*glfw.Window).MakeContextCurrent
	Release     func()       // lets go of it there, such as glfw.DetachCurrentContext; nil: nothing to do

	// ProcAddress finds OpenGL's functions; nil: EGL's does.
	ProcAddress func(name string) unsafe.Pointer
}

// brought are the contexts that the program has given names.
var brought sync.Map

// Use gives a context a name: a device that is opened with it as its adapter,
// "opengl:adapter=NAME", computes in that context, and lets go of it when it is
// closed. A context without MakeCurrent takes the name back.
func Use(name string, c Context) {
	if c.MakeCurrent == nil {
		brought.Delete(name)
		return
	}
	brought.Store(name, c)
}
