//go:build (linux || darwin || windows) && (amd64 || arm64)

package vk

//go:generate go run ./gen /usr/include/vulkan/vulkan_core.h

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Result is a VkResult. Negative ones are errors.
type Result int32

var results = map[Result]string{
	Success: "VK_SUCCESS", NotReady: "VK_NOT_READY", Timeout: "VK_TIMEOUT", Incomplete: "VK_INCOMPLETE",
	ErrorOutOfHostMemory: "VK_ERROR_OUT_OF_HOST_MEMORY", ErrorOutOfDeviceMemory: "VK_ERROR_OUT_OF_DEVICE_MEMORY",
	ErrorInitializationFailed: "VK_ERROR_INITIALIZATION_FAILED", ErrorDeviceLost: "VK_ERROR_DEVICE_LOST",
	ErrorLayerNotPresent: "VK_ERROR_LAYER_NOT_PRESENT", ErrorExtensionNotPresent: "VK_ERROR_EXTENSION_NOT_PRESENT",
	ErrorFeatureNotPresent: "VK_ERROR_FEATURE_NOT_PRESENT", ErrorIncompatibleDriver: "VK_ERROR_INCOMPATIBLE_DRIVER",
	ErrorTooManyObjects: "VK_ERROR_TOO_MANY_OBJECTS",
}

func (r Result) Error() string {
	if name, ok := results[r]; ok {
		return name
	}
	return fmt.Sprintf("VkResult %d", int32(r))
}

// Err is nil for results that are no errors.
func (r Result) Err() error {
	if r < 0 {
		return r
	}
	return nil
}

// Call calls a function. See the package comment for pointers among its operands.
//
//go:uintptrescapes
func Call(function uintptr, operands ...uintptr) Result {
	r, _, _ := purego.SyscallN(function, operands...)
	return Result(int32(r))
}

// Text is a string as C has it.
func Text(s string) unsafe.Pointer {
	b := append([]byte(s), 0)
	return unsafe.Pointer(&b[0])
}

// String is C's text in an array.
func String(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// StringAt is C's text at an address.
func StringAt(p unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// Callback makes a function that C may call. It is never freed.
func Callback(f any) uintptr { return purego.NewCallback(f) }

// Global has the functions that need no instance.
type Global struct {
	CreateInstance, EnumerateInstanceLayerProperties uintptr
}

// Instance has the functions of an instance.
type Instance struct {
	Handle uintptr `vk:"-"`

	EnumeratePhysicalDevices, GetPhysicalDeviceProperties2, GetPhysicalDeviceFeatures2 uintptr
	GetPhysicalDeviceMemoryProperties, GetPhysicalDeviceQueueFamilyProperties          uintptr
	EnumerateDeviceExtensionProperties, CreateDevice, GetDeviceProcAddr                uintptr

	CreateDebugUtilsMessengerEXT                    uintptr `vk:"optional"`
	GetPhysicalDeviceCooperativeMatrixPropertiesKHR uintptr `vk:"optional"`
}

// Device has the functions of a device.
type Device struct {
	Handle uintptr `vk:"-"`

	DestroyDevice, GetDeviceQueue, QueueSubmit, DeviceWaitIdle                       uintptr
	AllocateMemory, FreeMemory, MapMemory, BindBufferMemory                          uintptr
	CreateBuffer, DestroyBuffer, GetBufferMemoryRequirements                         uintptr
	CreateShaderModule, DestroyShaderModule, CreateComputePipelines, DestroyPipeline uintptr
	CreatePipelineCache, DestroyPipelineCache, GetPipelineCacheData                  uintptr
	CreatePipelineLayout, DestroyPipelineLayout                                      uintptr
	CreateDescriptorSetLayout, DestroyDescriptorSetLayout                            uintptr
	CreateCommandPool, DestroyCommandPool, AllocateCommandBuffers                    uintptr
	BeginCommandBuffer, EndCommandBuffer                                             uintptr
	CmdBindPipeline, CmdDispatch, CmdPipelineBarrier, CmdCopyBuffer, CmdUpdateBuffer uintptr
	CmdPushDescriptorSetKHR, CmdFillBuffer, FreeCommandBuffers                       uintptr
	CreateSemaphore, DestroySemaphore, WaitSemaphores, GetSemaphoreCounterValue      uintptr
	CmdPushConstants, CreateFence, DestroyFence                                      uintptr
	GetFenceStatus, ResetFences, WaitForFences                                       uintptr

	CmdBeginConditionalRenderingEXT uintptr `vk:"optional"`
	CmdEndConditionalRenderingEXT   uintptr `vk:"optional"`
}

// loader is the system's Vulkan loader.
var loader struct {
	once   sync.Once
	lookup uintptr // vkGetInstanceProcAddr
	global Global
	err    error
}

// libraries are the loader's names, by system.
var libraries = map[string][]string{
	"linux":   {"libvulkan.so.1", "libvulkan.so"},
	"darwin":  {"libvulkan.1.dylib", "libMoltenVK.dylib"},
	"windows": {"vulkan-1.dll"},
}

// Loader opens the loader, once.
func Loader() (*Global, error) {
	loader.once.Do(func() { loader.err = load(libraries[runtime.GOOS]) })
	return &loader.global, loader.err
}

func load(names []string) error {
	var failed error
	for _, name := range names {
		lib, err := open(name)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if loader.lookup, err = symbol(lib, "vkGetInstanceProcAddr"); err != nil {
			return err
		}
		return fill(&loader.global, loader.lookup, 0)
	}
	return fmt.Errorf("no Vulkan loader: %w", failed)
}

// fill finds the functions that are the fields of a struct.
func fill(to any, lookup, handle uintptr) error {
	v := reflect.ValueOf(to).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag := f.Tag.Get("vk")
		if tag == "-" {
			continue
		}
		name := append([]byte("vk"+f.Name), 0)
		r, _, _ := purego.SyscallN(lookup, handle, uintptr(unsafe.Pointer(&name[0])))
		if r == 0 && tag != "optional" {
			return fmt.Errorf("the Vulkan driver has no function vk%s", f.Name)
		}
		v.Field(i).SetUint(uint64(r))
	}
	return nil
}

// NewInstance finds the functions of an instance.
func NewInstance(handle uintptr) (*Instance, error) {
	in := &Instance{Handle: handle}
	return in, fill(in, loader.lookup, handle)
}

// NewDevice finds the functions of a device.
func (in *Instance) NewDevice(handle uintptr) (*Device, error) {
	d := &Device{Handle: handle}
	return d, fill(d, in.GetDeviceProcAddr, handle)
}
