package opengl

import (
	"fmt"
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
	Destroy     func()       // when its name is dropped; nil: it is the program's to destroy

	// ProcAddress finds OpenGL's functions; nil: EGL's does.
	ProcAddress func(name string) unsafe.Pointer
}

// brought are the contexts that the program has given names, and whether a device
// has them.
var brought struct {
	sync.Mutex
	list map[string]*lent
}

type lent struct {
	Context
	taken bool
}

// Use gives a context a name: a device that is opened with it as its adapter,
// "opengl:adapter=NAME", computes in that context. Closing the device lets go of it,
// and the name can be opened again.
func Use(name string, c Context) error {
	brought.Lock()
	defer brought.Unlock()
	switch {
	case name == "" || c.MakeCurrent == nil:
		return fmt.Errorf("opengl: context %q: it needs a name, and MakeCurrent", name)
	case brought.list[name] != nil:
		return fmt.Errorf("opengl: there is a context %q already", name)
	case brought.list == nil:
		brought.list = map[string]*lent{}
	}
	brought.list[name] = &lent{Context: c}
	return nil
}

// Drop takes a name back that no device has open.
func Drop(name string) error {
	brought.Lock()
	defer brought.Unlock()
	c := brought.list[name]
	if c == nil || c.taken {
		return fmt.Errorf("opengl: there is no context %q, or a device has it", name)
	}
	delete(brought.list, name)
	if c.Context.Destroy != nil {
		c.Context.Destroy()
	}
	return nil
}
