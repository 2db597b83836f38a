//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package webgpu

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpuchild"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/webgpu/internal/gpu"
)

// name is the driver's, and begins its errors.
const name = "webgpu"

func init() {
	gpuchild.Serve(name, open)
	runtime.Register(name, driver{})
}

type driver struct{}

// Isolates: the device may have a process of its own.
func (driver) Isolates() {}

// open opens an adapter in this process.
func open(adapter string) (gpurun.Device, error) {
	g, err := gpu.Open(adapter)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// howTo is what to do about a machine without an adapter.
const howTo = "install a Vulkan driver (mesa-vulkan-drivers has one for every CPU), or point VK_DRIVER_FILES at the vendor's json file"

// Open starts the best adapter whose name contains c.Adapter.
func (driver) Open(c runtime.Config) (runtime.Device, error) {
	g, err := gpuchild.OpenIf(c.Isolate, name, c.Adapter, open)
	if err != nil {
		return nil, fmt.Errorf("%w %q: %v; %s", runtime.ErrNoDriver, name, err, howTo)
	}
	return gpurun.New(name, g, wgsl.Dialect, c), nil
}

// Probe names the adapters, best first.
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

// FaultLost is the fault point that makes a device behave as if its adapter
// had vanished.
const FaultLost = name + "-lost"
