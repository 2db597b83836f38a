//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// TestDescribe: an adapter that lacks something is not used, and its error says what is missing.
func TestDescribe(t *testing.T) {
	type driver struct {
		version    uint32
		extensions []string
		timeline   uint32
		queues     uint32

		halves, bytes uint32 // features
	}
	good := driver{vk.ApiVersion12, []string{"VK_KHR_other", pushDescriptor}, 1, vk.QueueComputeBit, 0, 0}
	var d driver // of the functions below
	copyText := func(dst []byte, s string) { copy(dst, s+"\x00") }
	in := &vk.Instance{
		GetPhysicalDeviceProperties2: vk.Callback(func(_ uintptr, at unsafe.Pointer) uintptr {
			p := (*vk.PhysicalDeviceProperties2)(at)
			copyText(p.Properties.DeviceName[:], "a card")
			p.Properties.ApiVersion, p.Properties.DeviceType = d.version, vk.PhysicalDeviceTypeIntegratedGpu
			for next := p.PNext; next != nil; {
				head := (*struct {
					kind uint32
					next unsafe.Pointer
				})(next)
				if head.kind == vk.StructureTypePhysicalDevicePushDescriptorPropertiesKhr {
					(*vk.PhysicalDevicePushDescriptorPropertiesKHR)(next).MaxPushDescriptors = 32
				}
				next = head.next
			}
			return 0
		}),
		GetPhysicalDeviceFeatures2: vk.Callback(func(_ uintptr, at unsafe.Pointer) uintptr {
			f12 := (*vk.PhysicalDeviceVulkan12Features)((*vk.PhysicalDeviceFeatures2)(at).PNext)
			f12.TimelineSemaphore, f12.StorageBuffer8BitAccess = d.timeline, d.bytes
			(*vk.PhysicalDeviceVulkan11Features)(f12.PNext).StorageBuffer16BitAccess = d.halves
			return 0
		}),
		GetPhysicalDeviceMemoryProperties: vk.Callback(func(_ uintptr, _ unsafe.Pointer) uintptr { return 0 }),
		GetPhysicalDeviceQueueFamilyProperties: vk.Callback(func(_ uintptr, n *uint32, list unsafe.Pointer) uintptr {
			*n = 1
			if list != nil {
				(*vk.QueueFamilyProperties)(list).QueueFlags = d.queues
			}
			return 0
		}),
		EnumerateDeviceExtensionProperties: vk.Callback(func(_ uintptr, _ unsafe.Pointer, n *uint32, list unsafe.Pointer) uintptr {
			*n = uint32(len(d.extensions))
			if list != nil {
				all := unsafe.Slice((*vk.ExtensionProperties)(list), len(d.extensions))
				for i := range all {
					copyText(all[i].ExtensionName[:], d.extensions[i])
				}
			}
			return 0
		}),
	}
	for _, c := range []struct {
		change func(*driver)
		want   string
	}{
		{func(d *driver) { d.version = 1<<22 | 1<<12 | 7 }, "has Vulkan 1.1, and 1.2 is needed"},
		{func(d *driver) { d.extensions = d.extensions[:1] }, "has no VK_KHR_push_descriptor"},
		{func(d *driver) { d.extensions = nil }, "has no VK_KHR_push_descriptor"},
		{func(d *driver) { d.timeline = 0 }, "has no timeline semaphores"},
		{func(d *driver) { d.queues = 1 }, "has no compute queue"},
		{func(*driver) {}, ""},
		{func(d *driver) { d.halves = 1 }, ""},
		{func(d *driver) { d.bytes = 1 }, ""},
	} {
		d = good
		c.change(&d)
		var a adapter
		if got := a.describe(in); got != c.want || a.info.Name != "a card" {
			t.Errorf("%q of %q, want %q", got, a.info.Name, c.want)
		}
		if c.want == "" && (a.info.Kind != "IntegratedGPU" || a.info.Points != shortPoints ||
			a.info.Store16 != (d.halves == 1) || a.info.Store8 != (d.bytes == 1)) {
			t.Errorf("%+v", a.info)
		}
	}
}

// TestPoints: dispatches are short where a long one would be ended.
func TestPoints(t *testing.T) {
	for _, c := range []struct {
		kind, goos string
		want       int64
	}{
		{"DiscreteGPU", "linux", 0}, {"IntegratedGPU", "linux", shortPoints}, {"DiscreteGPU", "windows", shortPoints}, {"CPU", "windows", 0}, {"CPU", "linux", 0},
	} {
		if got := mostPoints(c.kind, c.goos); got != c.want {
			t.Errorf("%s on %s: %d", c.kind, c.goos, got)
		}
	}
}

// TestDump: while a driver compiles a shader, its text and its module are in the folder that the
// environment names. A driver that crashes leaves them there.
func TestDump(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(dumpTo, dir)
	d := open(t)
	files := func() (list []string) {
		found, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			list = append(list, f.Name())
		}
		return list
	}
	mod, err := spirv.Compile(double, d.adapter.floats, d.adapter.push)
	if err != nil {
		t.Fatal(err)
	}
	done, err := dump(double, mod.Words)
	if err != nil {
		t.Fatal(err)
	}
	list := files()
	if len(list) != 2 || !strings.HasSuffix(list[0], ".spv") || !strings.HasSuffix(list[1], ".txt") {
		t.Fatalf("files %v", list)
	}
	text, err := os.ReadFile(filepath.Join(dir, list[1]))
	if err != nil || string(text) != double {
		t.Errorf("%q, %v", text, err)
	}
	done()
	if _, err := d.NewPipeline(double, doubleBindings); err != nil || len(files()) != 0 {
		t.Errorf("%v; files %v are left", err, files())
	}
	t.Setenv(dumpTo, filepath.Join(dir, "none"))
	if _, err := d.NewPipeline(double, []gpurun.Binding{gpurun.ReadWrite, gpurun.Params}); err == nil || !strings.Contains(err.Error(), dumpTo) {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

// TestProperties: an adapter says what programs that measure it need to know.
func TestProperties(t *testing.T) {
	open(t)
	var names []string
	for _, p := range Properties(0) {
		if p.Value == "" {
			t.Errorf("%s is empty", p.Name)
		}
		names = append(names, p.Name)
	}
	for _, want := range []string{"Vulkan", "push constants", "heap 0", "16-bit elements", "8-bit elements", "float32 keeps", "extensions", "matrix units"} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no %s among %q", want, names)
		}
	}
	if more := Properties(1000); more != nil {
		t.Errorf("an adapter that is not there: %v", more)
	}
}
