//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// notable are extensions that shaders or submissions could use.
var notable = []string{
	cooperativeMatrix, "VK_NV_cooperative_matrix2", bfloat16, "VK_KHR_shader_float_controls2", "VK_KHR_shader_integer_dot_product",
	"VK_EXT_shader_atomic_float", "VK_EXT_subgroup_size_control", "VK_EXT_memory_budget", "VK_KHR_pipeline_binary", "VK_NV_device_diagnostic_checkpoints",
}

// Properties describes an adapter, by its place in the list of Adapters, beyond its Info.
func Properties(number int) []runtime.Property {
	in, list, err := adapters()
	if err != nil || number >= len(list) {
		return nil
	}
	defer vk.Quiet()()
	return list[number].properties(in)
}

func (a *adapter) properties(in *vk.Instance) (list []runtime.Property) {
	add := func(name, format string, args ...any) {
		list = append(list, runtime.Property{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	p := vk.PhysicalDeviceProperties2{SType: vk.StructureTypePhysicalDeviceProperties2}
	vk.Call(in.GetPhysicalDeviceProperties2, a.handle, uintptr(unsafe.Pointer(&p)))
	f11 := vk.PhysicalDeviceVulkan11Features{SType: vk.StructureTypePhysicalDeviceVulkan11Features}
	f12 := vk.PhysicalDeviceVulkan12Features{SType: vk.StructureTypePhysicalDeviceVulkan12Features, PNext: unsafe.Pointer(&f11)}
	f := vk.PhysicalDeviceFeatures2{SType: vk.StructureTypePhysicalDeviceFeatures2, PNext: unsafe.Pointer(&f12)}
	vk.Call(in.GetPhysicalDeviceFeatures2, a.handle, uintptr(unsafe.Pointer(&f)))

	v := p.Properties.ApiVersion
	add("Vulkan", "%d.%d.%d", v>>22&0x7f, v>>12&0x3ff, v&0xfff)
	add("push constants", "%d bytes", p.Properties.Limits.MaxPushConstantsSize)
	for i := range a.memory.MemoryHeapCount {
		add(fmt.Sprintf("heap %d", i), "%d MiB, %s", a.memory.MemoryHeaps[i].Size>>20, strings.Join(a.memoryTypes(i), "; "))
	}
	add("16-bit elements", "%s", supported(map[string]uint32{"storage": f11.StorageBuffer16BitAccess, "arithmetic of f16": f12.ShaderFloat16, "of integers": f.Features.ShaderInt16}))
	add("8-bit elements", "%s", supported(map[string]uint32{"storage": f12.StorageBuffer8BitAccess, "arithmetic": f12.ShaderInt8}))
	add("64-bit elements", "%s", supported(map[string]uint32{"integers": f.Features.ShaderInt64, "floats": f.Features.ShaderFloat64}))
	floats := map[bool]uint32{true: 1}
	add("float32 keeps", "%s", supported(map[string]uint32{"NaN, infinities and -0": floats[a.floats.KeepNaN], "denormals": floats[a.floats.KeepDenormals], "rounding to nearest": floats[a.floats.Nearest]}))
	uploads := "through the queue of dispatches"
	switch {
	case a.second == nil:
	case a.second.family == a.family:
		uploads = "through a second queue of the same family"
	default:
		uploads = "through a queue for copies"
	}
	add("uploads", "%s", uploads)
	add("robust access", "%s", supported(map[string]uint32{"buffers": a.features.RobustBufferAccess}))
	extensions := a.extensions(in)
	var has []string
	for _, name := range notable {
		if slices.Contains(extensions, name) {
			has = append(has, name)
		}
	}
	add("extensions", "%s", cmp.Or(strings.Join(has, ", "), "none of interest"))
	shapes := "none"
	if slices.Contains(extensions, cooperativeMatrix) {
		shapes = a.matrices(in)
	}
	add("matrix units", "%s", shapes)
	return list
}

// supported lists the names with a true value.
func supported(features map[string]uint32) string {
	var names []string
	for name, on := range features {
		if on != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return cmp.Or(strings.Join(names, ", "), "none")
}

// memoryTypes describes the types of memory of a heap, each once.
func (a *adapter) memoryTypes(heap uint32) (kinds []string) {
	names := []struct {
		flag uint32
		name string
	}{
		{vk.MemoryPropertyDeviceLocalBit, "the device's own"},
		{vk.MemoryPropertyHostVisibleBit, "the host sees it"},
		{vk.MemoryPropertyHostCoherentBit, "coherent"},
		{vk.MemoryPropertyHostCachedBit, "cached"},
	}
	for _, t := range a.memory.MemoryTypes[:a.memory.MemoryTypeCount] {
		if t.HeapIndex != heap {
			continue
		}
		var has []string
		for _, n := range names {
			if t.PropertyFlags&n.flag != 0 {
				has = append(has, n.name)
			}
		}
		if kind := cmp.Or(strings.Join(has, ", "), "plain"); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// matrices lists the shapes of cooperative matrices: rows, columns and summed elements, the dtypes
// of the operands and of the sums.
func (a *adapter) matrices(in *vk.Instance) string {
	shapes, err := a.matrixShapes(in)
	if err != nil {
		return err.Error()
	}
	name := func(of map[uint32]string, number uint32) string { return cmp.Or(of[number], fmt.Sprint(number)) }
	var texts []string
	for _, s := range shapes {
		text := fmt.Sprintf("%dx%dx%d %s·%s+%s", s.MSize, s.NSize, s.KSize,
			name(vk.ComponentTypes, s.AType), name(vk.ComponentTypes, s.BType), name(vk.ComponentTypes, s.CType))
		if s.ResultType != s.CType {
			text += " to " + name(vk.ComponentTypes, s.ResultType)
		}
		if s.SaturatingAccumulation != 0 {
			text += " saturated"
		}
		if scope := name(vk.MatrixScopes, s.Scope); scope != "subgroup" {
			text += " of a " + scope
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}
