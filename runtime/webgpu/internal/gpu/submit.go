//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package gpu

import (
	"errors"
	"fmt"

	"github.com/rajveermalviya/go-webgpu/wgpu"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

func isDeviceFault(err error) bool {
	return errors.Is(err, gpurun.ErrLost) || errors.Is(err, gpurun.ErrMemory) || errors.Is(err, gpurun.ErrClosed)
}

// Submit runs dispatches in order, in one pass and one submission; each sees the writes of the
// earlier ones. First it writes params, if any, to the start of paramBuf. It returns when the work
// is queued.
func (d *Device) Submit(list []gpurun.Dispatch, paramBuf gpurun.Buffer, params []byte) error {
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
	if len(params) > 0 {
		b := own(paramBuf)
		if err := b.ready(d, 0, int64(len(params))); err != nil {
			return err
		}
		if err := d.check(d.queue.WriteBuffer(b.ref, 0, params)); err != nil {
			return err
		}
	}
	groups := make([]*wgpu.BindGroup, 0, len(list))
	defer func() {
		for _, g := range groups {
			g.Release()
		}
	}()
	for i := range list {
		g, err := d.bind(&list[i])
		if err != nil {
			return fmt.Errorf("dispatch %d: %w", i, err)
		}
		groups = append(groups, g)
	}
	return d.encode(func(enc *wgpu.CommandEncoder) error {
		pass := enc.BeginComputePass(nil)
		defer pass.Release()
		var last gpurun.Pipeline
		for i := range list {
			if p := list[i].Pipe; p != last {
				pass.SetPipeline(p.(*Pipeline).ref)
				last = p
			}
			pass.SetBindGroup(0, groups[i], nil)
			pass.DispatchWorkgroups(list[i].Groups[0], list[i].Groups[1], list[i].Groups[2])
		}
		return pass.End()
	})
}

// encode records commands and submits them. A command buffer never leaves this function, so it
// cannot be submitted twice. The caller holds the lock.
func (d *Device) encode(record func(*wgpu.CommandEncoder) error) error {
	enc, err := d.dev.CreateCommandEncoder(nil)
	if err = d.check(err); err != nil {
		return err
	}
	defer enc.Release()
	if err := d.check(record(enc)); err != nil {
		return err
	}
	cmd, err := enc.Finish(nil)
	if err = d.check(err); err != nil {
		return err
	}
	defer cmd.Release()
	d.queue.Submit(cmd)
	d.queued++
	return d.check(nil)
}

// Backlog is the number of submissions since the queue was last seen empty.
func (d *Device) Backlog() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queued
}

func (d *Device) valid(x *gpurun.Dispatch) error {
	p, ok := x.Pipe.(*Pipeline)
	if !ok || p.dev != d {
		return errors.New("gpu: the pipeline belongs to another device")
	}
	if _, ok := d.pipelines[p]; !ok {
		return errors.New("gpu: the pipeline was released")
	}
	if err := x.Check(p.bindings, &d.info.Limits); err != nil {
		return err
	}
	for i, r := range x.Bind {
		if err := own(r.Buf).ready(d, r.Off, r.Size); err != nil {
			return fmt.Errorf("binding %d: %w", i, err)
		}
	}
	return nil
}

func (d *Device) bind(x *gpurun.Dispatch) (*wgpu.BindGroup, error) {
	entries := make([]wgpu.BindGroupEntry, len(x.Bind))
	for i, r := range x.Bind {
		entries[i] = wgpu.BindGroupEntry{Binding: uint32(i), Buffer: own(r.Buf).ref, Offset: uint64(r.Off), Size: uint64(r.Size)}
	}
	g, err := d.dev.CreateBindGroup(&wgpu.BindGroupDescriptor{Layout: x.Pipe.(*Pipeline).layout, Entries: entries})
	return g, d.check(err)
}
