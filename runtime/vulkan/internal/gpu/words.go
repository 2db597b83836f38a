//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// Run-time words that a shader has few of are push constants: they are part of the commands. Longer
// ones are read from their buffer. A buffer of run-time words therefore has a copy of its contents on
// the host, and its memory is written when a dispatch is to read it.

// maxPush is the most bytes of push constants, where the adapter has as many.
const maxPush = 256

// maxUpdate is the most that vkCmdUpdateBuffer writes.
const maxUpdate = 64 << 10

// hold puts words into the host's copy of the buffer. The caller holds the device's lock.
func (b *Buffer) hold(off int64, words []byte) {
	if end := int(off) + len(words); end > len(b.words) {
		b.words = append(b.words, make([]byte, end-len(b.words))...)
	}
	copy(b.words[off:], words)
}

// holding is a fill of the buffer's memory that keeps the words.
func (d *Device) holding(b *Buffer, off int64, fill func(dst []byte, at int64)) func(dst []byte, at int64) {
	return func(dst []byte, at int64) {
		words := make([]byte, len(dst)) // mapped memory may be slow to read
		fill(words, at)
		copy(dst, words)
		d.mu.Lock()
		defer d.mu.Unlock()
		b.hold(off+at, words)
	}
}

// pushWords records the words of a dispatch. Words that were never written are zeros.
func (d *Device) pushWords(cmd uintptr, p *Pipeline, r gpurun.Range) {
	words := own(r.Buf).words
	part := words[min(r.Off, int64(len(words))):min(r.Off+r.Size, int64(len(words)))]
	push := d.scratch.push[:p.pushed]
	clear(push[copy(push, part):])
	vk.Call(d.CmdPushConstants, cmd, uintptr(p.layout), vk.ShaderStageComputeBit, 0, uintptr(len(push)), uintptr(unsafe.Pointer(&push[0])))
}

// late returns the buffer of a dispatch that reads words which are not in the memory yet, or nil.
func late(x *gpurun.Dispatch) *Buffer {
	p := x.Pipe.(*Pipeline)
	if p.pushed > 0 {
		return nil
	}
	if i := slices.Index(p.bindings, gpurun.Params); i >= 0 && own(x.Bind[i].Buf).behind > 0 {
		return own(x.Bind[i].Buf)
	}
	return nil
}

// updateAll writes the memory of the buffers that dispatches read words from.
func (d *Device) updateAll(cmd uintptr, list []gpurun.Dispatch) {
	wrote := false
	for i := range list {
		if b := late(&list[i]); b != nil {
			d.update(cmd, b)
			wrote = true
		}
	}
	if wrote {
		d.barrier(cmd, vk.PipelineStageTransferBit, vk.AccessTransferWriteBit, vk.PipelineStageComputeShaderBit, vk.AccessUniformReadBit|vk.AccessShaderReadBit)
	}
}

// updateNow does the same in a submission of its own, if it has anything to do.
func (d *Device) updateNow(list []gpurun.Dispatch) error {
	if !slices.ContainsFunc(list, func(x gpurun.Dispatch) bool { return late(&x) != nil }) {
		return nil
	}
	var buffers []*Buffer
	for i := range list {
		if b := late(&list[i]); b != nil {
			buffers = append(buffers, b)
		}
	}
	err := d.submit(func(cmd uintptr) { d.updateAll(cmd, list) })
	if err == nil {
		for _, b := range buffers {
			b.last = d.main.last
		}
	}
	return err
}

// update writes the words that a buffer's memory lacks.
func (d *Device) update(cmd uintptr, b *Buffer) {
	words := b.words[:b.behind]
	for at := 0; at < len(words); at += maxUpdate {
		part := words[at:min(at+maxUpdate, len(words))]
		vk.Call(d.CmdUpdateBuffer, cmd, uintptr(b.slab.handle), uintptr(b.at+int64(at)), uintptr(len(part)), uintptr(unsafe.Pointer(&part[0])))
	}
	b.behind = 0
}
