//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// maxRecorded bounds the dispatches of all recordings: see maxPart.
const maxRecorded = 16 << 10

// recording is a list of dispatches in command buffers that are submitted many times.
type recording struct {
	dev      *Device
	commands []uintptr
	count    int // of dispatches
	buffers  []*Buffer
	pipes    []*Pipeline
	gone     bool
}

var _ gpurun.Recorder = (*Device)(nil)

// Record records dispatches with the run-time words that their buffers have now. Before them it
// records the filling of zero with zeros.
func (d *Device) Record(zero gpurun.Range, list []gpurun.Dispatch) (gpurun.Recording, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	if err := d.validAll(list); err != nil {
		return nil, err
	}
	r := &recording{dev: d, count: len(list)}
	if zero.Buf != nil {
		if err := own(zero.Buf).ready(d, zero.Off, zero.Size); err != nil {
			return nil, err
		}
		r.add(own(zero.Buf))
	}
	switch {
	case r.count == 0:
		return nil, errors.New("gpu: no dispatches to record")
	case d.kept+r.count > maxRecorded:
		return nil, fmt.Errorf("gpu: %d dispatches are recorded, and %d more are above the limit of %d", d.kept, r.count, maxRecorded)
	}
	for i := range list {
		for _, x := range list[i].Bind {
			r.add(own(x.Buf))
		}
		if list[i].Unless.Buf != nil {
			r.add(own(list[i].Unless.Buf))
		}
		if p := list[i].Pipe.(*Pipeline); !slices.Contains(r.pipes, p) {
			r.pipes = append(r.pipes, p)
		}
	}
	if err := d.updateNow(list); err != nil {
		return nil, err
	}
	d.kept += r.count
	var err error
	if r.commands, err = d.writeAll(nil, vk.CommandBufferUsageSimultaneousUseBit, zero, list); err != nil {
		r.release()
		return nil, err
	}
	return r, nil
}

func (r *recording) add(b *Buffer) {
	if !slices.Contains(r.buffers, b) {
		r.buffers = append(r.buffers, b)
	}
}

// zero fills a range with zeros, for the dispatches that follow.
func (d *Device) zero(cmd uintptr, x gpurun.Range) {
	b := own(x.Buf)
	vk.Call(d.CmdFillBuffer, cmd, uintptr(b.slab.handle), uintptr(b.at+x.Off), uintptr(x.Size), 0)
	d.barrier(cmd, vk.PipelineStageTransferBit, vk.AccessTransferWriteBit, vk.PipelineStageComputeShaderBit, vk.AccessShaderReadBit|vk.AccessShaderWriteBit)
}

// Play submits recorded and other dispatches as one submission.
func (d *Device) Play(list []gpurun.Work) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	for i := range list {
		if err := d.playable(&list[i]); err != nil {
			return err
		}
	}
	d.reap()
	if d.lost != nil {
		return d.lost
	}
	all, once := d.scratch.all[:0], d.scratch.once[:0]
	defer func() { // also those that an error kept from being submitted
		for _, cmd := range once {
			d.main.recorded = append(d.main.recorded, recorded{cmd, d.main.last})
		}
		d.scratch.all, d.scratch.once = all[:0], once[:0]
	}()
	for i := range list {
		d.awaitsWork(&list[i])
	}
	if len(d.arrivals.due) > 0 {
		cmd, err := d.main.command()
		if err != nil {
			return err
		}
		all, once = append(all, cmd), append(once, cmd)
		if err := d.write(cmd, vk.CommandBufferUsageOneTimeSubmitBit, d.copyDue); err != nil {
			return err
		}
	}
	for i := range list {
		x := &list[i]
		if x.Rec != nil {
			all = append(all, x.Rec.(*recording).commands...)
			continue
		}
		cmds, err := d.writeAll(once, vk.CommandBufferUsageOneTimeSubmitBit, x.Zero, x.List)
		all, once = append(all, cmds[len(once):]...), cmds
		if err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	if err := d.next(all); err != nil {
		return err
	}
	for i := range list {
		d.submitted(&list[i])
	}
	return nil
}

// playable checks a piece of work.
func (d *Device) playable(x *gpurun.Work) error {
	if x.Rec != nil {
		switch r, ok := x.Rec.(*recording); {
		case !ok || r.dev != d:
			return errors.New("gpu: recording of another device")
		case r.stale():
			return gpurun.ErrStale
		}
		return nil
	}
	if x.Zero.Buf != nil {
		if err := own(x.Zero.Buf).ready(d, x.Zero.Off, x.Zero.Size); err != nil {
			return err
		}
	}
	return d.validAll(x.List)
}

// awaitsWork makes the next submission wait for the uploads to the buffers of a piece of work.
func (d *Device) awaitsWork(x *gpurun.Work) {
	if d.uploads == nil {
		return
	}
	if x.Rec != nil {
		for _, b := range x.Rec.(*recording).buffers {
			d.awaits(b)
		}
		return
	}
	if x.Zero.Buf != nil {
		d.awaits(own(x.Zero.Buf))
	}
	d.awaitsAll(x.List)
}

// submitted notes that the last submission uses the buffers of a piece of work.
func (d *Device) submitted(x *gpurun.Work) {
	if x.Rec != nil {
		for _, b := range x.Rec.(*recording).buffers {
			b.last = d.main.last
		}
		return
	}
	if x.Zero.Buf != nil {
		own(x.Zero.Buf).last = d.main.last
	}
	d.uses(x.List)
}

// writeAll writes dispatches into command buffers, which it appends to cmds. If it fails, it returns
// those that it has begun.
func (d *Device) writeAll(cmds []uintptr, usage uint32, zero gpurun.Range, list []gpurun.Dispatch) ([]uintptr, error) {
	for at := 0; at < len(list); at += maxPart {
		cmd, err := d.main.command()
		if err != nil {
			return cmds, err
		}
		cmds = append(cmds, cmd)
		err = d.write(cmd, usage, func(cmd uintptr) {
			if at == 0 && zero.Buf != nil {
				d.zero(cmd, zero)
			}
			part := list[at:min(at+maxPart, len(list))]
			d.updateAll(cmd, part)
			d.dispatchAll(cmd, part)
		})
		if err != nil {
			return cmds, err
		}
	}
	return cmds, nil
}

// stale reports whether something that the commands name was released.
func (r *recording) stale() bool {
	for _, b := range r.buffers {
		if b.gone {
			return true
		}
	}
	for _, p := range r.pipes {
		if _, ok := r.dev.pipelines[p]; !ok {
			return true
		}
	}
	return r.gone
}

// Release frees the command buffers after submitted work is done with them. Calling it again does
// nothing.
func (r *recording) Release() {
	d := r.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if !r.gone && d.usable() == nil {
		r.release()
	}
}

// release is Release for a usable device. The caller holds the lock.
func (r *recording) release() {
	d := r.dev
	r.gone = true
	d.kept -= r.count
	if n := len(r.commands); n > 0 {
		d.bury(0, func() {
			vk.Call(d.FreeCommandBuffers, d.Handle, uintptr(d.main.pool), uintptr(n), uintptr(unsafe.Pointer(&r.commands[0])))
		})
	}
}
