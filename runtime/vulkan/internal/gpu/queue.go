//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"errors"
	"unsafe"

	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// queue is a queue of the adapter. Its submission n signals n on its timeline semaphore. The device's
// lock guards it.
type queue struct {
	dev      *Device
	handle   uintptr
	pool     uint64     // of commands
	timeline uint64     // the semaphore
	last     uint64     // the number of the last submission
	done     uint64     // the last submission that was seen to be done
	recorded []recorded // command buffers, in the order of their submissions
}

// recorded is a command buffer, which may be recorded again when a submission is done.
type recorded struct {
	handle uintptr
	value  uint64
}

// open makes the semaphore and the pool of command buffers of a queue of a family.
func (q *queue) open(d *Device, family uint32) error {
	q.dev = d
	pool := vk.CommandPoolCreateInfo{SType: vk.StructureTypeCommandPoolCreateInfo, Flags: vk.CommandPoolCreateResetCommandBufferBit, QueueFamilyIndex: family}
	kind := vk.SemaphoreTypeCreateInfo{SType: vk.StructureTypeSemaphoreTypeCreateInfo, SemaphoreType: vk.SemaphoreTypeTimeline}
	semaphore := vk.SemaphoreCreateInfo{SType: vk.StructureTypeSemaphoreCreateInfo, PNext: unsafe.Pointer(&kind)}
	return errors.Join(
		vk.Call(d.CreateCommandPool, d.Handle, uintptr(unsafe.Pointer(&pool)), 0, uintptr(unsafe.Pointer(&q.pool))).Err(),
		vk.Call(d.CreateSemaphore, d.Handle, uintptr(unsafe.Pointer(&semaphore)), 0, uintptr(unsafe.Pointer(&q.timeline))).Err())
}

func (q *queue) destroy() {
	d := q.dev
	vk.Call(d.DestroySemaphore, d.Handle, uintptr(q.timeline), 0)
	vk.Call(d.DestroyCommandPool, d.Handle, uintptr(q.pool), 0)
}

// command returns a command buffer that no submission uses.
func (q *queue) command() (uintptr, error) {
	if len(q.recorded) > 0 && q.recorded[0].value <= q.finished() {
		c := q.recorded[0].handle
		q.recorded = append(q.recorded[:0], q.recorded[1:]...)
		return c, nil
	}
	d := q.dev
	info := vk.CommandBufferAllocateInfo{SType: vk.StructureTypeCommandBufferAllocateInfo, CommandPool: q.pool, CommandBufferCount: 1}
	var c uintptr
	r := vk.Call(d.AllocateCommandBuffers, d.Handle, uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&c)))
	return c, d.check("vkAllocateCommandBuffers", r)
}

// finished is the number of the last submission that is done. The caller holds the lock.
func (q *queue) finished() uint64 {
	d := q.dev
	if d.fenced && d.lost == nil {
		d.fences.finished(d)
	} else if q.done < q.last && d.lost == nil {
		s := &d.scratch
		r := vk.Call(d.GetSemaphoreCounterValue, d.Handle, uintptr(q.timeline), uintptr(unsafe.Pointer(&s.counter)))
		if d.check("vkGetSemaphoreCounterValue", r) == nil {
			q.done = s.counter
		}
	}
	return q.done
}

// enqueue makes command buffers the next submission, which begins after a submission of the queue of
// uploads, unless that is 0. The slice is not part of the caller's stack.
func (q *queue) enqueue(cmds []uintptr, after uint64) error {
	d := q.dev
	s := &d.scratch
	s.value, s.signal = q.last+1, q.timeline
	s.submit.CommandBufferCount, s.submit.PCommandBuffers = uint32(len(cmds)), unsafe.Pointer(&cmds[0])
	s.submit.WaitSemaphoreCount, s.timelines.WaitSemaphoreValueCount = 0, 0
	if after > 0 {
		s.after, s.awaited = after, d.uploads.timeline
		s.submit.WaitSemaphoreCount, s.timelines.WaitSemaphoreValueCount = 1, 1
	}
	fence, err := d.fences.take(d)
	if err != nil {
		return err
	}
	err = d.check("vkQueueSubmit", vk.Call(d.QueueSubmit, q.handle, 1, uintptr(unsafe.Pointer(&s.submit)), uintptr(fence)))
	d.fences.sent(d, fence, err)
	if err != nil {
		return err
	}
	q.last++
	return nil
}
