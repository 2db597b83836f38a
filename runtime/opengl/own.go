//go:build cgo && linux && !android

package opengl

import (
	"fmt"

	"github.com/millrace-go/millrace/runtime/opengl/internal/egl"
	"github.com/millrace-go/millrace/runtime/opengl/internal/gpu"
)

// Share is Use for a context that is made here: one of EGL that shares buffers and
// textures with the one that is current on the calling thread. [Drop] destroys it.
func Share(name string) error {
	c, err := egl.Share(gpu.Major, gpu.Minor)
	if err != nil {
		return fmt.Errorf("opengl: %w", err)
	}
	return give(name, &given{Context: Context{MakeCurrent: c.MakeCurrent, Release: c.Leave}, end: c.Destroy})
}

// lent is a context that the program brought, as a device has it.
type lent struct{ *given }

func (c lent) MakeCurrent() error { return c.Context.MakeCurrent() }

func (c lent) Current() bool { return gpu.SomeCurrent() }

func (c lent) Leave() {
	if c.Release != nil {
		c.Release()
	}
}

func (c lent) Destroy() { c.back() }

// openBrought opens the context of a name; nil if none has it.
func openBrought(name string) (*gpu.Device, error) {
	g, err := take(name)
	if g == nil {
		return nil, err
	}
	proc := g.ProcAddress
	if proc == nil {
		if proc, err = egl.Proc(); err != nil {
			g.back()
			return nil, err
		}
	}
	d, err := gpu.Open(gpu.Brought{Ctx: lent{g}, Proc: proc})
	if err != nil {
		return nil, fmt.Errorf("context %q: %w", name, err)
	}
	return d, nil
}
