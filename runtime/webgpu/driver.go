//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package webgpu

import (
	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/runtime/internal/gpudriver"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/webgpu/internal/gpu"
)

// name is the driver's name, and the prefix of its errors.
const name = "webgpu"

func init() {
	gpudriver.Register(gpudriver.Driver{
		Name: name, Dialect: wgsl.Dialect, Open: open, Adapters: gpu.Adapters,
		HowTo: "install a Vulkan driver (mesa-vulkan-drivers has one for every CPU), or point VK_DRIVER_FILES at the vendor's json file",
	})
}

func open(adapter string) (gpurun.Device, error) {
	g, err := gpu.Open(adapter)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// FaultLost is the fault point that makes a device behave as if its adapter had vanished.
const FaultLost = name + "-lost"
