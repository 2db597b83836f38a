//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"cmp"
	"errors"
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// An adapter with memory of its own may have a second queue, whose copies run while the first queue
// computes. Larger writes go through it. They never wait for dispatches: if submitted dispatches may
// still use the buffer, the bytes go to other memory of the device first, and the next submission that
// uses the buffer copies them from there. A submission waits for the uploads to the buffers that it
// uses, and for no others.

// uploadFrom is the smallest write that goes through the queue of uploads. Smaller ones take less
// time than one more submission. maxLandings bounds the bytes that wait in other memory.
const (
	uploadFrom  = 64 << 10
	maxLandings = 128 << 20
)

// landing is bytes that are uploaded to the memory from, in place of the buffer's.
type landing struct {
	to, from *Buffer
	at, size int64
	value    uint64 // the upload
}

// overlaps reports whether two landings have bytes of the same place.
func (l landing) overlaps(x landing) bool {
	return l.to == x.to && l.at < x.at+x.size && x.at < l.at+l.size
}

// arrivals are the uploads that submissions of the first queue have to know of. The device's lock
// guards them.
type arrivals struct {
	landings []landing // in the order of their uploads
	bytes    int64     // of landings and due
	due      []landing // the next submission copies them
	after    uint64    // the upload that the next submission waits for
	waited   uint64    // the last upload that a submission waited for
}

// send submits the copy of bytes of the host to a buffer, through the queue of uploads if there is
// one, and notes the submission as a use of s.
func (d *Device) send(s *staging, from int64, b *Buffer, off, n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	if err := b.ready(d, off, n); err != nil {
		return err
	}
	to, at := b, off
	through := d.uploads != nil && n >= uploadFrom
	late := slices.ContainsFunc(d.arrivals.due, func(l landing) bool { return l.to == b }) // a submission failed
	if through && (late || b.landings > 0 || b.last > d.main.finished()) {
		var err error
		if to, err = d.land(b, off, n); err != nil {
			return err
		}
		at, through = 0, to != nil
	}
	if !through {
		err := d.copyNow(s.Buffer, from, b, off, n)
		s.value = d.main.last
		return err
	}
	if err := d.uploadNow(s.Buffer, from, to, at, n); err != nil {
		if to != b {
			d.release(to)
		}
		return err
	}
	s.moved = d.uploads.last
	if to != b {
		d.arrivals.landings = append(d.arrivals.landings, landing{b, to, off, n, d.uploads.last})
		d.arrivals.bytes += n
		b.landings++
	}
	return nil
}

// land allocates memory for an upload to a buffer that is in use. It returns nil if there is none.
func (d *Device) land(b *Buffer, off, n int64) (*Buffer, error) {
	if d.arrivals.bytes+n > maxLandings {
		return nil, nil
	}
	to, err := d.newBuffer(n, gpurun.Private, onDevice)
	if errors.Is(err, gpurun.ErrMemory) {
		return nil, nil
	}
	return to, err
}

// uploadNow submits a copy to the queue of uploads.
func (d *Device) uploadNow(src *Buffer, srcOff int64, dst *Buffer, dstOff, n int64) error {
	d.reap()
	if d.lost != nil {
		return d.lost
	}
	q := d.uploads
	cmd, err := q.command()
	if err != nil {
		return err
	}
	defer func() { q.recorded = append(q.recorded, recorded{cmd, q.last}) }() // also where it is not submitted
	if err := d.write(cmd, vk.CommandBufferUsageOneTimeSubmitBit, func(cmd uintptr) { d.copyRange(cmd, src, srcOff, dst, dstOff, n) }); err != nil {
		return err
	}
	d.scratch.command[0] = cmd
	if err := q.enqueue(d.scratch.command[:], 0); err != nil {
		return err
	}
	dst.moved = q.last
	return nil
}

// copyRange records a copy.
func (d *Device) copyRange(cmd uintptr, src *Buffer, srcOff int64, dst *Buffer, dstOff, n int64) {
	s := &d.scratch
	s.region = vk.BufferCopy{SrcOffset: uint64(src.at + srcOff), DstOffset: uint64(dst.at + dstOff), Size: uint64(n)}
	vk.Call(d.CmdCopyBuffer, cmd, uintptr(src.slab.handle), uintptr(dst.slab.handle), 1, uintptr(unsafe.Pointer(&s.region)))
}

// awaits makes the next submission of the first queue wait for the uploads to a buffer.
func (d *Device) awaits(b *Buffer) {
	if b.moved == 0 && b.landings == 0 {
		return
	}
	a := &d.arrivals
	a.after = max(a.after, b.moved)
	if b.landings == 0 {
		return
	}
	a.landings = slices.DeleteFunc(a.landings, func(l landing) bool {
		if l.to != b {
			return false
		}
		a.due, a.after = append(a.due, l), max(a.after, l.value)
		return true
	})
	b.landings = 0
}

// awaitsAll does so for the buffers of dispatches.
func (d *Device) awaitsAll(list []gpurun.Dispatch) {
	if d.uploads == nil {
		return
	}
	for i := range list {
		for _, r := range list[i].Bind {
			d.awaits(own(r.Buf))
		}
	}
}

// copyDue records the copies that the next submission makes first.
func (d *Device) copyDue(cmd uintptr) {
	slices.SortStableFunc(d.arrivals.due, func(x, y landing) int { return cmp.Compare(x.value, y.value) })
	free := 0 // the first copy behind the last barrier
	for i, l := range d.arrivals.due {
		if slices.ContainsFunc(d.arrivals.due[free:i], l.overlaps) {
			free = i
			d.barrier(cmd, vk.PipelineStageTransferBit, vk.AccessTransferWriteBit, vk.PipelineStageTransferBit, vk.AccessTransferWriteBit)
		}
		d.copyRange(cmd, l.from, 0, l.to, l.at, l.size)
	}
	const all = vk.AccessMemoryReadBit | vk.AccessMemoryWriteBit
	d.barrier(cmd, vk.PipelineStageTransferBit, vk.AccessTransferWriteBit, vk.PipelineStageAllCommandsBit, all)
}

// next submits command buffers to the first queue. The caller has recorded what is due.
func (d *Device) next(cmds []uintptr) error {
	a := &d.arrivals
	after := a.after
	if after <= a.waited {
		after = 0
	}
	if err := d.main.enqueue(cmds, after); err != nil {
		return err
	}
	a.waited = max(a.waited, after)
	for _, l := range a.due {
		l.to.last = d.main.last
		l.from.last = d.main.last
		d.release(l.from)
		a.bytes -= l.size
	}
	a.after, a.due = 0, a.due[:0]
	return nil
}

// forget drops the uploads that a released buffer has not got yet.
func (d *Device) forget(b *Buffer) {
	a := &d.arrivals
	dropped := func(l landing) bool {
		if l.to != b {
			return false
		}
		a.bytes -= l.size
		d.release(l.from)
		return true
	}
	if b.landings > 0 {
		a.landings, b.landings = slices.DeleteFunc(a.landings, dropped), 0
	}
	if len(a.due) > 0 { // a submission failed
		a.due = slices.DeleteFunc(a.due, dropped)
	}
}
