//go:build cgo && linux && !android && !noopengl

package gpu

import (
	"errors"
	"fmt"
	"sync"

	"github.com/go-gl/gl/v4.3-core/gl"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// Buffer is device memory. gone is guarded by the device's lock.
type Buffer struct {
	dev  *Device
	name uint32
	size int64
	use  gpurun.Use
	gone bool
}

// Size is in bytes.
func (b *Buffer) Size() int64 { return b.size }

// Name is the buffer's OpenGL name, valid in all contexts of the share group.
func (b *Buffer) Name() uint32 { return b.name }

// NewBuffer allocates; size is rounded up to 16 bytes. A vector of four elements at the end of the
// data can then be loaded whole.
func (d *Device) NewBuffer(size int64, use gpurun.Use) (gpurun.Buffer, error) {
	if err := d.Usable(); err != nil {
		return nil, err
	}
	size = max((size+15)&^15, 16)
	if size > d.info.Limits.Buffer {
		return nil, fmt.Errorf("%w: a buffer of %d bytes was requested, the limit is %d", gpurun.ErrMemory, size, d.info.Limits.Buffer)
	}
	b := &Buffer{dev: d, size: size, use: use}
	err := d.do(func() error {
		gl.GenBuffers(1, &b.name)
		gl.BindBuffer(gl.COPY_WRITE_BUFFER, b.name)
		if d.fixed {
			gl.BufferStorage(gl.COPY_WRITE_BUFFER, int(size), nil, gl.DYNAMIC_STORAGE_BIT)
		} else {
			gl.BufferData(gl.COPY_WRITE_BUFFER, int(size), nil, gl.DYNAMIC_COPY)
		}
		if err := d.reported(); err != nil {
			gl.DeleteBuffers(1, &b.name)
			return fmt.Errorf("a buffer of %d bytes: %w", size, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.buffers != nil { // not closed meanwhile
		d.buffers[b] = struct{}{}
	}
	return b, nil
}

// Release frees the memory after submitted work is done with it. Calling it again does nothing.
func (b *Buffer) Release() {
	d := b.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.gone || d.usable() != nil {
		return
	}
	b.gone = true
	delete(d.buffers, b)
	name := b.name
	d.thread.Post(func() { gl.DeleteBuffers(1, &name) })
}

// own returns this package's buffer of b, or nil.
func own(b gpurun.Buffer) *Buffer {
	x, _ := b.(*Buffer)
	return x
}

// ready returns the reason why part of a buffer cannot be used. The caller holds the device's lock.
func (b *Buffer) ready(d *Device, off, size int64) error {
	switch {
	case b == nil || b.dev != d:
		return errors.New("gpu: the buffer belongs to another device")
	case b.gone:
		return errors.New("gpu: the buffer was released")
	case off < 0 || size <= 0 || off > b.size-size:
		return fmt.Errorf("gpu: bytes [%d,%d) are not within the buffer, which has %d", off, off+size, b.size)
	}
	return nil
}

// chunk is the size of a transfer's parts: large enough to make the cost of a step negligible,
// small enough to stay in cache.
const chunk = 1 << 20

// parts is memory for the parts of transfers.
var parts = sync.Pool{New: func() any { return new([chunk]byte) }}

// transfer checks a transfer and moves its parts.
func (d *Device) transfer(buf gpurun.Buffer, off, n int64, move func(part []byte, at int64) error) error {
	d.mu.Lock()
	err := d.usable()
	if err == nil && n > 0 {
		err = own(buf).ready(d, off, n)
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	memory := parts.Get().(*[chunk]byte)
	defer parts.Put(memory)
	for at := int64(0); at < n; at += chunk {
		if err := move(memory[:min(chunk, n-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// Write fills n bytes of buf at off (both multiples of 4).
func (d *Device) Write(buf gpurun.Buffer, off, n int64, fill func(dst []byte, at int64)) error {
	return d.transfer(buf, off, n, func(part []byte, at int64) error {
		fill(part, at)
		return d.do(func() error { write(own(buf), off+at, part); return nil })
	})
}

func write(b *Buffer, off int64, data []byte) {
	gl.BindBuffer(gl.COPY_WRITE_BUFFER, b.name)
	gl.BufferSubData(gl.COPY_WRITE_BUFFER, int(off), len(data), gl.Ptr(data))
}

// Read passes n bytes of buf at off (both multiples of 4) to drain, after the work submitted before
// is done.
func (d *Device) Read(buf gpurun.Buffer, off, n int64, drain func(src []byte, at int64)) error {
	return d.transfer(buf, off, n, func(part []byte, at int64) error {
		err := d.do(func() error {
			gl.BindBuffer(gl.COPY_READ_BUFFER, own(buf).name)
			gl.GetBufferSubData(gl.COPY_READ_BUFFER, int(off+at), len(part), gl.Ptr(part))
			return d.reset()
		})
		if err == nil {
			drain(part, at)
		}
		return err
	})
}
