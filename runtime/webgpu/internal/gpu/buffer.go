//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package gpu

import (
	"fmt"

	"github.com/rajveermalviya/go-webgpu/wgpu"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// Uses for transfers only.
const (
	upload   = gpurun.Private + iota // mapped for writing, copied from
	download                         // copied to, mapped for reading
)

var usages = [...]wgpu.BufferUsage{
	gpurun.Storage: wgpu.BufferUsage_Storage | wgpu.BufferUsage_CopyDst | wgpu.BufferUsage_CopySrc,
	gpurun.Report:  wgpu.BufferUsage_Storage | wgpu.BufferUsage_CopyDst | wgpu.BufferUsage_CopySrc,
	gpurun.Uniform: wgpu.BufferUsage_Uniform | wgpu.BufferUsage_CopyDst,
	upload:         wgpu.BufferUsage_MapWrite | wgpu.BufferUsage_CopySrc,
	download:       wgpu.BufferUsage_MapRead | wgpu.BufferUsage_CopyDst,
}

// Buffer is device memory. Its fields are guarded by the device's lock.
type Buffer struct {
	dev    *Device
	ref    *wgpu.Buffer
	size   int64
	use    gpurun.Use
	mapped bool
	gone   bool
}

// Size is in bytes.
func (b *Buffer) Size() int64 { return b.size }

// NewBuffer allocates; size is rounded up to 16 bytes. A vector of four elements at the end of the
// data can then be loaded whole.
func (d *Device) NewBuffer(size int64, use gpurun.Use) (gpurun.Buffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, err := d.newBuffer(size, use)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// own returns this package's buffer of b, or nil.
func own(b gpurun.Buffer) *Buffer {
	x, _ := b.(*Buffer)
	return x
}

func (d *Device) newBuffer(size int64, use gpurun.Use) (*Buffer, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	size = max((size+15)&^15, 16)
	if size > d.info.Limits.Buffer {
		return nil, fmt.Errorf("%w: a buffer of %d bytes was requested, the adapter's limit is %d", gpurun.ErrMemory, size, d.info.Limits.Buffer)
	}
	ref, err := d.dev.CreateBuffer(&wgpu.BufferDescriptor{
		Usage:            usages[use],
		Size:             uint64(size),
		MappedAtCreation: use == upload,
	})
	if err = d.check(err); err != nil {
		return nil, err
	}
	b := &Buffer{dev: d, ref: ref, size: size, use: use, mapped: use == upload}
	d.buffers[b] = struct{}{}
	return b, nil
}

// Release frees the memory after submitted work is done with it. Calling it again does nothing.
func (b *Buffer) Release() {
	b.dev.mu.Lock()
	defer b.dev.mu.Unlock()
	b.release()
}

func (b *Buffer) release() {
	if b.gone || b.dev.closed {
		return
	}
	b.gone = true
	delete(b.dev.buffers, b)
	b.ref.Release()
}

// ready returns the reason why a buffer cannot be part of submitted work. The native library would
// end the process instead.
func (b *Buffer) ready(d *Device, off, size int64) error {
	switch {
	case b == nil || b.dev != d:
		return fmt.Errorf("gpu: the buffer belongs to another device")
	case b.gone:
		return fmt.Errorf("gpu: the buffer was released")
	case b.mapped:
		return fmt.Errorf("gpu: the buffer is mapped")
	case off < 0 || size <= 0 || off > b.size-size:
		return fmt.Errorf("gpu: bytes [%d,%d) are not within the buffer, which has %d", off, off+size, b.size)
	}
	return nil
}
