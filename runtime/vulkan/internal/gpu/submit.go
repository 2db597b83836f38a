//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// maxPart bounds the dispatches of a command buffer: Mesa maps memory for the descriptors of each,
// and a process has at most 65,530 mappings.
const maxPart = 1024

// scratch has the structures that submissions pass to Vulkan. They are kept, so that a submission
// allocates nothing.
type scratch struct {
	command [1]uintptr
	all     []uintptr // the command buffers of a Play
	once    []uintptr // those of them that are written for it
	begin   vk.CommandBufferBeginInfo
	submit  vk.SubmitInfo
	// the semaphores of a submission
	timelines      vk.TimelineSemaphoreSubmitInfo
	value, signal  uint64
	after, awaited uint64
	stage          uint32
	counter        uint64
	barrier        vk.MemoryBarrier
	region         vk.BufferCopy
	skip           vk.ConditionalRenderingBeginInfoEXT
	infos          [maxBindings]vk.DescriptorBufferInfo
	writes         [maxBindings]vk.WriteDescriptorSet
	push           [maxPush]byte
}

func (s *scratch) init(d *Device) {
	s.begin = vk.CommandBufferBeginInfo{SType: vk.StructureTypeCommandBufferBeginInfo}
	s.barrier = vk.MemoryBarrier{SType: vk.StructureTypeMemoryBarrier}
	s.stage = vk.PipelineStageAllCommandsBit
	s.timelines = vk.TimelineSemaphoreSubmitInfo{
		SType: vk.StructureTypeTimelineSemaphoreSubmitInfo, SignalSemaphoreValueCount: 1, PSignalSemaphoreValues: unsafe.Pointer(&s.value),
		PWaitSemaphoreValues: unsafe.Pointer(&s.after),
	}
	s.submit = vk.SubmitInfo{SType: vk.StructureTypeSubmitInfo, PWaitSemaphores: unsafe.Pointer(&s.awaited), PWaitDstStageMask: unsafe.Pointer(&s.stage)}
	if !d.fenced {
		s.submit.PNext, s.submit.SignalSemaphoreCount, s.submit.PSignalSemaphores = unsafe.Pointer(&s.timelines), 1, unsafe.Pointer(&s.signal)
	}
	for i := range s.writes {
		s.writes[i] = vk.WriteDescriptorSet{
			SType: vk.StructureTypeWriteDescriptorSet, DescriptorCount: 1, PBufferInfo: unsafe.Pointer(&s.infos[i]),
		}
	}
}

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
	if err := d.validAll(list); err != nil {
		return err
	}
	if len(words) > 0 {
		if err := own(params).ready(d, 0, int64(len(words))); err != nil {
			return err
		}
		own(params).hold(0, words)
		own(params).behind = max(own(params).behind, len(words))
	}
	for len(list) > 0 {
		part := list[:min(len(list), maxPart)]
		d.awaitsAll(part)
		err := d.submit(func(cmd uintptr) {
			d.updateAll(cmd, part)
			d.dispatchAll(cmd, part)
		})
		if err != nil {
			return err
		}
		d.uses(part)
		list = list[len(part):]
	}
	return nil
}

func (d *Device) validAll(list []gpurun.Dispatch) error {
	for i := range list {
		if err := d.valid(&list[i]); err != nil {
			return fmt.Errorf("dispatch %d: %w", i, err)
		}
	}
	return nil
}

func (d *Device) valid(x *gpurun.Dispatch) error {
	p, ok := x.Pipe.(*Pipeline)
	if !ok || p.dev != d {
		return errors.New("gpu: pipeline of another device")
	}
	if _, ok := d.pipelines[p]; !ok {
		return errors.New("gpu: pipeline was released")
	}
	if err := x.Check(p.bindings, &d.adapter.info.Limits); err != nil {
		return err
	}
	for i, r := range x.Bind {
		b := own(r.Buf)
		if err := b.ready(d, r.Off, r.Size); err != nil {
			return fmt.Errorf("binding %d: %w", i, err)
		}
		if (b.use == gpurun.Uniform) != (p.bindings[i] == gpurun.Params) {
			return fmt.Errorf("binding %d: gpu: the buffer has another use", i)
		}
	}
	return d.validUnless(x)
}

// submit records commands and submits them to the first queue. The caller holds the lock.
func (d *Device) submit(record func(cmd uintptr)) error {
	d.reap()
	if d.lost != nil {
		return d.lost
	}
	cmd, err := d.main.command()
	if err != nil {
		return err
	}
	defer func() { d.main.recorded = append(d.main.recorded, recorded{cmd, d.main.last}) }() // also where it is not submitted
	err = d.write(cmd, vk.CommandBufferUsageOneTimeSubmitBit, func(cmd uintptr) {
		if len(d.arrivals.due) > 0 {
			d.copyDue(cmd)
		}
		record(cmd)
	})
	if err != nil {
		return err
	}
	d.scratch.command[0] = cmd
	return d.next(d.scratch.command[:])
}

// write fills a command buffer with commands that come after earlier submissions and that the host
// sees the results of.
func (d *Device) write(cmd uintptr, usage uint32, record func(cmd uintptr)) error {
	s := &d.scratch
	s.begin.Flags = usage
	if err := d.check("vkBeginCommandBuffer", vk.Call(d.BeginCommandBuffer, cmd, uintptr(unsafe.Pointer(&s.begin)))); err != nil {
		return err
	}
	const all = vk.AccessMemoryReadBit | vk.AccessMemoryWriteBit
	d.barrier(cmd, vk.PipelineStageAllCommandsBit, vk.AccessMemoryWriteBit, vk.PipelineStageAllCommandsBit, all)
	d.epoch++
	record(cmd)
	d.barrier(cmd, vk.PipelineStageAllCommandsBit, vk.AccessMemoryWriteBit, vk.PipelineStageHostBit, vk.AccessHostReadBit)
	return d.check("vkEndCommandBuffer", vk.Call(d.EndCommandBuffer, cmd))
}

func (d *Device) barrier(cmd uintptr, from, wrote, to, reads uint32) {
	s := &d.scratch
	s.barrier.SrcAccessMask, s.barrier.DstAccessMask = wrote, reads
	vk.Call(d.CmdPipelineBarrier, cmd, uintptr(from), uintptr(to), 0, 1, uintptr(unsafe.Pointer(&s.barrier)), 0, 0, 0, 0)
}

// dispatchAll records dispatches.
func (d *Device) dispatchAll(cmd uintptr, list []gpurun.Dispatch) {
	unless := gpurun.Range{}
	for i := range list {
		unless = d.unless(cmd, unless, &list[i])
		d.dispatch(cmd, &list[i], i > 0 && list[i-1].Pipe == list[i].Pipe)
	}
	d.unless(cmd, unless, &gpurun.Dispatch{})
}

// dispatch records a dispatch; bound says that its pipeline is that of the one before.
func (d *Device) dispatch(cmd uintptr, x *gpurun.Dispatch, bound bool) {
	s, p := &d.scratch, x.Pipe.(*Pipeline)
	if d.hazard(x, p) {
		const both = vk.AccessShaderReadBit | vk.AccessShaderWriteBit
		d.barrier(cmd, vk.PipelineStageComputeShaderBit, vk.AccessShaderWriteBit, vk.PipelineStageComputeShaderBit, both)
		d.epoch++
	}
	n, words := 0, gpurun.Range{}
	for i, r := range x.Bind {
		if p.pushes(i) {
			words = r
			continue
		}
		b := own(r.Buf)
		b.uses(d.epoch, r, p.bindings[i])
		s.infos[n] = vk.DescriptorBufferInfo{Buffer: b.slab.handle, Offset: uint64(b.at + r.Off), Range: uint64(r.Size)}
		s.writes[n].DstBinding, s.writes[n].DescriptorType = uint32(i), descriptorType(p.bindings[i])
		n++
	}
	if !bound {
		vk.Call(d.CmdBindPipeline, cmd, vk.PipelineBindPointCompute, uintptr(p.handle))
	}
	if n > 0 {
		vk.Call(d.CmdPushDescriptorSetKHR, cmd, vk.PipelineBindPointCompute, uintptr(p.layout), 0, uintptr(n), uintptr(unsafe.Pointer(&s.writes[0])))
	}
	if p.pushed > 0 {
		d.pushWords(cmd, p, words)
	}
	vk.Call(d.CmdDispatch, cmd, uintptr(x.Groups[0]), uintptr(x.Groups[1]), uintptr(x.Groups[2]))
}

// Backlog is the number of submissions since the queue was last seen empty.
func (d *Device) Backlog() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return int(d.main.last - d.idle)
}
