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
// same share group (GLFW: a hidden window that is made with the first as its last
// argument) has the same buffers and textures and a state of its own.
type Context struct {
	MakeCurrent func() error // for the calling thread, such as (*glfw.Window).MakeContextCurrent
	Release     func()       // lets go of it there, such as glfw.DetachCurrentContext; nil: nothing to do

	// ProcAddress finds OpenGL's functions; nil: EGL's does.
	ProcAddress func(name string) unsafe.Pointer
}

// given is a context that the program brought.
type given struct {
	Context
	taken bool
	end   func() // gives the context back; nil: it stays the program's
}

var brought struct {
	sync.Mutex
	list map[string]*given
}

// Use gives a context a name: a device that is opened with it as its adapter,
// "opengl:adapter=NAME", computes in that context. Closing the device lets go of it,
// and the name can be opened again.
func Use(name string, c Context) error {
	if c.MakeCurrent == nil {
		return fmt.Errorf("opengl: context %q has no MakeCurrent", name)
	}
	return give(name, &given{Context: c})
}

func give(name string, g *given) error {
	if name == "" {
		return fmt.Errorf("opengl: a context needs a name")
	}
	brought.Lock()
	defer brought.Unlock()
	if brought.list[name] != nil {
		return fmt.Errorf("opengl: there is a context %q already", name)
	}
	if brought.list == nil {
		brought.list = map[string]*given{}
	}
	brought.list[name] = g
	return nil
}

// Drop takes a name back that no device has open.
func Drop(name string) error {
	brought.Lock()
	defer brought.Unlock()
	g := brought.list[name]
	switch {
	case g == nil:
		return fmt.Errorf("opengl: there is no context %q", name)
	case g.taken:
		return fmt.Errorf("opengl: a device has context %q", name)
	}
	delete(brought.list, name)
	if g.end != nil {
		g.end()
	}
	return nil
}

// take finds a context for a device, which nobody else has from then on; nil if none
// has that name.
func take(name string) (*given, error) {
	brought.Lock()
	defer brought.Unlock()
	g := brought.list[name]
	if g == nil {
		return nil, nil
	}
	if g.taken {
		return nil, fmt.Errorf("context %q: another device has it", name)
	}
	g.taken = true
	return g, nil
}

func (g *given) back() {
	brought.Lock()
	defer brought.Unlock()
	g.taken = false
}
