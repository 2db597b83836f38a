//go:build (linux || darwin || windows) && (amd64 || arm64)

package vk

import "unsafe"

// The extension VK_KHR_cooperative_matrix is newer than the header of stable distributions, from
// which z_structs.go is made, and so is VK_KHR_shader_bfloat16. Their structures are written by hand
// here, and TestMatrixLayout has their layout.

// StructureTypeCooperativeMatrixPropertiesKhr is the structure's number.
const StructureTypeCooperativeMatrixPropertiesKhr = 1000506001

// CooperativeMatrixPropertiesKHR is a shape of matrices that subgroups multiply.
type CooperativeMatrixPropertiesKHR struct {
	SType                  uint32
	PNext                  unsafe.Pointer
	MSize                  uint32
	NSize                  uint32
	KSize                  uint32
	AType                  uint32
	BType                  uint32
	CType                  uint32
	ResultType             uint32
	SaturatingAccumulation uint32
	Scope                  uint32
}

// StructureTypes of features.
const (
	StructureTypePhysicalDeviceCooperativeMatrixFeaturesKhr = 1000506000
	StructureTypePhysicalDeviceShaderBfloat16FeaturesKhr    = 1000141000
)

// PhysicalDeviceCooperativeMatrixFeaturesKHR says whether shaders have matrices.
type PhysicalDeviceCooperativeMatrixFeaturesKHR struct {
	SType                               uint32
	PNext                               unsafe.Pointer
	CooperativeMatrix                   uint32
	CooperativeMatrixRobustBufferAccess uint32
}

// PhysicalDeviceShaderBfloat16FeaturesKHR says what shaders can do with bfloat16.
type PhysicalDeviceShaderBfloat16FeaturesKHR struct {
	SType                           uint32
	PNext                           unsafe.Pointer
	ShaderBFloat16Type              uint32
	ShaderBFloat16DotProduct        uint32
	ShaderBFloat16CooperativeMatrix uint32
}

// ComponentTypes are the names of VkComponentTypeKHR.
var ComponentTypes = map[uint32]string{
	0: "f16", 1: "f32", 2: "f64", 3: "i8", 4: "i16", 5: "i32", 6: "i64", 7: "u8", 8: "u16", 9: "u32", 10: "u64",
	1000141000: "bf16", 1000491002: "e4m3", 1000491003: "e5m2",
}

// MatrixScopes are the names of VkScopeKHR.
var MatrixScopes = map[uint32]string{1: "device", 2: "workgroup", 3: "subgroup", 5: "queue family"}
