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
// processor. Such an adapter gets the processor sooner, spinSoftware later. The driver waits for
// stretch at a time, to notice a lost device.
const (
	spin         = 200 * time.Microsecond
	spinSoftware = 100 * time.Microsecond
	stretch      = 100 * time.Millisecond
)

// finished is the number of the last submission that is done. The caller holds the lock.
func (d *Device) finished() uint64 {
	if d.fenced && d.lost == nil {
		d.fences.finished(d)
	} else if d.done < d.last && d.lost == nil {
		s := &d.scratch
		r := vk.Call(d.GetSemaphoreCounterValue, d.Handle, uintptr(d.timeline), uintptr(unsafe.Pointer(&s.counter)))
		if d.check("vkGetSemaphoreCounterValue", r) == nil {
			d.done = s.counter
		}
	}
	return d.done
}

// look reports whether a submission is done, or the device is lost.
func (d *Device) look(value uint64) (done bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost != nil {
		return false, d.lost
	}
	return value <= d.finished(), d.lost
}

// waitFor blocks until a submission is done, also while the device is being closed.
func (d *Device) waitFor(value uint64) error {
	most := spin
	if d.adapter.info.Kind == "CPU" {
		most = spinSoftware
	}
	for start := time.Now(); ; goruntime.Gosched() {
		if done, err := d.look(value); done || err != nil {
			return err
		}
		if time.Since(start) > most {
			break
		}
	}
	if d.fenced {
		return d.fences.wait(d, value)
	}
	info := vk.SemaphoreWaitInfo{
		SType: vk.StructureTypeSemaphoreWaitInfo, SemaphoreCount: 1, PSemaphores: unsafe.Pointer(&d.timeline), PValues: unsafe.Pointer(&value),
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

// Wait blocks until all submitted work is done.
func (d *Device) Wait() error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.end()
	d.mu.Lock()
	last := d.last
	d.mu.Unlock()
	if err := d.waitFor(last); err != nil {
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
