//go:build cgo && linux && !android

package opengl

import (
	"fmt"

	"github.com/millrace-go/millrace/runtime/opengl/internal/egl"
	"github.com/millrace-go/millrace/runtime/opengl/internal/gpu"
)

// Share makes a context that shares buffers and textures with the one of EGL that is
// current on the calling thread.
func Share() (Context, error) {
	c, err := egl.Share(gpu.Major, gpu.Minor)
	if err != nil {
		return Context{}, fmt.Errorf("opengl: %w", err)
	}
	return Context{MakeCurrent: c.MakeCurrent, Release: c.Leave, Destroy: c.Destroy}, nil
}

func (c *lent) MakeCurrent() error { return c.Context.MakeCurrent() }

func (c *lent) Current() bool { return gpu.SomeCurrent() }

func (c *lent) Leave() {
	if c.Release != nil {
		c.Release()
	}
}

// Destroy is the end of a device: the context stays the program's.
func (c *lent) Destroy() {
	brought.Lock()
	defer brought.Unlock()
	c.taken = false
}

// openBrought opens the context that the program brought under a name; nil if none has
// it.
func openBrought(name string) (*gpu.Device, error) {
	brought.Lock()
	c := brought.list[name]
	free := c != nil && !c.taken
	if free {
		c.taken = true
	}
	brought.Unlock()
	switch {
	case c == nil:
		return nil, nil
	case !free:
		return nil, fmt.Errorf("context %q: another device has it", name)
	}
	proc := c.ProcAddress
	if proc == nil {
		var err error
		if proc, err = egl.Proc(); err != nil {
			c.Destroy()
			return nil, err
		}
	}
	d, err := gpu.Open(c, proc)
	if err != nil {
		return nil, fmt.Errorf("context %q: %w", name, err)
	}
	return d, nil
}
