// Gen writes z_structs.go of package vk, and z_layout_test.go, which its test compares with, from
// vulkan_core.h. A C compiler says where the header's fields are and what its numbers are.
//
//	go run ./gen /usr/include/vulkan/vulkan_core.h
//
// Input: the header. Output: the two files in the current folder. Read main.go first.
//
// Engine part: no compatibility promise; use package millrace.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// structs are the structures that package vk has; nested ones come first.
var structs = strings.Fields(`
Extent3D ApplicationInfo InstanceCreateInfo LayerProperties ExtensionProperties
DebugUtilsMessengerCreateInfoEXT DebugUtilsMessengerCallbackDataEXT
PhysicalDeviceLimits PhysicalDeviceSparseProperties PhysicalDeviceProperties PhysicalDeviceProperties2
ConformanceVersion PhysicalDeviceVulkan11Properties PhysicalDeviceVulkan12Properties PhysicalDevicePushDescriptorPropertiesKHR
PhysicalDeviceFeatures PhysicalDeviceFeatures2 PhysicalDeviceVulkan11Features PhysicalDeviceVulkan12Features PhysicalDeviceSubgroupSizeControlFeatures
PhysicalDeviceConditionalRenderingFeaturesEXT ConditionalRenderingBeginInfoEXT
MemoryType MemoryHeap PhysicalDeviceMemoryProperties QueueFamilyProperties
DeviceQueueCreateInfo DeviceCreateInfo
MemoryRequirements MemoryAllocateInfo BufferCreateInfo
ShaderModuleCreateInfo SpecializationMapEntry SpecializationInfo PipelineShaderStageCreateInfo ComputePipelineCreateInfo
PipelineCacheCreateInfo PushConstantRange PipelineLayoutCreateInfo DescriptorSetLayoutBinding DescriptorSetLayoutCreateInfo
CommandPoolCreateInfo CommandBufferAllocateInfo CommandBufferBeginInfo MemoryBarrier BufferCopy
DescriptorBufferInfo WriteDescriptorSet
SemaphoreTypeCreateInfo SemaphoreCreateInfo SemaphoreWaitInfo TimelineSemaphoreSubmitInfo SubmitInfo FenceCreateInfo
`)

// numbers are the enumerators that package vk has, without VK_.
var numbers = strings.Fields(`
SUCCESS NOT_READY TIMEOUT INCOMPLETE ERROR_OUT_OF_HOST_MEMORY ERROR_OUT_OF_DEVICE_MEMORY ERROR_INITIALIZATION_FAILED ERROR_DEVICE_LOST
ERROR_LAYER_NOT_PRESENT ERROR_EXTENSION_NOT_PRESENT ERROR_FEATURE_NOT_PRESENT ERROR_INCOMPATIBLE_DRIVER ERROR_TOO_MANY_OBJECTS
API_VERSION_1_2
STRUCTURE_TYPE_APPLICATION_INFO STRUCTURE_TYPE_INSTANCE_CREATE_INFO STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT
STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2 STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES
STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR
STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2 STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES
STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT
STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO STRUCTURE_TYPE_DEVICE_CREATE_INFO STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO STRUCTURE_TYPE_BUFFER_CREATE_INFO
STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO
STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO
STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO
STRUCTURE_TYPE_MEMORY_BARRIER STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO
STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO STRUCTURE_TYPE_SUBMIT_INFO STRUCTURE_TYPE_FENCE_CREATE_INFO
DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT
DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT
PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU PHYSICAL_DEVICE_TYPE_DISCRETE_GPU PHYSICAL_DEVICE_TYPE_CPU
SUBGROUP_FEATURE_BASIC_BIT SUBGROUP_FEATURE_VOTE_BIT SUBGROUP_FEATURE_ARITHMETIC_BIT
SUBGROUP_FEATURE_SHUFFLE_BIT SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT SUBGROUP_FEATURE_CLUSTERED_BIT
QUEUE_GRAPHICS_BIT QUEUE_COMPUTE_BIT QUEUE_TRANSFER_BIT SHARING_MODE_CONCURRENT SHADER_STAGE_COMPUTE_BIT PIPELINE_BIND_POINT_COMPUTE
MEMORY_PROPERTY_DEVICE_LOCAL_BIT MEMORY_PROPERTY_HOST_VISIBLE_BIT MEMORY_PROPERTY_HOST_COHERENT_BIT MEMORY_PROPERTY_HOST_CACHED_BIT
BUFFER_USAGE_TRANSFER_SRC_BIT BUFFER_USAGE_TRANSFER_DST_BIT BUFFER_USAGE_STORAGE_BUFFER_BIT BUFFER_USAGE_UNIFORM_BUFFER_BIT
DESCRIPTOR_TYPE_UNIFORM_BUFFER DESCRIPTOR_TYPE_STORAGE_BUFFER DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR
COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT SEMAPHORE_TYPE_TIMELINE
PIPELINE_STAGE_COMPUTE_SHADER_BIT PIPELINE_STAGE_TRANSFER_BIT PIPELINE_STAGE_HOST_BIT PIPELINE_STAGE_ALL_COMMANDS_BIT
ACCESS_SHADER_READ_BIT ACCESS_SHADER_WRITE_BIT ACCESS_UNIFORM_READ_BIT ACCESS_TRANSFER_WRITE_BIT ACCESS_HOST_READ_BIT
ACCESS_MEMORY_READ_BIT ACCESS_MEMORY_WRITE_BIT ACCESS_TRANSFER_READ_BIT
STRUCTURE_TYPE_PHYSICAL_DEVICE_CONDITIONAL_RENDERING_FEATURES_EXT STRUCTURE_TYPE_CONDITIONAL_RENDERING_BEGIN_INFO_EXT
BUFFER_USAGE_CONDITIONAL_RENDERING_BIT_EXT CONDITIONAL_RENDERING_INVERTED_BIT_EXT
PIPELINE_STAGE_CONDITIONAL_RENDERING_BIT_EXT ACCESS_CONDITIONAL_RENDERING_READ_BIT_EXT
`)

// basic are C's types, besides the header's own.
var basic = map[string]string{
	"uint8_t": "uint8", "char": "uint8", "uint32_t": "uint32", "int32_t": "int32", "uint64_t": "uint64", "size_t": "uintptr", "float": "float32",
	"VkBool32": "uint32", "VkFlags": "uint32", "VkDeviceSize": "uint64",
}

type field struct{ name, typ, length string } // as C has them

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: gen vulkan_core.h")
	}
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	header := string(data)
	for name, goType := range map[string]string{
		`typedef VkFlags (Vk\w+);`: "uint32", `typedef enum (Vk\w+) \{`: "uint32", `typedef \S+ \(VKAPI_PTR \*(PFN_\w+)\)`: "uintptr",
		`VK_DEFINE_HANDLE\((Vk\w+)\)`: "uintptr", `VK_DEFINE_NON_DISPATCHABLE_HANDLE\((Vk\w+)\)`: "uint64",
	} {
		for _, m := range regexp.MustCompile(name).FindAllStringSubmatch(header, -1) {
			basic[m[1]] = goType
		}
	}
	fields := map[string][]field{}
	for _, s := range structs {
		basic["Vk"+s] = s
		fields[s] = read(header, s)
	}
	sizes := measure(os.Args[1], fields)

	const first = "// Code generated by gen from vulkan_core.h. DO NOT EDIT.\n\n//go:build (linux || darwin || windows) && (amd64 || arm64)\n\npackage vk\n\n"
	var src, test bytes.Buffer
	src.WriteString(first + "import \"unsafe\"\n\n// Numbers of the header.\nconst (\n")
	for _, n := range numbers {
		typ := ""
		if n == "SUCCESS" || n == "NOT_READY" || n == "TIMEOUT" || n == "INCOMPLETE" || strings.HasPrefix(n, "ERROR_") {
			typ = "Result"
		}
		fmt.Fprintf(&src, "%s %s = %s\n", camel(n), typ, sizes["VK_"+n])
	}
	src.WriteString(")\n\n")
	test.WriteString(first + "// layout has the size of each structure, and the offset of each field, on systems of 64 bits.\nvar layout = []struct {\n\tof any\n\tsize uintptr\n\toffsets []uintptr\n}{\n")
	for _, s := range structs {
		fmt.Fprintf(&src, "type %s struct {\n", s)
		fmt.Fprintf(&test, "{%s{}, %s, []uintptr{", s, sizes["Vk"+s])
		for _, f := range fields[s] {
			fmt.Fprintf(&src, "%s%s %s%s\n", strings.ToUpper(f.name[:1]), f.name[1:], array(f.length, sizes), goType(f.typ))
			fmt.Fprintf(&test, "%s, ", sizes["Vk"+s+"."+f.name])
		}
		src.WriteString("}\n\n")
		test.WriteString("}},\n")
	}
	test.WriteString("}\n")
	for name, b := range map[string]*bytes.Buffer{"z_structs.go": &src, "z_layout_test.go": &test} {
		text, err := format.Source(b.Bytes())
		if err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o666); err != nil {
			log.Fatal(err)
		}
	}
}

// camel is a name such as ERROR_DEVICE_LOST in Go's spelling.
func camel(s string) string {
	var b strings.Builder
	for _, w := range strings.Split(s, "_") {
		b.WriteString(w[:1] + strings.ToLower(w[1:]))
	}
	return b.String()
}

// read finds the fields of a structure.
func read(header, name string) (list []field) {
	_, body, ok := strings.Cut(header, "typedef struct Vk"+name+" {\n")
	body, _, closed := strings.Cut(body, "}")
	if !ok || !closed {
		log.Fatalf("no structure %s", name)
	}
	one := regexp.MustCompile(`^(?:const )?(.+?)\s+(\w+)(?:\[(\w+)\])?;$`)
	for line := range strings.Lines(body) {
		m := one.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			log.Fatalf("%s: %q is no field", name, line)
		}
		list = append(list, field{m[2], m[1], m[3]})
	}
	return list
}

func goType(c string) string {
	if strings.Contains(c, "*") {
		return "unsafe.Pointer"
	}
	t, ok := basic[c]
	if !ok {
		log.Fatalf("unknown type %s", c)
	}
	return t
}

func array(length string, sizes map[string]string) string {
	switch {
	case length == "":
		return ""
	case sizes[length] != "":
		return "[" + sizes[length] + "]"
	}
	return "[" + length + "]"
}

// measure has C print sizes, offsets and numbers.
func measure(header string, fields map[string][]field) map[string]string {
	dir, err := os.MkdirTemp("", "vkgen")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var b strings.Builder
	b.WriteString("#include <stdio.h>\n#include <stddef.h>\n#include <vulkan/vulkan_core.h>\nint main(void) {\n")
	show := func(name, c string) { fmt.Fprintf(&b, "printf(\"%s %%lld\\n\", (long long)(%s));\n", name, c) }
	for _, n := range numbers {
		show("VK_"+n, "VK_"+n)
	}
	for s, list := range fields {
		show("Vk"+s, "sizeof(Vk"+s+")")
		for _, f := range list {
			show("Vk"+s+"."+f.name, "offsetof(Vk"+s+", "+f.name+")")
			if strings.HasPrefix(f.length, "VK_") {
				show(f.length, f.length)
			}
		}
	}
	b.WriteString("return 0;\n}\n")
	program, binary := filepath.Join(dir, "sizes.c"), filepath.Join(dir, "sizes")
	if err := os.WriteFile(program, []byte(b.String()), 0o600); err != nil {
		log.Fatal(err)
	}
	if out, err := exec.Command("cc", "-I", filepath.Dir(filepath.Dir(header)), "-o", binary, program).CombinedOutput(); err != nil {
		log.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(binary).Output()
	if err != nil {
		log.Fatal(err)
	}
	sizes := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		sizes[name] = value
	}
	return sizes
}
