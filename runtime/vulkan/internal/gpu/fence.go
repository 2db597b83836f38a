//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"errors"
	"unsafe"

	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// fences are what submissions signal with the setting fence, for drivers whose timeline semaphores are slow.
// The device's lock guards them.
type fences struct {
	pending []*fence // in the order of their submissions
	spare   []uint64
}

// fence is signalled when a submission is done. It is used again when nobody waits for it any more.
type fence struct {
	handle  uint64
	value   uint64 // the number of its submission
	waiting int
	done    bool
}

// take returns a fence that is not signalled, or 0 if submissions signal the semaphore.
func (f *fences) take(d *Device) (handle uint64, err error) {
	if !d.fenced {
		return 0, nil
	}
	if n := len(f.spare); n > 0 {
		handle = f.spare[n-1]
		f.spare = f.spare[:n-1]
		return handle, nil
	}
	info := vk.FenceCreateInfo{SType: vk.StructureTypeFenceCreateInfo}
	r := vk.Call(d.CreateFence, d.Handle, uintptr(unsafe.Pointer(&info)), 0, uintptr(unsafe.Pointer(&handle)))
	return handle, d.check("vkCreateFence", r)
}

// sent notes the fence of the next submission; if that failed, the fence is spare.
func (f *fences) sent(d *Device, handle uint64, failed error) {
	switch {
	case handle == 0:
	case failed != nil:
		f.spare = append(f.spare, handle)
	default:
		f.pending = append(f.pending, &fence{handle: handle, value: d.main.last + 1})
	}
}

// finished sees which submissions are done.
func (f *fences) finished(d *Device) {
	for len(f.pending) > 0 {
		x := f.pending[0]
		r := vk.Call(d.GetFenceStatus, d.Handle, uintptr(x.handle))
		if d.check("vkGetFenceStatus", r) != nil || r != vk.Success {
			return
		}
		d.main.done, x.done = x.value, true
		f.pending = append(f.pending[:0], f.pending[1:]...)
		f.reset(d, x)
	}
}

// reset makes a fence spare, unless somebody still waits for it.
func (f *fences) reset(d *Device, x *fence) {
	if !x.done || x.waiting > 0 {
		return
	}
	if d.check("vkResetFences", vk.Call(d.ResetFences, d.Handle, 1, uintptr(unsafe.Pointer(&x.handle)))) == nil {
		f.spare = append(f.spare, x.handle)
	}
}

// wait blocks until a submission is done.
func (f *fences) wait(d *Device, value uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if d.lost != nil || value <= d.main.finished() {
			return d.lost
		}
		var x *fence
		for _, x = range f.pending {
			if x.value >= value {
				break
			}
		}
		if x == nil {
			return errors.New("gpu: a submission that was not made")
		}
		x.waiting++
		d.mu.Unlock()
		r := vk.Call(d.WaitForFences, d.Handle, 1, uintptr(unsafe.Pointer(&x.handle)), 1, uintptr(stretch))
		d.mu.Lock()
		x.waiting--
		f.reset(d, x)
		if err := d.check("vkWaitForFences", r); err != nil {
			return err
		}
	}
}

func (f *fences) destroy(d *Device) {
	for _, x := range f.pending {
		f.spare = append(f.spare, x.handle)
	}
	for _, handle := range f.spare {
		vk.Call(d.DestroyFence, d.Handle, uintptr(handle), 0)
	}
	f.pending, f.spare = nil, nil
}
