//go:build (linux || darwin || windows) && (amd64 || arm64)

package vulkan

import (
	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/runtime/internal/gpudriver"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/gpu"
)

// name is the driver's name, and the prefix of its errors.
const name = "vulkan"

func init() {
	gpudriver.Register(gpudriver.Driver{
		Name: name, Dialect: spirv.Dialect, Open: open, Adapters: gpu.Adapters, Properties: gpu.Properties,
		HowTo: "install the graphics card's driver, or Mesa's for every CPU (Debian: libvulkan1 mesa-vulkan-drivers); VK_DRIVER_FILES names a driver's json file elsewhere",
	})
}

func open(adapter string) (gpurun.Device, error) {
	g, err := gpu.Open(adapter)
	if err != nil {
		return nil, err
	}
	return g, nil
}
