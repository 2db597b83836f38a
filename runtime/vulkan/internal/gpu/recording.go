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
		if p := list[i].Pipe.(*Pipeline); !slices.Contains(r.pipes, p) {
			r.pipes = append(r.pipes, p)
		}
	}
	if err := d.updateNow(list); err != nil {
		return nil, err
	}
	d.kept += r.count
	for at := 0; at < len(list); at += maxPart {
		cmd, err := d.command()
		if err == nil {
			r.commands = append(r.commands, cmd)
			err = d.write(cmd, vk.CommandBufferUsageSimultaneousUseBit, func(cmd uintptr) {
				if at == 0 && zero.Buf != nil {
					d.zero(cmd, zero)
				}
				d.dispatchAll(cmd, list[at:min(at+maxPart, len(list))])
			})
		}
		if err != nil {
			r.release()
			return nil, err
		}
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

// Submit submits the command buffers once more.
func (r *recording) Submit() error {
	d := r.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	if r.stale() {
		return gpurun.ErrStale
	}
	d.reap()
	if d.lost != nil {
		return d.lost
	}
	if err := d.enqueue(r.commands); err != nil {
		return err
	}
	for _, b := range r.buffers {
		b.last = d.last
	}
	return nil
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
		d.bury(func() {
			vk.Call(d.FreeCommandBuffers, d.Handle, uintptr(d.pool), uintptr(n), uintptr(unsafe.Pointer(&r.commands[0])))
		})
	}
}
