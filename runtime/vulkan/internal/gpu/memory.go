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

// Drivers limit the number of allocations to some thousands, and each takes long. Buffers below
// largeBuffer are therefore parts of slabs.
const (
	slabSize    = 64 << 20
	largeBuffer = 16 << 20
	reportSlab  = 1 << 20
	slabAlign   = 256 // at least the offset alignment of any binding
)

// slab is an allocation, and the native buffer that spans it. Its fields are guarded by the device's
// lock.
type slab struct {
	dev    *Device
	kind   int // of memory
	handle uint64
	memory uint64
	host   []byte   // the memory, if the host sees it
	holes  []extent // free parts, in ascending order, none next to another
	used   int      // buffers
}

type extent struct{ at, size int64 }

// Kinds of memory.
const (
	onDevice = iota // the device's own
	upload          // the host's, for writing
	download        // the host's, for reading
	reports         // seen by both: few words, which the host reads
)

// slabSizes are the sizes of slabs that have several buffers, by kind of memory.
var slabSizes = [...]int64{onDevice: slabSize, upload: 0, download: 0, reports: reportSlab}

// Buffer is device memory. Its fields are guarded by the device's lock.
type Buffer struct {
	slab *slab
	at   int64 // in the slab
	size int64 // as asked for, rounded up to 16
	use  gpurun.Use
	gone bool
	pins int // transfers that access the memory

	last     uint64 // the last submission of the first queue that uses it
	moved    uint64 // the last upload to it
	landings int    // see arrivals

	epoch uint64 // see hazard
	spans []span

	words  []byte // of a buffer of run-time words: what it contains, as far as it was written
	behind int    // so many of the first words' bytes are not in the memory yet
}

// Size is in bytes.
func (b *Buffer) Size() int64 { return b.size }

// own returns this package's buffer of b, or nil.
func own(b gpurun.Buffer) *Buffer {
	x, _ := b.(*Buffer)
	return x
}

// NewBuffer allocates; size is rounded up to 16 bytes.
func (d *Device) NewBuffer(size int64, use gpurun.Use) (gpurun.Buffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kind := onDevice
	if use == gpurun.Report {
		kind = reports
	}
	b, err := d.newBuffer(size, use, kind)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (d *Device) newBuffer(size int64, use gpurun.Use, kind int) (*Buffer, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	size = max((size+15)&^15, 16)
	if limit := d.adapter.info.Limits.Buffer; size > limit {
		return nil, fmt.Errorf("%w: a buffer of %d bytes is above the adapter's limit of %d", gpurun.ErrMemory, size, limit)
	}
	d.reap()
	room := (size + slabAlign - 1) &^ (slabAlign - 1)
	for _, s := range d.slabs {
		if at, ok := s.take(room, kind); ok {
			return &Buffer{slab: s, at: at, size: size, use: use}, nil
		}
	}
	// If there is no room for a whole slab there may be some for the buffer.
	whole := room
	if room < slabSizes[kind]/4 {
		whole = min(slabSizes[kind], d.adapter.info.Limits.Buffer&^(slabAlign-1))
	}
	s, err := d.newSlab(whole, kind)
	if errors.Is(err, gpurun.ErrMemory) && whole > room {
		s, err = d.newSlab(room, kind)
	}
	if err != nil {
		return nil, err
	}
	at, _ := s.take(room, kind)
	return &Buffer{slab: s, at: at, size: size, use: use}, nil
}

// newSlab allocates size bytes of a kind of memory.
func (d *Device) newSlab(size int64, kind int) (*slab, error) {
	s := &slab{dev: d, kind: kind, holes: []extent{{0, size}}}
	info := vk.BufferCreateInfo{
		SType: vk.StructureTypeBufferCreateInfo, Size: uint64(size),
		Usage: vk.BufferUsageTransferSrcBit | vk.BufferUsageTransferDstBit | vk.BufferUsageStorageBufferBit | vk.BufferUsageUniformBufferBit,
	}
	if second := d.adapter.second; second != nil && second.family != d.adapter.family {
		families := [2]uint32{d.adapter.family, second.family}
		info.SharingMode, info.QueueFamilyIndexCount, info.PQueueFamilyIndices = vk.SharingModeConcurrent, 2, unsafe.Pointer(&families)
	}
	if kind == reports && d.adapter.info.Skips {
		info.Usage |= vk.BufferUsageConditionalRenderingBitExt
	}
	if err := d.check("vkCreateBuffer", vk.Call(d.CreateBuffer, d.Handle, uintptr(unsafe.Pointer(&info)), 0, uintptr(unsafe.Pointer(&s.handle)))); err != nil {
		return nil, err
	}
	var need vk.MemoryRequirements
	vk.Call(d.GetBufferMemoryRequirements, d.Handle, uintptr(s.handle), uintptr(unsafe.Pointer(&need)))
	index, visible := d.adapter.memoryType(need.MemoryTypeBits, kind)
	visible = visible && (kind != onDevice || !d.apart)
	alloc := vk.MemoryAllocateInfo{SType: vk.StructureTypeMemoryAllocateInfo, AllocationSize: need.Size, MemoryTypeIndex: index}
	err := d.check("vkAllocateMemory", vk.Call(d.AllocateMemory, d.Handle, uintptr(unsafe.Pointer(&alloc)), 0, uintptr(unsafe.Pointer(&s.memory))))
	if err == nil {
		err = d.check("vkBindBufferMemory", vk.Call(d.BindBufferMemory, d.Handle, uintptr(s.handle), uintptr(s.memory), 0))
	}
	if err == nil && visible {
		var at unsafe.Pointer
		if err = d.check("vkMapMemory", vk.Call(d.MapMemory, d.Handle, uintptr(s.memory), 0, uintptr(size), 0, uintptr(unsafe.Pointer(&at)))); err == nil {
			s.host = unsafe.Slice((*byte)(at), size)
		}
	}
	if err != nil {
		s.destroy()
		return nil, err
	}
	d.slabs = append(d.slabs, s)
	return s, nil
}

func (s *slab) destroy() {
	vk.Call(s.dev.DestroyBuffer, s.dev.Handle, uintptr(s.handle), 0)
	vk.Call(s.dev.FreeMemory, s.dev.Handle, uintptr(s.memory), 0) // unmaps it
}

// memoryType chooses the best of the allowed types for a kind of memory, and reports whether the
// host sees it at any time, without flushing.
func (a *adapter) memoryType(allowed uint32, kind int) (index uint32, visible bool) {
	const host = vk.MemoryPropertyHostVisibleBit | vk.MemoryPropertyHostCoherentBit
	best := uint64(0)
	for i := range a.memory.MemoryTypeCount {
		t := a.memory.MemoryTypes[i]
		flags := t.PropertyFlags
		seen, cached := flags&host == host, flags&vk.MemoryPropertyHostCachedBit != 0
		local := flags&vk.MemoryPropertyDeviceLocalBit != 0
		// Better properties count more than a larger heap.
		points := []bool{local}
		switch {
		case kind == onDevice && a.info.Kind != "DiscreteGPU":
			points = []bool{local, seen && cached}
		case kind == reports:
			points = []bool{seen, local}
		case kind == upload:
			points = []bool{seen, !cached, !local}
		case kind == download:
			points = []bool{seen, cached, !local}
		}
		score := a.memory.MemoryHeaps[t.HeapIndex].Size>>20 + 1
		for j, p := range points {
			if p {
				score += 1 << (60 - 8*j)
			}
		}
		if allowed>>i&1 != 0 && score > best {
			best, index, visible = score, i, seen && (cached || kind != onDevice)
		}
	}
	return index, visible
}

// take finds room in a slab, at its first hole that is large enough.
func (s *slab) take(size int64, kind int) (at int64, ok bool) {
	if s.kind != kind {
		return 0, false
	}
	i := slices.IndexFunc(s.holes, func(h extent) bool { return h.size >= size })
	if i < 0 {
		return 0, false
	}
	at = s.holes[i].at
	s.holes[i].at += size
	if s.holes[i].size -= size; s.holes[i].size == 0 {
		s.holes = slices.Delete(s.holes, i, i+1)
	}
	s.used++
	return at, true
}

// give returns room to a slab. An empty slab is freed, except the last one for small buffers, which
// would soon be made again.
func (s *slab) give(at, size int64) {
	i, _ := slices.BinarySearchFunc(s.holes, at, func(h extent, at int64) int { return int(min(max(h.at-at, -1), 1)) })
	s.holes = slices.Insert(s.holes, i, extent{at, size})
	if i+1 < len(s.holes) && at+size == s.holes[i+1].at {
		s.holes[i].size += s.holes[i+1].size
		s.holes = slices.Delete(s.holes, i+1, i+2)
	}
	if i > 0 && s.holes[i-1].at+s.holes[i-1].size == at {
		s.holes[i-1].size += s.holes[i].size
		s.holes = slices.Delete(s.holes, i, i+1)
	}
	if s.used--; s.used > 0 {
		return
	}
	d := s.dev
	same := func(x *slab) bool {
		return x != s && x.kind == s.kind && x.holes != nil && x.holes[0].size >= slabSizes[x.kind]/4
	}
	if s.holes[0].size == slabSizes[s.kind] && !slices.ContainsFunc(d.slabs, same) {
		return
	}
	d.slabs = slices.DeleteFunc(d.slabs, func(x *slab) bool { return x == s })
	s.destroy()
}

// host is the part of the host's memory at an offset, nil if the host does not see it.
func (b *Buffer) host(off, n int64) []byte {
	if b.slab.host == nil {
		return nil
	}
	return b.slab.host[b.at+off:][:n:n]
}

// Release frees the memory after submitted work is done with it. Calling it again does nothing.
func (b *Buffer) Release() {
	d := b.slab.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release(b)
}

func (d *Device) release(b *Buffer) {
	if b.gone || d.closed {
		return
	}
	b.gone = true
	d.forget(b)
	if b.pins == 0 {
		d.buryBuffer(b)
	}
}

func (d *Device) buryBuffer(b *Buffer) {
	if d.usable() != nil {
		return
	}
	room := (b.size + slabAlign - 1) &^ (slabAlign - 1)
	d.bury(b.moved, func() { b.slab.give(b.at, room) })
}

// pin keeps a buffer's memory until unpin is called, even if the buffer is released meanwhile. The
// caller holds the lock.
func (b *Buffer) pin() { b.pins++ }

func (b *Buffer) unpin() {
	if b.pins--; b.gone && b.pins == 0 {
		b.slab.dev.buryBuffer(b)
	}
}

// ready returns the reason why a buffer cannot be part of submitted work.
func (b *Buffer) ready(d *Device, off, size int64) error {
	switch {
	case b == nil || b.slab.dev != d:
		return errors.New("gpu: buffer of another device")
	case b.gone:
		return errors.New("gpu: buffer was released")
	case off < 0 || size <= 0 || off > b.size-size:
		return fmt.Errorf("gpu: bytes [%d,%d) of a buffer of %d", off, off+size, b.size)
	}
	return nil
}
