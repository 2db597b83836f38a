//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	goruntime "runtime"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// A wait looks at the semaphore for spin before it lets the driver wait, which costs more than a
// small dispatch takes: to sleep and to be woken takes 40 µs, even by an adapter that computes on the
// processor. Such an adapter gets the processor sooner, spinSoftware later. Other
// goroutines may run every yield, and not after each look: that wakes another thread of Go each time,
// which takes the processor from the threads of such an adapter. The driver waits for stretch at a
// time, to notice a lost device.
const (
	spin         = 200 * time.Microsecond
	spinSoftware = 100 * time.Microsecond
	stretch      = 100 * time.Millisecond
	yield        = 25 * time.Microsecond
)

// look reports whether a submission is done, or the device is lost.
func (q *queue) look(value uint64) (done bool, err error) {
	d := q.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost != nil {
		return false, d.lost
	}
	return value <= q.finished(), d.lost
}

// waitFor blocks until a submission is done, also while the device is being closed.
func (q *queue) waitFor(value uint64) error {
	d := q.dev
	most := spin
	if d.adapter.info.Kind == "CPU" {
		most = spinSoftware
	}
	for start, yielded := time.Now(), time.Duration(0); ; {
		if done, err := q.look(value); done || err != nil {
			return err
		}
		passed := time.Since(start)
		if passed > most {
			break
		}
		if passed-yielded > yield {
			goruntime.Gosched()
			yielded = passed
		}
	}
	if d.fenced {
		return d.fences.wait(d, value)
	}
	info := vk.SemaphoreWaitInfo{
		SType: vk.StructureTypeSemaphoreWaitInfo, SemaphoreCount: 1, PSemaphores: unsafe.Pointer(&q.timeline), PValues: unsafe.Pointer(&value),
	}
	for {
		r := vk.Call(d.WaitSemaphores, d.Handle, uintptr(unsafe.Pointer(&info)), uintptr(stretch))
		d.mu.Lock()
		err := d.check("vkWaitSemaphores", r)
		if err == nil {
			err = d.lost
		}
		d.mu.Unlock()
		if err != nil || r == vk.Success {
			return err
		}
	}
}

// Wait blocks until all submitted work is done. It does not wait for uploads that no submitted work
// uses, except to free memory.
func (d *Device) Wait() error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.end()
	d.mu.Lock()
	last, moved := d.main.last, uint64(0)
	for _, g := range d.graves {
		moved = max(moved, g.moved)
	}
	d.mu.Unlock()
	if err := d.waitBoth(last, moved); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	d.idle = max(d.idle, last)
	d.reap()
	return nil
}

// waitAll blocks until all that both queues got is done.
func (d *Device) waitAll() error {
	d.mu.Lock()
	last, moved := d.main.last, uint64(0)
	if d.uploads != nil {
		moved = d.uploads.last
	}
	d.mu.Unlock()
	return d.waitBoth(last, moved)
}

// waitBoth blocks until the queues have done submissions.
func (d *Device) waitBoth(last, moved uint64) error {
	if moved > 0 {
		if err := d.uploads.waitFor(moved); err != nil {
			return err
		}
	}
	return d.main.waitFor(last)
}
