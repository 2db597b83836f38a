//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package webgpu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/webgpu/internal/gpu"
)

func init() { runtime.Register("webgpu", driver{}) }

type driver struct{}

// howTo is what to do about a machine without an adapter.
const howTo = "install a Vulkan driver (mesa-vulkan-drivers has one for every CPU), or point VK_DRIVER_FILES at the vendor's json file"

// Open starts the best adapter whose name contains c.Adapter.
func (driver) Open(c runtime.Config) (runtime.Device, error) {
	g, err := gpu.Open(c.Adapter)
	if err != nil {
		return nil, fmt.Errorf("%w %q: %v; %s", runtime.ErrNoDriver, "webgpu", err, howTo)
	}
	return newDevice(g, c), nil
}

// Probe names the adapters, best first.
func (driver) Probe() (string, error) {
	list, err := gpu.Adapters()
	if err != nil {
		return "", fmt.Errorf("%w %q: %v; %s", runtime.ErrNoDriver, "webgpu", err, howTo)
	}
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = fmt.Sprintf("%s (%s)", a.Name, a.Kind)
	}
	return strings.Join(names, ", "), nil
}

// FaultLost is the fault point that makes a device behave as if its adapter
// had vanished.
const FaultLost = "webgpu-lost"

// deviceError turns faults of package gpu into those of package runtime.
func deviceError(err error) error {
	for _, m := range [...]struct{ from, to error }{
		{gpu.ErrLost, runtime.ErrDeviceLost},
		{gpu.ErrMemory, runtime.ErrOutOfMemory},
		{gpu.ErrClosed, runtime.ErrClosed},
	} {
		if errors.Is(err, m.from) {
			return fmt.Errorf("webgpu: %w: %w", m.to, err)
		}
	}
	return err
}

// enter is the first step of every call that reaches the adapter.
func (d *device) enter() error {
	if err := fault.Hit(FaultLost); err != nil {
		d.gpu.Lose(err)
	}
	return deviceError(d.gpu.Usable())
}
