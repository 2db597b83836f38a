//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// TestUnits: an adapter has matrix units if its vendor, its extensions and its features say so, of
// the shapes whose sums are float32.
func TestUnits(t *testing.T) {
	const f16, f32, bf16, subgroup, workgroup = 0, 1, 1000141000, 3, 2
	shape := func(m, n, k, of, sums, scope uint32) vk.CooperativeMatrixPropertiesKHR {
		return vk.CooperativeMatrixPropertiesKHR{MSize: m, NSize: n, KSize: k, AType: of, BType: of, CType: sums, ResultType: sums, Scope: scope}
	}
	shapes := []vk.CooperativeMatrixPropertiesKHR{
		shape(16, 16, 16, f16, f16, subgroup), shape(16, 16, 16, f16, f32, subgroup), shape(64, 64, 16, f16, f32, workgroup),
		shape(16, 8, 8, bf16, f32, subgroup), shape(16, 16, 32, 3, 5, subgroup),
	}
	type driver struct{ matrices, full, brain uint32 } // features
	var d driver
	var result uintptr // of the call that lists shapes
	type head struct {
		kind uint32
		next unsafe.Pointer
	}
	in := &vk.Instance{
		GetPhysicalDeviceFeatures2: vk.Callback(func(_ uintptr, at unsafe.Pointer) uintptr {
			for next := (*vk.PhysicalDeviceFeatures2)(at).PNext; next != nil; next = (*head)(next).next {
				switch (*head)(next).kind {
				case vk.StructureTypePhysicalDeviceCooperativeMatrixFeaturesKhr:
					(*vk.PhysicalDeviceCooperativeMatrixFeaturesKHR)(next).CooperativeMatrix = d.matrices
				case vk.StructureTypePhysicalDeviceSubgroupSizeControlFeatures:
					(*vk.PhysicalDeviceSubgroupSizeControlFeatures)(next).ComputeFullSubgroups = d.full
				case vk.StructureTypePhysicalDeviceShaderBfloat16FeaturesKhr:
					x := (*vk.PhysicalDeviceShaderBfloat16FeaturesKHR)(next)
					x.ShaderBFloat16Type, x.ShaderBFloat16CooperativeMatrix = d.brain, d.brain
				}
			}
			return 0
		}),
		GetPhysicalDeviceCooperativeMatrixPropertiesKHR: vk.Callback(func(_ uintptr, n *uint32, list unsafe.Pointer) uintptr {
			*n = uint32(len(shapes))
			if list != nil {
				copy(unsafe.Slice((*vk.CooperativeMatrixPropertiesKHR)(list), len(shapes)), shapes)
			}
			return result
		}),
	}
	half, brain := shader.Matrix{M: 16, N: 16, K: 16, Lanes: 32, Of: ir.Float16}, shader.Matrix{M: 16, N: 8, K: 8, Lanes: 32, Of: ir.BFloat16}
	for name, c := range map[string]struct {
		change func(a *adapter, extensions *[]string, f *vk.PhysicalDeviceVulkan12Features, in *vk.Instance)
		want   []shader.Matrix
	}{
		"all":         {nil, []shader.Matrix{half, brain}},
		"no bf16":     {func(_ *adapter, e *[]string, _ *vk.PhysicalDeviceVulkan12Features, _ *vk.Instance) { *e = (*e)[:2] }, []shader.Matrix{half}},
		"bf16 is off": {func(*adapter, *[]string, *vk.PhysicalDeviceVulkan12Features, *vk.Instance) { d.brain = 0 }, []shader.Matrix{half}},
		"a vendor": {func(a *adapter, _ *[]string, _ *vk.PhysicalDeviceVulkan12Features, _ *vk.Instance) {
			a.info.Vendor = 0x8086
		}, nil},
		"extension": {func(_ *adapter, e *[]string, _ *vk.PhysicalDeviceVulkan12Features, _ *vk.Instance) { *e = (*e)[1:] }, nil},
		"sizes":     {func(_ *adapter, e *[]string, _ *vk.PhysicalDeviceVulkan12Features, _ *vk.Instance) { *e = (*e)[:1] }, nil},
		"f16": {func(_ *adapter, _ *[]string, f *vk.PhysicalDeviceVulkan12Features, _ *vk.Instance) {
			f.ShaderFloat16 = 0
		}, nil},
		"memory": {func(_ *adapter, _ *[]string, f *vk.PhysicalDeviceVulkan12Features, _ *vk.Instance) {
			f.VulkanMemoryModel = 0
		}, nil},
		"subgroups": {func(a *adapter, _ *[]string, _ *vk.PhysicalDeviceVulkan12Features, _ *vk.Instance) {
			a.info.Limits.Subgroup = 0
		}, nil},
		"off":      {func(*adapter, *[]string, *vk.PhysicalDeviceVulkan12Features, *vk.Instance) { d.matrices = 0 }, nil},
		"not full": {func(*adapter, *[]string, *vk.PhysicalDeviceVulkan12Features, *vk.Instance) { d.full = 0 }, nil},
		"a loader": {func(_ *adapter, _ *[]string, _ *vk.PhysicalDeviceVulkan12Features, in *vk.Instance) {
			in.GetPhysicalDeviceCooperativeMatrixPropertiesKHR = 0
		}, nil},
		"an error": {func(*adapter, *[]string, *vk.PhysicalDeviceVulkan12Features, *vk.Instance) {
			result = uintptr(0xffffffff) // VK_ERROR_OUT_OF_HOST_MEMORY
		}, nil},
	} {
		d, result = driver{1, 1, 1}, 0
		a := &adapter{info: gpurun.Info{Vendor: vendors[0], Limits: gpurun.Limits{Subgroup: 32}}}
		extensions := []string{cooperativeMatrix, subgroupSize, bfloat16}
		f12, calls := vk.PhysicalDeviceVulkan12Features{ShaderFloat16: 1, VulkanMemoryModel: 1}, *in
		if c.change != nil {
			c.change(a, &extensions, &f12, &calls)
		}
		if got := a.units(&calls, extensions, &f12); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestMatricesFit: the driver gets no module with matrices that it does not list, or in workgroups
// that are no whole subgroups.
func TestMatricesFit(t *testing.T) {
	info := &gpurun.Info{Limits: gpurun.Limits{GroupSize: 256}, Matrices: []shader.Matrix{{M: 16, N: 8, K: 16, Lanes: 32, Of: ir.BFloat16}}}
	listed := spirv.Matrices{M: 16, N: 8, K: 16, Of: "bf16"}
	for _, c := range []struct {
		mod spirv.Module
		ok  bool
	}{
		{spirv.Module{Group: 64, Matrices: listed}, true},
		{spirv.Module{Group: 48, Matrices: listed}, false},
		{spirv.Module{Group: 64, Matrices: spirv.Matrices{M: 16, N: 8, K: 16, Of: "f16"}}, false},
		{spirv.Module{Group: 64, Matrices: spirv.Matrices{M: 16, N: 8, K: 8, Of: "bf16"}}, false},
		{spirv.Module{Group: 48}, true},
	} {
		err := fits(&c.mod, nil, info)
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "which the adapter does not have") {
			t.Errorf("%+v: %v", c.mod, err)
		}
	}
}

// TestEmulated: matrix units that a driver emulates are used only if the settings ask for them.
func TestEmulated(t *testing.T) {
	for _, c := range []struct {
		vendor uint32
		set    settings
		used   bool
	}{
		{mesa, settings{}, false},
		{mesa, settings{emulated: true}, true},
		{vendors[0], settings{}, true},
	} {
		a := &adapter{info: gpurun.Info{Vendor: c.vendor, Matrices: []shader.Matrix{{M: 8, N: 8, K: 8, Lanes: 8, Of: ir.Float16}}}}
		if a.choose(c.set); len(a.info.Matrices) > 0 != c.used {
			t.Errorf("vendor %#x, %+v: %v", c.vendor, c.set, a.info.Matrices)
		}
		if want := c.vendor == mesa && c.used; a.info.Emulated != want {
			t.Errorf("vendor %#x, %+v: emulated: %v", c.vendor, c.set, a.info.Emulated)
		}
	}
}
