//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package gpu

import (
	"fmt"

	"github.com/rajveermalviya/go-webgpu/wgpu"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// chunk is the size of a staging buffer: large enough to make a transfer's fixed costs negligible,
// small enough that two of them suit the caches.
const chunk = 8 << 20

// direct is the largest write through the queue, which copies it at once: up to that size this is
// cheaper than mapping a staging buffer.
const direct = 64 << 10

// maxStaging bounds the pool of each direction.
const maxStaging = 3

// Write fills n bytes of buf at off (both multiples of 4). It calls fill for parts of staging
// memory in ascending order, with the position of each.
func (d *Device) Write(buf gpurun.Buffer, off, n int64, fill func(dst []byte, at int64)) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.end()
	b := own(buf)
	if n <= direct {
		tmp := make([]byte, n)
		fill(tmp, 0)
		return d.writeDirect(b, off, tmp)
	}
	for at := int64(0); at < n; at += chunk {
		size := min(chunk, n-at)
		s, err := d.takeStaging(upload)
		if err != nil {
			return err
		}
		if err := d.mapStaging(s); err != nil {
			return err
		}
		fill(d.memory(s)[:size], at)
		if err := d.unmapAndCopy(s, b, off+at, size); err != nil {
			return err
		}
	}
	return nil
}

// Read passes n bytes of buf at off (both multiples of 4) to drain, in parts and ascending order.
// It waits for the work submitted before.
func (d *Device) Read(buf gpurun.Buffer, off, n int64, drain func(src []byte, at int64)) error {
	if err := d.begin(); err != nil {
		return err
	}
	defer d.end()
	b := own(buf)
	type part struct {
		s        *Buffer
		at, size int64
	}
	var ahead []part // copies in progress; with two, one copies while the other drains
	defer func() {
		for _, p := range ahead { // after an error
			p.s.Release()
		}
	}()
	finish := func() error {
		p := ahead[0]
		ahead = ahead[1:]
		if err := d.mapStaging(p.s); err != nil {
			return err
		}
		drain(d.memory(p.s)[:p.size], p.at)
		return d.unmapAndKeep(p.s)
	}
	for at := int64(0); at < n; at += chunk {
		size := min(chunk, n-at)
		s, err := d.takeStaging(download)
		if err != nil {
			return err
		}
		ahead = append(ahead, part{s, at, size})
		if err := d.copy(b, off+at, s, 0, size); err != nil {
			return err
		}
		if len(ahead) == 2 {
			if err := finish(); err != nil {
				return err
			}
		}
	}
	for len(ahead) > 0 {
		if err := finish(); err != nil {
			return err
		}
	}
	return nil
}

// begin and end frame a transfer: in between it polls the device and accesses mapped memory without
// the lock. Close waits until no transfer is left.
func (d *Device) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	d.transfers++
	return nil
}

func (d *Device) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.transfers--
}

func (d *Device) writeDirect(b *Buffer, off int64, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	if err := b.ready(d, off, int64(len(data))); err != nil {
		return err
	}
	return d.check(d.queue.WriteBuffer(b.ref, uint64(off), data))
}

// slot is a direction's index in Device.staging.
var slot = map[gpurun.Use]int{upload: 0, download: 1}

func (d *Device) takeStaging(use gpurun.Use) (*Buffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	pool := &d.staging[slot[use]]
	if len(*pool) > 0 {
		s := (*pool)[0] // the oldest: its copy is most likely done
		*pool = append((*pool)[:0], (*pool)[1:]...)
		return s, nil
	}
	return d.newBuffer(chunk, use)
}

// keep returns a staging buffer to the pool. The caller holds the lock.
func (d *Device) keep(s *Buffer) {
	pool := &d.staging[slot[s.use]]
	if len(*pool) >= maxStaging {
		s.release()
		return
	}
	*pool = append(*pool, s)
}

// mapStaging maps a staging buffer that only the caller holds, and waits for the copies that use
// it. It must be called within a transfer.
func (d *Device) mapStaging(s *Buffer) error {
	d.mu.Lock()
	if err := d.usable(); err != nil || s.mapped {
		d.mu.Unlock()
		return err
	}
	m := startMap(s.ref, s.use == upload, s.size)
	d.mu.Unlock()
	// A request is always answered, if necessary with an error. Its memory must outlive the answer,
	// so nothing ends this loop early.
	d.spin(func() bool { poll(d.dev); return m.done() })
	d.mu.Lock()
	defer d.mu.Unlock()
	status := m.finish()
	if status == wgpu.BufferMapAsyncStatus_Success {
		s.mapped = true
		return d.check(nil)
	}
	s.release()
	if err := d.check(nil); err != nil {
		return err
	}
	if status == wgpu.BufferMapAsyncStatus_DeviceLost {
		return d.check(fmt.Errorf("gpu: the device was lost while a buffer was mapped"))
	}
	return fmt.Errorf("gpu: mapping a buffer failed with status %v", status)
}

// memory is the mapped range; mapStaging has set the state.
func (d *Device) memory(s *Buffer) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return mapped(s.ref, s.use == upload, s.size)
}

func (d *Device) unmap(s *Buffer) error {
	s.mapped = false
	return d.check(s.ref.Unmap())
}

func (d *Device) unmapAndKeep(s *Buffer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.unmap(s); err != nil {
		s.release()
		return err
	}
	d.keep(s)
	return nil
}

func (d *Device) unmapAndCopy(s, b *Buffer, off, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.unmap(s); err != nil {
		s.release()
		return err
	}
	err := d.copyLocked(s, 0, b, off, size)
	d.keep(s)
	return err
}

func (d *Device) copy(src *Buffer, srcOff int64, dst *Buffer, dstOff, n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.copyLocked(src, srcOff, dst, dstOff, n)
}

func (d *Device) copyLocked(src *Buffer, srcOff int64, dst *Buffer, dstOff, n int64) error {
	if err := d.usable(); err != nil {
		return err
	}
	if err := src.ready(d, srcOff, n); err != nil {
		return err
	}
	if err := dst.ready(d, dstOff, n); err != nil {
		return err
	}
	return d.encode(func(enc *wgpu.CommandEncoder) error {
		return enc.CopyBufferToBuffer(src.ref, uint64(srcOff), dst.ref, uint64(dstOff), uint64(n))
	})
}
