//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// ErrNoAdapter says that the machine has no GPU that this package can use.
var ErrNoAdapter = errors.New("no GPU adapter")

// process is the process's instance, which is never destroyed: drivers do not like to be loaded
// again.
var process struct {
	sync.Mutex
	instance *vk.Instance
	report   func(message string) // receives the messages of the validation layers
	checked  bool                 // the instance has the validation layers
}

// Validate makes later calls go through the validation layers, if these are installed, which call
// report with each error and warning, on any thread. It must be called before the first device is
// opened.
func Validate(report func(message string)) {
	process.Lock()
	defer process.Unlock()
	process.report = report
}

// Validated reports whether calls go through the validation layers.
func Validated() bool {
	process.Lock()
	defer process.Unlock()
	return process.checked
}

// instance makes the process's instance, once it can be made.
func instance() (*vk.Instance, error) {
	process.Lock()
	defer process.Unlock()
	if process.instance != nil {
		return process.instance, nil
	}
	g, err := vk.Loader()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoAdapter, err)
	}
	defer vk.Quiet()()
	app := vk.ApplicationInfo{SType: vk.StructureTypeApplicationInfo, ApiVersion: vk.ApiVersion12}
	info := vk.InstanceCreateInfo{SType: vk.StructureTypeInstanceCreateInfo, PApplicationInfo: unsafe.Pointer(&app)}
	checked := process.report != nil && hasLayer(g, validation)
	if checked {
		layer, extension := vk.Text(validation), vk.Text("VK_EXT_debug_utils")
		info.EnabledLayerCount, info.PpEnabledLayerNames = 1, unsafe.Pointer(&layer)
		info.EnabledExtensionCount, info.PpEnabledExtensionNames = 1, unsafe.Pointer(&extension)
	}
	var handle uintptr
	if err := vk.Call(g.CreateInstance, uintptr(unsafe.Pointer(&info)), 0, uintptr(unsafe.Pointer(&handle))).Err(); err != nil {
		return nil, fmt.Errorf("%w: vkCreateInstance: %w", ErrNoAdapter, err)
	}
	in, err := vk.NewInstance(handle)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoAdapter, err)
	}
	if checked {
		if err := listen(in); err != nil {
			return nil, err
		}
	}
	process.instance, process.checked = in, checked
	return in, nil
}

const validation = "VK_LAYER_KHRONOS_validation"

func hasLayer(g *vk.Global, name string) bool {
	var n uint32
	vk.Call(g.EnumerateInstanceLayerProperties, uintptr(unsafe.Pointer(&n)), 0)
	if n == 0 {
		return false
	}
	list := make([]vk.LayerProperties, n)
	vk.Call(g.EnumerateInstanceLayerProperties, uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&list[0])))
	for i := range list[:n] {
		if vk.String(list[i].LayerName[:]) == name {
			return true
		}
	}
	return false
}

// listen passes the layers' messages to process.report.
func listen(in *vk.Instance) error {
	report := process.report
	heard := func(_, _ uint32, data, _ unsafe.Pointer) uintptr {
		report(vk.StringAt((*vk.DebugUtilsMessengerCallbackDataEXT)(data).PMessage))
		return 0 // the call goes on
	}
	info := vk.DebugUtilsMessengerCreateInfoEXT{
		SType:           vk.StructureTypeDebugUtilsMessengerCreateInfoExt,
		MessageSeverity: vk.DebugUtilsMessageSeverityErrorBitExt | vk.DebugUtilsMessageSeverityWarningBitExt,
		MessageType:     vk.DebugUtilsMessageTypeValidationBitExt | vk.DebugUtilsMessageTypePerformanceBitExt,
		PfnUserCallback: vk.Callback(heard),
	}
	var handle uint64
	return vk.Call(in.CreateDebugUtilsMessengerEXT, in.Handle, uintptr(unsafe.Pointer(&info)), 0, uintptr(unsafe.Pointer(&handle))).Err()
}
