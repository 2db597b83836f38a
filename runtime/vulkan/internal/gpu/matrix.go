//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

const (
	cooperativeMatrix = "VK_KHR_cooperative_matrix"
	bfloat16          = "VK_KHR_shader_bfloat16"
	subgroupSize      = "VK_EXT_subgroup_size_control" // pipelines with matrices want full subgroups
)

// vendors are those whose matrix units are used: NVIDIA, AMD, and Mesa's software device. Drivers of
// others are said to compute wrong products, or to crash. Mesa's software device emulates the units,
// slower than other tiles, so they are used only if the settings ask for it.
var vendors = []uint32{0x10de, 0x1002, mesa}

const mesa = 0x10005

// matrixShapes lists the shapes of matrices that the adapter's driver has.
func (a *adapter) matrixShapes(in *vk.Instance) ([]vk.CooperativeMatrixPropertiesKHR, error) {
	if in.GetPhysicalDeviceCooperativeMatrixPropertiesKHR == 0 {
		return nil, errors.New("the loader does not know the extension")
	}
	var n uint32
	if err := vk.Call(in.GetPhysicalDeviceCooperativeMatrixPropertiesKHR, a.handle, uintptr(unsafe.Pointer(&n)), 0).Err(); err != nil {
		return nil, err
	}
	shapes := make([]vk.CooperativeMatrixPropertiesKHR, n+1)
	for i := range shapes {
		shapes[i].SType = vk.StructureTypeCooperativeMatrixPropertiesKhr
	}
	if err := vk.Call(in.GetPhysicalDeviceCooperativeMatrixPropertiesKHR, a.handle, uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&shapes[0]))).Err(); err != nil {
		return nil, err
	}
	return shapes[:n], nil
}

// units are the shapes of matrices that shaders use: of 16-bit floats, with sums of float32.
func (a *adapter) units(in *vk.Instance, extensions []string, f12 *vk.PhysicalDeviceVulkan12Features) (list []shader.Matrix) {
	if !slices.Contains(extensions, cooperativeMatrix) || !slices.Contains(extensions, subgroupSize) || !slices.Contains(vendors, a.info.Vendor) ||
		f12.ShaderFloat16 == 0 || f12.VulkanMemoryModel == 0 || a.info.Limits.Subgroup == 0 {
		return nil
	}
	brain := vk.PhysicalDeviceShaderBfloat16FeaturesKHR{SType: vk.StructureTypePhysicalDeviceShaderBfloat16FeaturesKhr}
	size := vk.PhysicalDeviceSubgroupSizeControlFeatures{SType: vk.StructureTypePhysicalDeviceSubgroupSizeControlFeatures}
	matrix := vk.PhysicalDeviceCooperativeMatrixFeaturesKHR{SType: vk.StructureTypePhysicalDeviceCooperativeMatrixFeaturesKhr, PNext: unsafe.Pointer(&size)}
	if slices.Contains(extensions, bfloat16) {
		size.PNext = unsafe.Pointer(&brain)
	}
	f := vk.PhysicalDeviceFeatures2{SType: vk.StructureTypePhysicalDeviceFeatures2, PNext: unsafe.Pointer(&matrix)}
	vk.Call(in.GetPhysicalDeviceFeatures2, a.handle, uintptr(unsafe.Pointer(&f)))
	if matrix.CooperativeMatrix == 0 || size.ComputeFullSubgroups == 0 {
		return nil
	}
	dtypes := map[string]ir.DType{"f16": ir.Float16}
	if brain.ShaderBFloat16Type != 0 && brain.ShaderBFloat16CooperativeMatrix != 0 {
		dtypes["bf16"] = ir.BFloat16
	}
	shapes, err := a.matrixShapes(in)
	if err != nil {
		return nil // the adapter's properties say why
	}
	for _, s := range shapes {
		of, ok := dtypes[vk.ComponentTypes[s.AType]]
		if ok && s.BType == s.AType && vk.ComponentTypes[s.CType] == "f32" && s.ResultType == s.CType &&
			s.SaturatingAccumulation == 0 && vk.MatrixScopes[s.Scope] == "subgroup" {
			list = append(list, shader.Matrix{M: int(s.MSize), N: int(s.NSize), K: int(s.KSize), Lanes: a.info.Limits.Subgroup, Of: of})
		}
	}
	return list
}

// matrices is a shape as a module has it.
func matrices(x shader.Matrix) spirv.Matrices {
	return spirv.Matrices{M: x.M, N: x.N, K: x.K, Of: map[ir.DType]string{ir.Float16: "f16", ir.BFloat16: "bf16"}[x.Of]}
}

// choose leaves out what the settings of a device do not want of the adapter.
func (a *adapter) choose(set settings) {
	if set.buffered {
		a.push = 0
	}
	a.info.Skips = a.info.Skips && !set.skipless
	if a.info.Emulated = a.info.Vendor == mesa && set.emulated; a.info.Vendor == mesa && !set.emulated {
		a.info.Matrices = nil
	}
}

// brain reports whether some matrices are of bfloat16.
func (a *adapter) brain() bool {
	return slices.ContainsFunc(a.info.Matrices, func(x shader.Matrix) bool { return x.Of == ir.BFloat16 })
}
