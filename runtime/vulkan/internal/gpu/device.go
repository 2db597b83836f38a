//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// Device is an open adapter with its queue.
type Device struct {
	*vk.Device
	settings
	adapter *adapter

	mu        sync.Mutex // guards the queues and all below
	main      queue      // of dispatches, and of copies in order with them
	uploads   *queue     // of copies beside them; nil: none
	arrivals  arrivals
	fences    fences  // with the setting fence
	idle      uint64  // main.last, when that queue was last seen empty
	kept      int     // dispatches of recordings
	graves    []grave // in the order of their values
	slabs     []*slab
	staging   [2][]*staging // pooled, by direction
	pipelines map[*Pipeline]struct{}
	epoch     uint64 // the number of the current barrier: see hazard
	lost      error  // set once, then returned by every call
	closed    bool
	using     int        // calls that use the device without the lock
	changed   *sync.Cond // of using and lost
	scratch   scratch
}

// grave is an object that is freed when the queues have done their submissions of these numbers.
type grave struct {
	value, moved uint64
	free         func()
}

// Open opens the best adapter whose name or driver contains match (ignoring case; "" matches all).
func Open(match string) (*Device, error) {
	set, err := readSettings()
	if err != nil {
		return nil, err
	}
	in, list, err := adapters()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, a := range list {
		if strings.Contains(strings.ToLower(a.info.Name+" "+a.info.Driver), strings.ToLower(match)) {
			return start(in, a, set)
		}
		names = append(names, a.info.Name)
	}
	return nil, fmt.Errorf("%w named %q: there are %s", ErrNoAdapter, match, strings.Join(names, ", "))
}

// start makes a device with the features that shaders use.
func start(in *vk.Instance, a *adapter, set settings) (*Device, error) {
	a.choose(set)
	if set.oneQueue || set.fenced {
		a.second = nil
	}
	second := a.second
	priorities := [2]float32{1, 1}
	queues := []vk.DeviceQueueCreateInfo{{SType: vk.StructureTypeDeviceQueueCreateInfo, QueueFamilyIndex: a.family, QueueCount: 1, PQueuePriorities: unsafe.Pointer(&priorities)}}
	switch {
	case second == nil:
	case second.family == a.family:
		queues[0].QueueCount = 2
	default:
		queues = append(queues, queues[0])
		queues[1].QueueFamilyIndex = second.family
	}
	f11 := vk.PhysicalDeviceVulkan11Features{SType: vk.StructureTypePhysicalDeviceVulkan11Features, StorageBuffer16BitAccess: wanted(a.info.Store16)}
	f12 := vk.PhysicalDeviceVulkan12Features{
		SType: vk.StructureTypePhysicalDeviceVulkan12Features, PNext: unsafe.Pointer(&f11),
		TimelineSemaphore: 1, StorageBuffer8BitAccess: wanted(a.info.Store8),
	}
	f := vk.PhysicalDeviceFeatures2{SType: vk.StructureTypePhysicalDeviceFeatures2, PNext: unsafe.Pointer(&f12)}
	if !set.unguarded {
		f.Features.RobustBufferAccess = a.features.RobustBufferAccess
	}
	extensions := []unsafe.Pointer{vk.Text(pushDescriptor)}
	size := vk.PhysicalDeviceSubgroupSizeControlFeatures{SType: vk.StructureTypePhysicalDeviceSubgroupSizeControlFeatures, ComputeFullSubgroups: 1}
	matrix := vk.PhysicalDeviceCooperativeMatrixFeaturesKHR{
		SType: vk.StructureTypePhysicalDeviceCooperativeMatrixFeaturesKhr, PNext: unsafe.Pointer(&size), CooperativeMatrix: 1,
	}
	brain := vk.PhysicalDeviceShaderBfloat16FeaturesKHR{
		SType: vk.StructureTypePhysicalDeviceShaderBfloat16FeaturesKhr, ShaderBFloat16Type: 1, ShaderBFloat16CooperativeMatrix: 1,
	}
	if len(a.info.Matrices) > 0 {
		extensions = append(extensions, vk.Text(cooperativeMatrix), vk.Text(subgroupSize))
		f12.ShaderFloat16, f12.VulkanMemoryModel, f11.PNext = 1, 1, unsafe.Pointer(&matrix)
	}
	skips := vk.PhysicalDeviceConditionalRenderingFeaturesEXT{
		SType: vk.StructureTypePhysicalDeviceConditionalRenderingFeaturesExt, PNext: f11.PNext, ConditionalRendering: 1,
	}
	if a.info.Skips {
		extensions = append(extensions, vk.Text(conditional))
		f11.PNext = unsafe.Pointer(&skips)
	}
	if a.brain() {
		extensions = append(extensions, vk.Text(bfloat16))
		size.PNext = unsafe.Pointer(&brain)
	}
	info := vk.DeviceCreateInfo{
		SType: vk.StructureTypeDeviceCreateInfo, PNext: unsafe.Pointer(&f), QueueCreateInfoCount: uint32(len(queues)), PQueueCreateInfos: unsafe.Pointer(&queues[0]),
		EnabledExtensionCount: uint32(len(extensions)), PpEnabledExtensionNames: unsafe.Pointer(&extensions[0]),
	}
	var handle uintptr
	if err := vk.Call(in.CreateDevice, a.handle, uintptr(unsafe.Pointer(&info)), 0, uintptr(unsafe.Pointer(&handle))).Err(); err != nil {
		return nil, fmt.Errorf("%w: %s: vkCreateDevice: %w", ErrNoAdapter, a.info.Name, err)
	}
	calls, err := in.NewDevice(handle)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoAdapter, a.info.Name, err)
	}
	d := &Device{Device: calls, settings: set, adapter: a, pipelines: map[*Pipeline]struct{}{}}
	d.changed = sync.NewCond(&d.mu)
	d.scratch.init(d)
	vk.Call(d.GetDeviceQueue, handle, uintptr(a.family), 0, uintptr(unsafe.Pointer(&d.main.handle)))
	err = d.main.open(d, a.family)
	if second != nil {
		d.uploads = new(queue)
		vk.Call(d.GetDeviceQueue, handle, uintptr(second.family), uintptr(second.index), uintptr(unsafe.Pointer(&d.uploads.handle)))
		err = errors.Join(err, d.uploads.open(d, second.family))
	}
	if err != nil {
		d.destroy()
		return nil, fmt.Errorf("%w: %s: %w", ErrNoAdapter, a.info.Name, err)
	}
	return d, nil
}

// wanted is a VkBool32.
func wanted(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// Info describes the device's adapter.
func (d *Device) Info() gpurun.Info { return d.adapter.info }

// usable returns the reason why the device cannot be called. The caller holds the lock.
func (d *Device) usable() error {
	if d.closed {
		return gpurun.ErrClosed
	}
	return d.lost
}

// Usable returns the error that every call would return, or nil.
func (d *Device) Usable() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usable()
}

// check converts the result of a call to an error, and records a lost device. The caller holds the
// lock.
func (d *Device) check(call string, r vk.Result) error {
	switch {
	case r >= 0:
		return nil
	case r == vk.ErrorDeviceLost:
		d.lose(errors.New(call))
		return d.lost
	case r == vk.ErrorOutOfHostMemory || r == vk.ErrorOutOfDeviceMemory:
		return fmt.Errorf("%w: %s: %w", gpurun.ErrMemory, call, r)
	}
	return fmt.Errorf("gpu: %s: %w", call, r)
}

func (d *Device) lose(why error) {
	if d.lost == nil {
		d.lost = fmt.Errorf("%w: %w", gpurun.ErrLost, why)
		d.changed.Broadcast()
	}
}

// Lose makes the device behave as if its adapter had vanished.
func (d *Device) Lose(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lose(why)
}

// begin and end frame a call that uses the device or its memory without the lock. Close waits until
// there is none.
func (d *Device) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	d.using++
	return nil
}

func (d *Device) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.using--
	d.changed.Broadcast()
}

// bury frees an object when all that the first queue got is done, and an upload.
func (d *Device) bury(upload uint64, free func()) {
	d.graves = append(d.graves, grave{d.main.last, upload, free})
}

// reap frees what submitted work is done with.
func (d *Device) reap() {
	if len(d.graves) == 0 {
		return
	}
	done, moved := d.main.finished(), uint64(0)
	if d.uploads != nil {
		moved = d.uploads.finished()
	}
	left := d.graves[:0]
	for i, g := range d.graves {
		if g.value > done {
			left = append(left, d.graves[i:]...)
			break
		}
		if g.moved > moved {
			left = append(left, g)
			continue
		}
		g.free()
	}
	clear(d.graves[len(left):])
	d.graves = left
}

// Close waits for submitted work and for running calls, and releases everything made on the device;
// later calls return gpurun.ErrClosed. A lost device is left to the process: its driver cannot be
// trusted with that.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return gpurun.ErrClosed
	}
	d.closed = true // nothing new is submitted from here on
	lost := d.lost
	d.mu.Unlock()
	if lost != nil || d.waitAll() != nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.using > 0 && d.lost == nil {
		d.changed.Wait()
	}
	if d.lost != nil || vk.Call(d.DeviceWaitIdle, d.Handle) != vk.Success {
		return nil
	}
	d.destroy()
	return nil
}

// destroy frees the native device and everything made on it.
func (d *Device) destroy() {
	for _, g := range d.graves {
		g.free()
	}
	for p := range d.pipelines {
		p.destroy()
	}
	for _, s := range d.slabs {
		s.destroy()
	}
	d.fences.destroy(d)
	d.graves, d.pipelines, d.slabs, d.staging = nil, nil, nil, [2][]*staging{}
	d.main.destroy()
	if d.uploads != nil {
		d.uploads.destroy()
	}
	vk.Call(d.DestroyDevice, d.Handle, 0)
}
