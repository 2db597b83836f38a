//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// adapter is a physical device.
type adapter struct {
	handle   uintptr
	info     gpurun.Info
	floats   spirv.Floats
	memory   vk.PhysicalDeviceMemoryProperties
	features vk.PhysicalDeviceFeatures
	family   uint32 // the queue family that is used
	second   *place // of a queue for uploads; nil: none
	push     int    // most bytes of push constants
	cache    []byte // the header of the driver's pipeline caches
}

const pushDescriptor = "VK_KHR_push_descriptor"

// maxBindings bounds the bindings of a pipeline.
const maxBindings = 32

// adapters lists the usable adapters, best first.
func adapters() (*vk.Instance, []*adapter, error) {
	in, err := instance()
	if err != nil {
		return nil, nil, err
	}
	defer vk.Quiet()()
	var n uint32
	if err := vk.Call(in.EnumeratePhysicalDevices, in.Handle, uintptr(unsafe.Pointer(&n)), 0).Err(); err != nil || n == 0 {
		return nil, nil, fmt.Errorf("%w: no Vulkan driver was found", ErrNoAdapter)
	}
	handles := make([]uintptr, n)
	if err := vk.Call(in.EnumeratePhysicalDevices, in.Handle, uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&handles[0]))).Err(); err != nil {
		return nil, nil, fmt.Errorf("%w: vkEnumeratePhysicalDevices: %w", ErrNoAdapter, err)
	}
	var list []*adapter
	var missing []string
	for _, h := range handles[:n] {
		a := &adapter{handle: h}
		if why := a.describe(in); why != "" {
			missing = append(missing, a.info.Name+" "+why)
			continue
		}
		list = append(list, a)
	}
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("%w: %s", ErrNoAdapter, strings.Join(missing, "; "))
	}
	order := []string{"DiscreteGPU", "IntegratedGPU", "Unknown", "CPU"}
	slices.SortStableFunc(list, func(a, b *adapter) int {
		return cmp.Compare(slices.Index(order, a.info.Kind), slices.Index(order, b.info.Kind))
	})
	return in, list, nil
}

// describe fills the adapter. It returns what the adapter lacks, if it cannot be used.
func (a *adapter) describe(in *vk.Instance) (missing string) {
	push := vk.PhysicalDevicePushDescriptorPropertiesKHR{SType: vk.StructureTypePhysicalDevicePushDescriptorPropertiesKhr}
	p12 := vk.PhysicalDeviceVulkan12Properties{SType: vk.StructureTypePhysicalDeviceVulkan12Properties}
	p11 := vk.PhysicalDeviceVulkan11Properties{SType: vk.StructureTypePhysicalDeviceVulkan11Properties}
	p := vk.PhysicalDeviceProperties2{SType: vk.StructureTypePhysicalDeviceProperties2}
	vk.Call(in.GetPhysicalDeviceProperties2, a.handle, uintptr(unsafe.Pointer(&p)))
	a.info.Name = vk.String(p.Properties.DeviceName[:])
	if v := p.Properties.ApiVersion; v < vk.ApiVersion12 {
		return fmt.Sprintf("has Vulkan %d.%d, and 1.2 is needed", v>>22, v>>12&0x3ff)
	}
	extensions := a.extensions(in)
	if !slices.Contains(extensions, pushDescriptor) {
		return "has no " + pushDescriptor
	}
	p.PNext, p11.PNext, p12.PNext = unsafe.Pointer(&p11), unsafe.Pointer(&p12), unsafe.Pointer(&push)
	vk.Call(in.GetPhysicalDeviceProperties2, a.handle, uintptr(unsafe.Pointer(&p)))
	f11 := vk.PhysicalDeviceVulkan11Features{SType: vk.StructureTypePhysicalDeviceVulkan11Features}
	f12 := vk.PhysicalDeviceVulkan12Features{SType: vk.StructureTypePhysicalDeviceVulkan12Features, PNext: unsafe.Pointer(&f11)}
	skips := vk.PhysicalDeviceConditionalRenderingFeaturesEXT{SType: vk.StructureTypePhysicalDeviceConditionalRenderingFeaturesExt}
	if slices.Contains(extensions, conditional) {
		f11.PNext = unsafe.Pointer(&skips)
	}
	f := vk.PhysicalDeviceFeatures2{SType: vk.StructureTypePhysicalDeviceFeatures2, PNext: unsafe.Pointer(&f12)}
	vk.Call(in.GetPhysicalDeviceFeatures2, a.handle, uintptr(unsafe.Pointer(&f)))
	if f12.TimelineSemaphore == 0 {
		return "has no timeline semaphores"
	}
	var n uint32
	vk.Call(in.GetPhysicalDeviceQueueFamilyProperties, a.handle, uintptr(unsafe.Pointer(&n)), 0)
	families := make([]vk.QueueFamilyProperties, n+1)
	vk.Call(in.GetPhysicalDeviceQueueFamilyProperties, a.handle, uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&families[0])))
	family := slices.IndexFunc(families[:n], func(f vk.QueueFamilyProperties) bool { return f.QueueFlags&vk.QueueComputeBit != 0 })
	if family < 0 {
		return "has no compute queue"
	}
	a.second = secondQueue(families[:n], family)
	vk.Call(in.GetPhysicalDeviceMemoryProperties, a.handle, uintptr(unsafe.Pointer(&a.memory)))
	a.features, a.family, a.push = f.Features, uint32(family), int(min(p.Properties.Limits.MaxPushConstantsSize, maxPush))
	a.floats = spirv.Floats{
		KeepNaN:       p12.ShaderSignedZeroInfNanPreserveFloat32 != 0,
		KeepDenormals: p12.ShaderDenormPreserveFloat32 != 0,
		Nearest:       p12.ShaderRoundingModeRTEFloat32 != 0,
	}
	a.cache = cacheHeader(&p.Properties)
	a.info = infoOf(&p.Properties, &p11, &p12, int(push.MaxPushDescriptors))
	a.info.Store16, a.info.Store8 = f11.StorageBuffer16BitAccess != 0, f12.StorageBuffer8BitAccess != 0
	a.info.Skips = skips.ConditionalRendering != 0
	a.info.Matrices = a.units(in, extensions, &f12)
	return ""
}

// place is where a queue is: its family, and its number there.
type place struct{ family, index uint32 }

// secondQueue finds a queue for copies beside the first queue of a family: one that can do nothing
// else, as it is the way to the engine for copies, or another one of the family.
func secondQueue(families []vk.QueueFamilyProperties, first int) *place {
	const does = vk.QueueTransferBit | vk.QueueComputeBit | vk.QueueGraphicsBit
	for i, f := range families {
		if f.QueueFlags&does == vk.QueueTransferBit && f.QueueCount > 0 {
			return &place{uint32(i), 0}
		}
	}
	if families[first].QueueCount > 1 {
		return &place{uint32(first), 1}
	}
	return nil
}

func (a *adapter) extensions(in *vk.Instance) (names []string) {
	var n uint32
	vk.Call(in.EnumerateDeviceExtensionProperties, a.handle, 0, uintptr(unsafe.Pointer(&n)), 0)
	list := make([]vk.ExtensionProperties, n+1)
	vk.Call(in.EnumerateDeviceExtensionProperties, a.handle, 0, uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&list[0])))
	for i := range list[:n] {
		names = append(names, vk.String(list[i].ExtensionName[:]))
	}
	return names
}

// cacheHeader is the beginning of a pipeline cache that the driver makes.
func cacheHeader(p *vk.PhysicalDeviceProperties) []byte {
	const size, versionOne = 32, 1
	var b bytes.Buffer
	for _, w := range [...]uint32{size, versionOne, p.VendorID, p.DeviceID} {
		_ = binary.Write(&b, binary.LittleEndian, w) // to memory
	}
	b.Write(p.PipelineCacheUUID[:])
	return b.Bytes()
}

func infoOf(p *vk.PhysicalDeviceProperties, p11 *vk.PhysicalDeviceVulkan11Properties, p12 *vk.PhysicalDeviceVulkan12Properties, pushed int) gpurun.Info {
	l := &p.Limits
	kind := map[uint32]string{
		vk.PhysicalDeviceTypeDiscreteGpu: "DiscreteGPU", vk.PhysicalDeviceTypeIntegratedGpu: "IntegratedGPU", vk.PhysicalDeviceTypeCpu: "CPU",
	}[p.DeviceType]
	info := gpurun.Info{
		Name:   vk.String(p.DeviceName[:]),
		Driver: strings.TrimSpace(vk.String(p12.DriverName[:]) + " " + vk.String(p12.DriverInfo[:])),
		Kind:   cmp.Or(kind, "Unknown"),
		Vendor: p.VendorID,
		Model:  p.DeviceID,
		Limits: gpurun.Limits{
			Binding:          int64(min(l.MaxStorageBufferRange, 1<<31-1)) &^ 15,
			Buffer:           int64(min(p11.MaxMemoryAllocationSize, 1<<40)) &^ 15,
			Uniform:          int64(min(l.MaxUniformBufferRange, 1<<16)) &^ 15,
			Align:            int64(max(l.MinStorageBufferOffsetAlignment, l.MinUniformBufferOffsetAlignment, 16)),
			StorageBuffers:   min(int(l.MaxPerStageDescriptorStorageBuffers), pushed-1, maxBindings-1), // one binding is of words
			Groups:           int64(min(l.MaxComputeWorkGroupCount[0], l.MaxComputeWorkGroupCount[1], l.MaxComputeWorkGroupCount[2])),
			GroupSize:        int(min(l.MaxComputeWorkGroupInvocations, l.MaxComputeWorkGroupSize[0])),
			WorkgroupStorage: int64(l.MaxComputeSharedMemorySize),
		},
	}
	info.Points = mostPoints(info.Kind, goruntime.GOOS)
	const operations = vk.SubgroupFeatureBasicBit | vk.SubgroupFeatureVoteBit | vk.SubgroupFeatureArithmeticBit
	if p11.SubgroupSupportedOperations&operations == operations && p11.SubgroupSupportedStages&vk.ShaderStageComputeBit != 0 {
		const shuffles = vk.SubgroupFeatureShuffleBit | vk.SubgroupFeatureShuffleRelativeBit
		info.Limits.Subgroup = int(p11.SubgroupSize)
		info.Limits.Shuffles = p11.SubgroupSupportedOperations&shuffles == shuffles
		info.Limits.Clusters = p11.SubgroupSupportedOperations&vk.SubgroupFeatureClusteredBit != 0
	}
	return info
}

// shortPoints bounds the points of a dispatch where a long one would be ended: Windows resets an
// adapter that does not answer for two seconds, and drivers of integrated GPUs do the like. An
// integrated GPU of 0.5 TFLOP/s then computes 30,000 operations per point in a second.
const shortPoints = 1 << 24

// mostPoints is the limit for an adapter of a kind, 0 for none.
func mostPoints(kind, goos string) int64 {
	if kind == "IntegratedGPU" || goos == "windows" && kind != "CPU" {
		return shortPoints
	}
	return 0
}

// Adapters describes the usable adapters of this machine, best first.
func Adapters() ([]gpurun.Info, error) {
	_, list, err := adapters()
	if err != nil {
		return nil, err
	}
	infos := make([]gpurun.Info, len(list))
	for i, a := range list {
		infos[i] = a.info
	}
	return infos, nil
}
