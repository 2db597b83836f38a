//go:build cgo && linux && !android && !noopengl

package opengl

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen/glsl"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpudriver"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/opengl/internal/egl"
	"github.com/millrace-go/millrace/runtime/opengl/internal/gpu"
)

// name is the driver's name, and the prefix of its errors.
const name = "opengl"

func init() {
	gpudriver.Register(gpudriver.Driver{
		Name: name, Dialect: glsl.Dialect, Open: open, Adapters: gpu.Adapters, Brought: openBrought,
		HowTo: "install a driver with EGL (libegl1 and libgl1-mesa-dri have one for every CPU), " +
			"or, for NVIDIA's driver, install its libEGL_nvidia with a file in /usr/share/glvnd/egl_vendor.d",
	})
}

func open(adapter string) (gpurun.Device, error) {
	g, err := gpu.Best(adapter)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Share makes a context that shares buffers and textures with the EGL context that is current on
// the calling thread. It lives as long as the process.
func Share() (Context, error) {
	c, err := egl.Share(gpu.Major, gpu.Minor)
	if err != nil {
		return Context{}, fmt.Errorf("opengl: %w", err)
	}
	return Context{MakeCurrent: c.MakeCurrent, Release: c.Leave}, nil
}

// Lend computes a tensor (a *millrace.Tensor) and calls use with the name of its buffer. The
// elements are in row-major order, each in four bytes, from byte offset on. Contexts of the
// device's share group may read them until use returns.
func Lend(tensor any, use func(buffer uint32, offset int) error) error {
	return hostapi.Lend(tensor, func(dev, buf any, off int64) error {
		d, ok := dev.(*gpurun.Runner)
		if !ok || d.Caps().Name != name {
			return fmt.Errorf("opengl: the tensor is not on an OpenGL device")
		}
		b, err := d.Lend(buf.(runtime.Buffer))
		if err != nil {
			return err
		}
		here, ok := b.(*gpu.Buffer)
		if !ok {
			return fmt.Errorf("opengl: the tensor's buffer belongs to another process, because its device was opened with isolate=on")
		}
		return use(here.Name(), int(off*shader.ElemSize))
	})
}

// lent is a context that belongs to the program, in the form that a device needs.
type lent struct{ Context }

func (c lent) MakeCurrent() error { return c.Context.MakeCurrent() }

func (c lent) Current() bool { return gpu.SomeCurrent() }

func (c lent) Leave() {
	if c.Release != nil {
		c.Release()
	}
}

func (c lent) Destroy() {}

// openBrought opens the program's context of a given name; nil if there is none.
func openBrought(cfg runtime.Config) (gpurun.Device, error) {
	name := cfg.Adapter
	c, ok := brought.Load(name)
	if !ok {
		return nil, nil
	}
	if cfg.Isolate {
		return nil, fmt.Errorf("option isolate=on is impossible with context %q, which belongs to this process", name)
	}
	x := lent{c.(Context)}
	if x.ProcAddress == nil {
		var err error
		if x.ProcAddress, err = egl.Proc(); err != nil {
			return nil, err
		}
	}
	d, err := gpu.Open(x, x.ProcAddress)
	if err != nil {
		return nil, fmt.Errorf("context %q: %w", name, err)
	}
	return d, nil
}
