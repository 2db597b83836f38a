//go:build cgo && linux && !android && !noopengl

package opengl

import (
	"fmt"

	"github.com/millrace-go/millrace/runtime/opengl/internal/egl"
	"github.com/millrace-go/millrace/runtime/opengl/internal/gpu"
)

// Share makes a context that shares buffers and textures with the one of EGL that is
// current on the calling thread. It lives as long as the process.
func Share() (Context, error) {
	c, err := egl.Share(gpu.Major, gpu.Minor)
	if err != nil {
		return Context{}, fmt.Errorf("opengl: %w", err)
	}
	return Context{MakeCurrent: c.MakeCurrent, Release: c.Leave}, nil
}

// lent is a context that stays the program's, as a device has it.
type lent struct{ Context }

func (c lent) MakeCurrent() error { return c.Context.MakeCurrent() }

func (c lent) Current() bool { return gpu.SomeCurrent() }

func (c lent) Leave() {
	if c.Release != nil {
		c.Release()
	}
}

func (c lent) Destroy() {}

// openBrought opens the context that the program brought under a name; nil if none has
// it.
func openBrought(name string) (*gpu.Device, error) {
	c, ok := brought.Load(name)
	if !ok {
		return nil, nil
	}
	x, err := lent{c.(Context)}, error(nil)
	proc := x.ProcAddress
	if proc == nil {
		proc, err = egl.Proc()
	}
	var d *gpu.Device
	if err == nil {
		d, err = gpu.Open(x, proc)
	}
	if err != nil {
		return nil, fmt.Errorf("context %q: %w", name, err)
	}
	return d, nil
}
