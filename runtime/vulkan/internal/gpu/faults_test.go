//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// result is a function of the driver that returns a result and does nothing.
func result(r vk.Result) uintptr {
	return vk.Callback(func(_, _, _, _, _ uintptr) uintptr {
		return *(*uintptr)(unsafe.Pointer(&[2]vk.Result{r, 0}))
	})
}

// TestDriverLoses: a driver that says in some call that the device is lost gives ErrLost there and in
// every later call, and is not called any more, also by Close.
func TestDriverLoses(t *testing.T) {
	t.Setenv(settingsIn, "apart")
	for name, function := range map[string]func(*Device) *uintptr{
		"submission":   func(d *Device) *uintptr { return &d.QueueSubmit },
		"counter":      func(d *Device) *uintptr { return &d.GetSemaphoreCounterValue },
		"command":      func(d *Device) *uintptr { return &d.BeginCommandBuffer },
		"end":          func(d *Device) *uintptr { return &d.EndCommandBuffer },
		"wait":         func(d *Device) *uintptr { return &d.WaitSemaphores },
		"allocation":   func(d *Device) *uintptr { return &d.AllocateMemory },
		"pipelines":    func(d *Device) *uintptr { return &d.CreateComputePipelines },
		"command pool": func(d *Device) *uintptr { return &d.AllocateCommandBuffers },
	} {
		d := open(t)
		x := newDoubling(t, d)
		b := buffer(t, d, 4096)
		put(t, d, b, 0, 1024, 3)
		get(t, d, b, 0, 1024, 3)
		if name == "wait" { // a wait first looks at the counter, which is to say that nothing is done
			d.GetSemaphoreCounterValue = vk.Callback(func(_, _ uintptr, value unsafe.Pointer) uintptr {
				*(*uint64)(value) = 0
				return 0
			})
		}
		if name == "command pool" {
			d.main.recorded = nil // no buffer of commands is left
		}
		*function(d) = result(vk.ErrorDeviceLost)
		list, words := x.of(b, 0, 1024)
		calls := []func() error{
			func() error { _, err := d.NewPipeline(double, doubleBindings); return err },
			func() error { return d.Submit([]gpurun.Dispatch{list}, x.words, words) },
			func() error { return d.Write(b, 0, 4096, func([]byte, int64) {}) },
			func() error { return d.Read(b, 0, 4096, func([]byte, int64) {}) },
			func() error { _, err := d.NewBuffer(slabSize, gpurun.Storage); return err },
			d.Wait,
		}
		first := -1
		for i, call := range calls {
			err := call()
			switch {
			case first < 0 && errors.Is(err, gpurun.ErrLost):
				first = i
			case first >= 0 && !errors.Is(err, gpurun.ErrLost):
				t.Errorf("%s: call %d of a lost device: %v", name, i, err)
			case first < 0 && err != nil:
				t.Errorf("%s: call %d: %v", name, i, err)
			}
		}
		if first < 0 {
			t.Errorf("%s: no call lost the device", name)
		}
		d.DestroyDevice, d.DeviceWaitIdle, d.QueueSubmit = 0, 0, 0 // a call of them would crash
		if err := d.Close(); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
	}
}

// TestNoMemory: where the driver has no memory, calls fail with ErrMemory, and succeed when there is
// some again. A buffer is made if there is room for it, but for no slab. An upload that has no memory
// to wait in is copied in order.
func TestNoMemory(t *testing.T) {
	d, e := openEngines(t)
	if e == nil {
		t.Skip("the adapter has a second queue, which cannot be held")
	}
	x := newDoubling(t, d)
	b := buffer(t, d, 1<<20)
	put(t, d, b, 0, 1<<18, 4)
	get(t, d, b, 0, 1<<18, 4) // makes the staging memory
	real := d.AllocateMemory
	limit, refused := uint64(0), 0
	d.AllocateMemory = vk.Callback(func(device uintptr, info, allocator, memory unsafe.Pointer) uintptr {
		if (*vk.MemoryAllocateInfo)(info).AllocationSize > limit {
			refused++
			return *(*uintptr)(unsafe.Pointer(&[2]vk.Result{vk.ErrorOutOfDeviceMemory, 0}))
		}
		return succeeded(vk.Call(real, device, uintptr(info), uintptr(allocator), uintptr(memory)))
	})
	if _, err := d.NewBuffer(slabSize, gpurun.Storage); !errors.Is(err, gpurun.ErrMemory) {
		t.Errorf("a large buffer: %v", err)
	}
	limit = 2 << 20
	full := buffer(t, d, slabSize-2<<20) // leaves no room in the slab
	small := buffer(t, d, 1<<20)
	if own(small).slab.kind != onDevice || own(small).slab == own(full).slab || refused < 2 {
		t.Errorf("a buffer beside a full slab: %d allocations were refused", refused)
	}
	limit = 0
	e.hold(computes, true)
	x.run(b, 0, 1<<18)
	e.await(func() bool { return e.taken[computes] > e.done[computes] })
	put(t, d, b, 0, 1<<18, 5) // the buffer is in use, and there is no memory for an upload
	if d.arrivals.bytes != 0 || e.pending(computes) < 2 {
		t.Errorf("%d bytes are in other memory, %d submissions are held", d.arrivals.bytes, e.pending(computes))
	}
	e.hold(computes, false)
	get(t, d, b, 0, 1<<18, 5)
	limit = 1 << 40
	put(t, d, buffer(t, d, slabSize), 0, 1<<18, 6)
}

// TestTwoDevices: two devices of one adapter compute side by side, and refuse each other's objects. One
// goes on when the other is closed.
func TestTwoDevices(t *testing.T) {
	devices := [2]*Device{open(t), open(t)}
	var both [2]*doubling
	var buffers [2]gpurun.Buffer
	for i, d := range devices {
		both[i], buffers[i] = newDoubling(t, d), buffer(t, d, 4096)
		put(t, d, buffers[i], 0, 1024, uint32(i))
	}
	var wg sync.WaitGroup
	for i := range devices {
		wg.Go(func() {
			for range 20 {
				both[i].run(buffers[i], 0, 1024)
			}
		})
	}
	wg.Wait()
	for i, d := range devices {
		get(t, d, buffers[i], 0, 1024, uint32(i)<<20+1<<20-1)
	}
	for name, change := range map[string]func(*gpurun.Dispatch){
		"buffer": func(x *gpurun.Dispatch) { x.Bind[0].Buf = buffers[1] }, "pipeline": func(x *gpurun.Dispatch) { x.Pipe = both[1].pipe },
	} {
		list, words := both[0].of(buffers[0], 0, 1024)
		change(&list)
		if err := devices[0].Submit([]gpurun.Dispatch{list}, both[0].words, words); err == nil {
			t.Errorf("a %s of the other device was accepted", name)
		}
	}
	if err := devices[0].Read(buffers[1], 0, 4, func([]byte, int64) {}); err == nil {
		t.Error("a read of the other device's buffer was accepted")
	}
	if err := devices[0].Close(); err != nil {
		t.Fatal(err)
	}
	both[1].run(buffers[1], 0, 1024)
	get(t, devices[1], buffers[1], 0, 1024, (1<<21-1)*2+1)
}

// TestForks: a device works on while the process starts others, which end without touching it.
func TestForks(t *testing.T) {
	if os.Getenv("MILLRACE_TEST_FORKED") != "" {
		return
	}
	d := open(t)
	x := newDoubling(t, d)
	b := buffer(t, d, 4096)
	put(t, d, b, 0, 1024, 0)
	var ended atomic.Bool
	done := make(chan error, 1)
	go func() {
		defer ended.Store(true)
		var err error
		for range 4 {
			cmd := exec.Command(os.Args[0], "-test.run=^TestForks$")
			cmd.Env = append(os.Environ(), "MILLRACE_TEST_FORKED=1")
			err = errors.Join(err, cmd.Run())
		}
		done <- err
	}()
	want := uint32(0)
	for n := 0; n < 10 || !ended.Load(); n++ {
		x.run(b, 0, 1024)
		want = 2*want + 1
		get(t, d, b, 0, 1024, want)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
