//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"errors"
	"unsafe"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// conditional is the extension by which the device skips dispatches, on a word that it reads itself.
const conditional = "VK_EXT_conditional_rendering"

// validUnless checks the words by which a dispatch is skipped.
func (d *Device) validUnless(x *gpurun.Dispatch) error {
	if x.Unless.Buf == nil {
		if x.Look {
			return errors.New("gpu: a dispatch looks at no words")
		}
		return nil
	}
	b := own(x.Unless.Buf)
	if err := b.ready(d, x.Unless.Off, 8); err != nil {
		return err
	}
	if !d.adapter.info.Skips || b.use != gpurun.Report || x.Unless.Off%4 != 0 {
		return errors.New("gpu: these words skip no dispatch")
	}
	return nil
}

// unless ends the condition now, and begins that of a dispatch, if they differ. The word is read once
// for all dispatches with the condition, or before each of them, as the driver likes. It therefore is a
// copy, which these dispatches do not write.
func (d *Device) unless(cmd uintptr, now gpurun.Range, x *gpurun.Dispatch) gpurun.Range {
	if now == x.Unless && !x.Look {
		return now
	}
	if now.Buf != nil {
		vk.Call(d.CmdEndConditionalRenderingEXT, cmd)
	}
	if x.Unless.Buf == nil {
		return x.Unless
	}
	s, b := &d.scratch, own(x.Unless.Buf)
	at := b.at + x.Unless.Off
	if x.Look {
		const read, compute, transfer = vk.PipelineStageConditionalRenderingBitExt, vk.PipelineStageComputeShaderBit, vk.PipelineStageTransferBit
		d.barrier(cmd, compute|read, vk.AccessShaderWriteBit, compute|transfer,
			vk.AccessShaderReadBit|vk.AccessShaderWriteBit|vk.AccessTransferReadBit|vk.AccessTransferWriteBit)
		d.epoch++ // it also serves the dispatch
		s.region = vk.BufferCopy{SrcOffset: uint64(at), DstOffset: uint64(at + 4), Size: 4}
		vk.Call(d.CmdCopyBuffer, cmd, uintptr(b.slab.handle), uintptr(b.slab.handle), 1, uintptr(unsafe.Pointer(&s.region)))
		d.barrier(cmd, transfer, vk.AccessTransferWriteBit, read, vk.AccessConditionalRenderingReadBitExt)
	}
	s.skip = vk.ConditionalRenderingBeginInfoEXT{
		SType: vk.StructureTypeConditionalRenderingBeginInfoExt, Buffer: b.slab.handle, Offset: uint64(at + 4), Flags: vk.ConditionalRenderingInvertedBitExt,
	}
	vk.Call(d.CmdBeginConditionalRenderingEXT, cmd, uintptr(unsafe.Pointer(&s.skip)))
	return x.Unless
}

// uses notes that the last submission uses the buffers of dispatches.
func (d *Device) uses(list []gpurun.Dispatch) {
	for i := range list {
		for _, r := range list[i].Bind {
			own(r.Buf).last = d.main.last
		}
		if u := list[i].Unless.Buf; u != nil {
			own(u).last = d.main.last
		}
	}
}
