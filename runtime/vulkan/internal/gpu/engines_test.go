//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// engines lets a device of one queue behave like a card that copies beside its dispatches. It takes
// the device's calls of the driver: submissions of either queue wait in a list, and one goroutine for
// each list passes them to the driver's only queue. A test can hold a list, and see what each did. A
// benchmark gives dispatches and bytes a time that they take.
type engines struct {
	dev                           *Device
	submit, begin, copy, dispatch uintptr // the driver's functions
	idle                          uintptr
	perDispatch, perByte          time.Duration

	mu      sync.Mutex // guards the driver's queue and all below
	changed *sync.Cond
	work    map[uintptr]amount // by command buffer
	lists   [2][]*submission
	taken   [2]int        // submissions that a goroutine has taken
	done    [2]int        // submissions that the driver got
	bytes   [2]int64      // that they moved between the host and the device
	busy    [2][]interval // when they ran
	held    [2]bool       // the next submission waits
	stopped bool
}

// The lists, and the handle of the second queue, which the driver does not have.
const (
	computes = iota
	uploads

	secondHandle = 0x5ec0d
)

// amount is the work of a command buffer.
type amount struct {
	dispatches int
	bytes      int64
}

type interval struct{ from, to time.Time }

// submission is a copy of what vkQueueSubmit got.
type submission struct {
	info           vk.SubmitInfo
	timelines      vk.TimelineSemaphoreSubmitInfo
	signal, wait   [1]uint64
	value, awaited [1]uint64
	stage          [1]uint32
	cmds           []uintptr
	fence          uint64
	work           amount
}

// newEngines makes engines of a device that was opened just now. An adapter that has a second queue of
// its own cannot be held: its engines are nil.
func newEngines(t testing.TB, d *Device) *engines {
	t.Helper()
	if d.uploads != nil {
		return nil
	}
	e := &engines{dev: d, submit: d.QueueSubmit, begin: d.BeginCommandBuffer, copy: d.CmdCopyBuffer, dispatch: d.CmdDispatch, idle: d.DeviceWaitIdle, work: map[uintptr]amount{}}
	e.changed = sync.NewCond(&e.mu)
	d.uploads = &queue{handle: secondHandle}
	if err := d.uploads.open(d, d.adapter.family); err != nil {
		t.Fatal(err)
	}
	d.QueueSubmit = vk.Callback(e.submitted)
	d.BeginCommandBuffer = vk.Callback(func(cmd uintptr, info unsafe.Pointer) uintptr {
		e.mu.Lock()
		delete(e.work, cmd)
		e.mu.Unlock()
		return succeeded(vk.Call(e.begin, cmd, uintptr(info)))
	})
	d.CmdCopyBuffer = vk.Callback(func(cmd, src, dst, n uintptr, regions unsafe.Pointer) uintptr {
		if e.crosses(src) || e.crosses(dst) {
			e.add(cmd, amount{bytes: int64((*vk.BufferCopy)(regions).Size)})
		}
		vk.Call(e.copy, cmd, src, dst, n, uintptr(regions))
		return 0
	})
	d.CmdDispatch = vk.Callback(func(cmd, x, y, z uintptr) uintptr {
		e.add(cmd, amount{dispatches: 1})
		vk.Call(e.dispatch, cmd, x, y, z)
		return 0
	})
	d.DeviceWaitIdle = vk.Callback(func(device uintptr) uintptr {
		e.mu.Lock()
		defer e.mu.Unlock()
		return succeeded(vk.Call(e.idle, device))
	})
	for list := range e.lists {
		go e.run(list)
	}
	return e
}

// stop ends the goroutines when the lists are empty; nothing is held any more.
func (e *engines) stop() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held, e.stopped = [2]bool{}, true
	e.changed.Broadcast()
}

// crosses reports whether a buffer is memory of the host, to which copies take time. The caller of
// the driver holds the device's lock.
func (e *engines) crosses(handle uintptr) bool {
	return slices.ContainsFunc(e.dev.slabs, func(s *slab) bool { return s.handle == uint64(handle) && s.kind != onDevice })
}

func (e *engines) add(cmd uintptr, x amount) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.work[cmd]
	e.work[cmd] = amount{w.dispatches + x.dispatches, w.bytes + x.bytes}
}

// submitted is vkQueueSubmit for one submission.
func (e *engines) submitted(queue, _ uintptr, infos unsafe.Pointer, fence uint64) uintptr {
	s := &submission{info: *(*vk.SubmitInfo)(infos), fence: fence}
	s.timelines = *(*vk.TimelineSemaphoreSubmitInfo)(s.info.PNext)
	s.signal[0], s.value[0] = *(*uint64)(s.info.PSignalSemaphores), *(*uint64)(s.timelines.PSignalSemaphoreValues)
	if s.info.WaitSemaphoreCount > 0 {
		s.wait[0], s.awaited[0] = *(*uint64)(s.info.PWaitSemaphores), *(*uint64)(s.timelines.PWaitSemaphoreValues)
		s.stage[0] = *(*uint32)(s.info.PWaitDstStageMask)
	}
	s.cmds = slices.Clone(unsafe.Slice((*uintptr)(s.info.PCommandBuffers), s.info.CommandBufferCount))
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, cmd := range s.cmds {
		s.work.dispatches += e.work[cmd].dispatches
		s.work.bytes += e.work[cmd].bytes
	}
	list := computes
	if queue == secondHandle {
		list = uploads
	}
	e.lists[list] = append(e.lists[list], s)
	e.changed.Broadcast()
	return succeeded(vk.Success)
}

// run passes the submissions of a list to the driver, one after another.
func (e *engines) run(list int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		for len(e.lists[list]) == 0 {
			if e.stopped {
				return
			}
			e.changed.Wait()
		}
		s := e.lists[list][0]
		e.lists[list] = e.lists[list][1:]
		e.taken[list]++
		e.changed.Broadcast()
		for e.held[list] || s.info.WaitSemaphoreCount > 0 && e.done[uploads] < int(s.awaited[0]) {
			e.changed.Wait()
		}
		if t := time.Duration(s.work.dispatches)*e.perDispatch + time.Duration(s.work.bytes)*e.perByte; t > 0 {
			from := time.Now()
			e.mu.Unlock()
			time.Sleep(t)
			e.mu.Lock()
			e.busy[list] = append(e.busy[list], interval{from, time.Now()})
		}
		e.pass(s)
		e.done[list]++
		e.bytes[list] += s.work.bytes
		e.changed.Broadcast()
	}
}

// pass calls the driver's vkQueueSubmit.
func (e *engines) pass(s *submission) {
	s.timelines.PSignalSemaphoreValues, s.timelines.PWaitSemaphoreValues = unsafe.Pointer(&s.value), unsafe.Pointer(&s.awaited)
	s.info.PNext, s.info.PSignalSemaphores, s.info.PWaitSemaphores = unsafe.Pointer(&s.timelines), unsafe.Pointer(&s.signal), unsafe.Pointer(&s.wait)
	s.info.PWaitDstStageMask, s.info.PCommandBuffers = unsafe.Pointer(&s.stage), unsafe.Pointer(&s.cmds[0])
	succeeded(vk.Call(e.submit, e.dev.main.handle, 1, uintptr(unsafe.Pointer(&s.info)), uintptr(s.fence)))
}

// succeeded is the result of a call that succeeded. A test would wait for any other for ever.
func succeeded(r vk.Result) uintptr {
	if r != vk.Success {
		panic(r)
	}
	return 0
}

// hold makes the next submission of a list wait, until hold is called with false.
func (e *engines) hold(list int, on bool) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held[list] = on
	e.changed.Broadcast()
}

// await waits until a condition holds, which it looks at with the lock.
func (e *engines) await(cond func() bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !cond() {
		e.changed.Wait()
	}
}

// pending is the number of submissions of a list that the driver has not got.
func (e *engines) pending(list int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.lists[list]) + e.taken[list] - e.done[list]
}

// counts is the number of submissions of a list that the driver got.
func (e *engines) counts(list int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.done[list]
}

// uploaded is the number of bytes that the queue of uploads has moved.
func (e *engines) uploaded() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.bytes[uploads]
}
