//go:build cgo && linux && !android && !noopengl

package gpu

import (
	"errors"
	"fmt"

	"github.com/go-gl/gl/v4.3-core/gl"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// seen are the barriers that make a dispatch's writes visible to all later work.
const seen = gl.SHADER_STORAGE_BARRIER_BIT | gl.UNIFORM_BARRIER_BIT | gl.BUFFER_UPDATE_BARRIER_BIT

// Submit runs dispatches in order; each sees the writes of the earlier ones. First it writes words,
// if any, to the start of params. It returns when the work is queued.
func (d *Device) Submit(list []gpurun.Dispatch, params gpurun.Buffer, words []byte) error {
	if len(list) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	for i := range list {
		if err := d.valid(&list[i]); err != nil {
			return fmt.Errorf("dispatch %d: %w", i, err)
		}
	}
	if len(words) > 0 {
		if err := own(params).ready(d, 0, int64(len(words))); err != nil {
			return err
		}
	}
	list = append([]gpurun.Dispatch(nil), list...)
	d.queued++
	return d.post(func() {
		if len(words) > 0 {
			write(own(params), 0, words)
		}
		for i := range list {
			dispatch(&list[i])
		}
		gl.Flush()
	})
}

func dispatch(x *gpurun.Dispatch) {
	p := x.Pipe.(*Pipeline)
	gl.UseProgram(p.name)
	for i, r := range x.Bind {
		b := own(r.Buf)
		if p.bindings[i] == gpurun.Params {
			gl.BindBufferRange(gl.UNIFORM_BUFFER, 0, b.name, int(r.Off), int(r.Size))
			continue
		}
		size := min((r.Size+15)&^15, b.size-r.Off) // vectors are read whole
		gl.BindBufferRange(gl.SHADER_STORAGE_BUFFER, uint32(i), b.name, int(r.Off), int(size))
	}
	gl.DispatchCompute(x.Groups[0], x.Groups[1], x.Groups[2])
	gl.MemoryBarrier(seen)
}

// valid finds errors that OpenGL would reject. The caller holds the lock.
func (d *Device) valid(x *gpurun.Dispatch) error {
	p, ok := x.Pipe.(*Pipeline)
	if !ok || p.dev != d {
		return errors.New("gpu: the pipeline belongs to another device")
	}
	if p.gone {
		return errors.New("gpu: the pipeline was released")
	}
	if err := x.Check(p.bindings, &d.info.Limits); err != nil {
		return err
	}
	for i, r := range x.Bind {
		if err := own(r.Buf).ready(d, r.Off, r.Size); err != nil {
			return fmt.Errorf("binding %d: %w", i, err)
		}
		if params := own(r.Buf).use == gpurun.Uniform; params != (p.bindings[i] == gpurun.Params) { // which OpenGL would take
			return fmt.Errorf("binding %d: gpu: the buffer was made for another use", i)
		}
	}
	return nil
}

// Backlog is the number of submissions since the queue was last seen empty.
func (d *Device) Backlog() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queued
}

// Wait waits until all submitted work is done, however long that takes.
func (d *Device) Wait() error {
	if err := d.Usable(); err != nil {
		return err
	}
	err := d.do(func() error {
		gl.Finish()
		return d.reset()
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.queued, err = 0, d.usable()
	}
	return err
}

// Close waits for submitted work and frees the context and everything made in it.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return gpurun.ErrClosed
	}
	d.closed = true // nothing new is submitted from here on
	buffers, pipelines := d.buffers, d.pipelines
	d.buffers, d.pipelines = nil, nil
	d.mu.Unlock()
	_ = d.post(func() { // not where it is lost: a context that is destroyed takes its objects along
		gl.Finish()
		for b := range buffers {
			gl.DeleteBuffers(1, &b.name)
		}
		for p := range pipelines {
			gl.DeleteProgram(p.name)
		}
	})
	d.thread.End()
	return nil
}
