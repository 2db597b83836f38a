//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package gpu

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"sync"

	"github.com/rajveermalviya/go-webgpu/wgpu"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// ErrNoAdapter says that the machine has no GPU.
var ErrNoAdapter = errors.New("no GPU adapter")

// backend is the native interface of each system. If the library chooses, it can abort when a
// Vulkan loader finds no driver.
var backend = map[string]wgpu.InstanceBackend{"darwin": wgpu.InstanceBackend_Metal}

// entering is held while an instance is made, because quiet changes the environment.
var entering sync.Mutex

// first is an instance that is never released, which keeps drivers loaded. A driver that is loaded
// again for each device stops working after some hundred loads (NVIDIA's, which is then not found).
var first *wgpu.Instance

// adapters makes an instance and lists its adapters, best first: discrete GPUs, then integrated
// ones, then software. The caller releases all of it.
//
// The native library destroys a released device only together with its instance, and drivers limit
// the number of devices (NVIDIA's to 64). Every device therefore has its own instance.
func adapters() (in *wgpu.Instance, list []*wgpu.Adapter, err error) {
	entering.Lock()
	defer entering.Unlock()
	defer func() {
		if r := recover(); r != nil { // the binding panics when there is no instance
			in, list, err = nil, nil, fmt.Errorf("%w: %v", ErrNoAdapter, r)
		}
	}()
	kind, ok := backend[goruntime.GOOS]
	if !ok {
		kind = wgpu.InstanceBackend_Vulkan
	}
	defer quiet()()
	wgpu.SetLogLevel(wgpu.LogLevel_Off)
	if first == nil {
		first = wgpu.CreateInstance(&wgpu.InstanceDescriptor{Backends: kind})
	}
	in = wgpu.CreateInstance(&wgpu.InstanceDescriptor{Backends: kind})
	all := in.EnumerateAdapters(&wgpu.InstanceEnumerateAdapterOptons{Backends: kind})
	for _, want := range []wgpu.AdapterType{
		wgpu.AdapterType_DiscreteGPU, wgpu.AdapterType_IntegratedGPU, wgpu.AdapterType_Unknown, wgpu.AdapterType_CPU,
	} {
		for _, a := range all {
			if a.GetProperties().AdapterType == want {
				list = append(list, a)
			}
		}
	}
	if len(list) == 0 {
		in.Release()
		return nil, nil, fmt.Errorf("%w: no Vulkan driver was found", ErrNoAdapter)
	}
	return in, list, nil
}

// quiet disables Mesa's device-selection layer while adapters are listed: it writes to standard
// error if the session has no XDG_RUNTIME_DIR, and this package chooses the device itself. It
// returns a function that restores the environment.
func quiet() func() {
	const off = "NODEVICE_SELECT"
	_, set := os.LookupEnv(off)
	if set || os.Getenv("XDG_RUNTIME_DIR") != "" {
		return func() {}
	}
	os.Setenv(off, "1")
	return func() { os.Unsetenv(off) }
}

// Adapters describes the adapters of this machine, best first.
func Adapters() ([]gpurun.Info, error) {
	in, list, err := adapters()
	if err != nil {
		return nil, err
	}
	defer in.Release()
	infos := make([]gpurun.Info, len(list))
	for i, a := range list {
		infos[i] = describe(a)
		a.Release()
	}
	return infos, nil
}

func describe(a *wgpu.Adapter) gpurun.Info {
	p, l := a.GetProperties(), a.GetLimits().Limits
	return gpurun.Info{
		Name:   p.Name,
		Driver: p.DriverDescription,
		Kind:   p.AdapterType.String(),
		Vendor: p.VendorId,
		Model:  p.DeviceId,
		Limits: limitsOf(l),
	}
}

func limitsOf(l wgpu.Limits) gpurun.Limits {
	return gpurun.Limits{
		Binding:          int64(min(l.MaxStorageBufferBindingSize, 1<<31-1)) &^ 15,
		Buffer:           int64(clampSize(l.MaxBufferSize)) &^ 15,
		Uniform:          int64(min(l.MaxUniformBufferBindingSize, 1<<16)) &^ 15,
		Align:            int64(max(l.MinStorageBufferOffsetAlignment, l.MinUniformBufferOffsetAlignment, 16)),
		StorageBuffers:   int(l.MaxStorageBuffersPerShaderStage),
		Groups:           int64(l.MaxComputeWorkgroupsPerDimension),
		GroupSize:        int(min(l.MaxComputeInvocationsPerWorkgroup, l.MaxComputeWorkgroupSizeX)),
		WorkgroupStorage: int64(l.MaxComputeWorkgroupStorageSize),
	}
}

// clampSize limits a size to 32 bits: the native library truncates larger sizes, which would turn
// 1<<40 into a limit of zero.
func clampSize(n uint64) uint64 { return min(n, 1<<32-4) }

// Device is an open adapter with its queue.
type Device struct {
	info gpurun.Info

	mu        sync.Mutex // guards every native call
	in        *wgpu.Instance
	dev       *wgpu.Device
	queue     *wgpu.Queue
	faults    watcher
	lost      error // set once, then returned by every call
	closed    bool
	queued    int          // submissions since the queue was last seen empty
	transfers int          // running ones
	staging   [2][]*Buffer // pooled, by direction

	// For release by Close: the native device lives until all of these are released.
	buffers   map[*Buffer]struct{}
	pipelines map[*Pipeline]struct{}
}

// Open opens the best adapter whose name or driver contains match (ignoring case; "" matches all).
func Open(match string) (*Device, error) {
	in, list, err := adapters()
	if err != nil {
		return nil, err
	}
	keep := false
	defer func() {
		if !keep {
			in.Release()
		}
	}()
	var names []string
	var pick *wgpu.Adapter
	for _, a := range list {
		p := a.GetProperties()
		names = append(names, p.Name)
		if pick == nil && strings.Contains(strings.ToLower(p.Name+" "+p.DriverDescription), strings.ToLower(match)) {
			pick = a
			continue
		}
		a.Release()
	}
	if pick == nil {
		return nil, fmt.Errorf("%w is named %q: there are %s", ErrNoAdapter, match, strings.Join(names, ", "))
	}
	defer pick.Release()
	// The defaults would be eight storage buffers and 128 MiB; the adapter's own limits are always
	// granted.
	l := pick.GetLimits().Limits
	l.MaxBufferSize = clampSize(l.MaxBufferSize)
	l.MaxStorageBufferBindingSize = clampSize(l.MaxStorageBufferBindingSize)
	l.MaxUniformBufferBindingSize = clampSize(l.MaxUniformBufferBindingSize)
	dev, err := pick.RequestDevice(&wgpu.DeviceDescriptor{RequiredLimits: &wgpu.RequiredLimits{Limits: l}})
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %v", ErrNoAdapter, pick.GetProperties().Name, err)
	}
	keep = true
	return &Device{
		info:    describe(pick),
		in:      in,
		dev:     dev,
		queue:   dev.GetQueue(),
		faults:  watch(dev),
		buffers: map[*Buffer]struct{}{}, pipelines: map[*Pipeline]struct{}{},
	}, nil
}

// Info describes the device's adapter.
func (d *Device) Info() gpurun.Info { return d.info }

// usable returns the reason why the device cannot be called. The caller holds the lock.
func (d *Device) usable() error {
	if d.closed {
		return gpurun.ErrClosed
	}
	return d.lost
}

// check converts the result of a native call to this package's errors and records a lost device.
// The caller holds the lock.
func (d *Device) check(err error) error {
	kind, text := d.faults.take()
	switch {
	case err == nil && text == "":
		return nil
	case err == nil:
		err = errors.New(text)
	}
	err = classify(kind, err)
	if errors.Is(err, gpurun.ErrLost) {
		d.lost = err
	}
	return err
}

// classify distinguishes a lost device and a lack of memory from other errors. It uses the kind of
// an error outside of scopes, and the text otherwise, since the binding's scopes drop the kind and
// call every error a validation error.
func classify(kind wgpu.ErrorType, err error) error {
	low := strings.ToLower(err.Error())
	switch {
	case kind == wgpu.ErrorType_DeviceLost, strings.Contains(low, "lost"):
		return fmt.Errorf("%w: %v", gpurun.ErrLost, err)
	case kind == wgpu.ErrorType_OutOfMemory, strings.Contains(low, "not enough memory"), strings.Contains(low, "out of memory"):
		return fmt.Errorf("%w: %v", gpurun.ErrMemory, err)
	}
	return err
}

// Lose makes the device behave as if its adapter had vanished. Tests use it for the paths of
// gpurun.ErrLost.
func (d *Device) Lose(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == nil {
		d.lost = fmt.Errorf("%w: %v", gpurun.ErrLost, why)
	}
}

// Usable returns the error that every call would return, or nil.
func (d *Device) Usable() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usable()
}
