//go:build cgo && linux && !android && !noopengl

package opengl

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen/glsl"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/opengl/internal/gpu"
)

// name is the driver's, and begins its errors.
const name = "opengl"

func init() { runtime.Register(name, driver{}) }

type driver struct{}

// howTo is what to do about a machine without a context.
const howTo = "install a driver with EGL (libegl1 and libgl1-mesa-dri have one for every CPU), or, for NVIDIA's, have its libEGL_nvidia with a file in /usr/share/glvnd/egl_vendor.d"

// Open starts the context that the program brought under the name c.Adapter, else the
// best whose renderer's name contains it.
func (driver) Open(c runtime.Config) (runtime.Device, error) {
	g, err := openBrought(c.Adapter)
	if err != nil {
		return nil, fmt.Errorf("%w %q: %w", runtime.ErrNoDriver, name, err)
	}
	if g == nil {
		g, err = gpu.Best(c.Adapter)
	}
	if err != nil {
		return nil, fmt.Errorf("%w %q: %v; %s", runtime.ErrNoDriver, name, err, howTo)
	}
	return gpurun.New(name, g, glsl.Dialect, c), nil
}

// Probe names the renderers, best first.
func (driver) Probe() (string, error) {
	list, err := gpu.Adapters()
	if err != nil {
		return "", fmt.Errorf("%w %q: %v; %s", runtime.ErrNoDriver, name, err, howTo)
	}
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = fmt.Sprintf("%s (%s)", a.Name, a.Kind)
	}
	return strings.Join(names, ", "), nil
}
