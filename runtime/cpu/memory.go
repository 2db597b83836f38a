package cpu

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/hostmem"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// buffer is a block of the pool. It is never moved.
type buffer struct {
	p      unsafe.Pointer
	bytes  int64  // requested size
	block  int64  // size of the block in the pool
	shared []byte // p as memory of Go's heap, see AllocShared; nil for pool memory
	freed  bool
}

// Bytes returns the usable size.
func (b *buffer) Bytes() int64 { return b.bytes }

// memory keeps freed blocks by size class, because touching fresh pages costs more than most
// kernels. It keeps at most half of its limit, to leave memory for other processes and for blocks
// of other sizes.
type memory struct {
	mu     sync.Mutex
	asked  int64 // the program's limit, 0 for none
	looked bool  // limit is final
	limit  int64 // most bytes of live and pooled blocks together
	keep   int64 // most bytes of pooled blocks
	free   map[int64][]unsafe.Pointer
	system regions
	shared atomic.Int64 // number of live buffers in Go's heap

	allocs, hits, live, peak, pooled int64
	lent                             int64        // bytes lent to launches, see borrow
	refused                          atomic.Int64 // launches that got no memory and took a slower way
}

// pageAligned is the size from which blocks are whole huge pages.
const pageAligned = 4 << 20

// unlooked is the number of bytes that can be allocated before the system's limit is read: reading
// the files of control groups takes as long as all other work of opening a device.
const unlooked = 64 << 20

func newMemory(limit int64) *memory {
	return &memory{asked: limit, limit: unlooked, keep: unlooked, free: map[int64][]unsafe.Pointer{}, system: newRegions()}
}

// look finds the limits.
func (m *memory) look() {
	if m.looked {
		return
	}
	m.looked = true
	m.limit = hostmem.Limit(1 << 46) // more than any machine has: then the allocation itself finds the end
	if m.asked > 0 {
		m.limit = min(m.limit, m.asked)
	}
	m.keep = m.limit / 2
}

// sizeClass rounds up to one of four steps per power of two; from pageAligned on to whole huge
// pages.
func sizeClass(n int64) int64 {
	if n <= 256 {
		return (max(n, 1) + 63) &^ 63
	}
	step := int64(1) << (bits.Len64(uint64(n-1)) - 3)
	if n >= pageAligned {
		step = max(step/2, 2<<20)
	}
	return (n + step - 1) / step * step
}

// Alloc returns memory with undefined contents.
func (d *device) Alloc(n int64) (runtime.Buffer, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.life.RUnlock()
	return d.mem.alloc(n)
}

// grant returns an error for a size that can never be allocated.
func (m *memory) grant(n int64) error {
	if err := fault.Hit(fault.Alloc); err != nil {
		return fmt.Errorf("cpu: %w: %w", runtime.ErrOutOfMemory, err)
	}
	if m.asked > 0 || n > (m.limit-m.used()-m.pooled)/2 { // a block is less than twice as large as requested
		m.look()
	}
	if n < 0 || n > m.limit {
		return m.refuse(n)
	}
	return nil
}

func (m *memory) refuse(n int64) error {
	return fmt.Errorf("cpu: %w: %d bytes with %d of %d in use", runtime.ErrOutOfMemory, n, m.used(), m.limit)
}

// used returns the bytes of blocks outside the pool.
func (m *memory) used() int64 { return m.live + m.lent }

func (m *memory) alloc(n int64) (runtime.Buffer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.grant(n); err != nil {
		return nil, err
	}
	p, size, pooled := m.block(n)
	if p == nil {
		return nil, m.refuse(n)
	}
	if pooled {
		m.hits++
	}
	return m.hand(p, n, size), nil
}

// block returns a block of at least n bytes, from the pool if possible; p is nil if memory is
// refused.
func (m *memory) block(n int64) (p unsafe.Pointer, size int64, pooled bool) {
	size = sizeClass(n)
	if size > m.limit-m.used() { // the class does not fit, the bytes themselves may
		size = (n + 4095) &^ 4095
	}
	if len(m.free[size]) > 0 {
		return m.take(size), size, true
	}
	if m.used()+m.pooled+size > m.limit {
		m.trim(m.limit - m.used() - size)
	}
	if m.used()+size > m.limit {
		return nil, 0, false
	}
	if p = m.system.alloc(size); p == nil {
		m.trim(0)
		p = m.system.alloc(size)
	}
	return p, size, false
}

// scratch is a block that a launch borrows; p is nil if there is none.
type scratch struct {
	p    unsafe.Pointer
	size int64
}

// borrow allocates a block of at least n bytes for a launch. The block counts towards the limit,
// but not as one of the program's allocations.
func (m *memory) borrow(n int64) (scratch, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked > 0 || n > (m.limit-m.used()-m.pooled)/2 {
		m.look()
	}
	p, size, _ := m.block(n)
	if p == nil {
		return scratch{}, false
	}
	m.lent += size
	return scratch{p, size}, true
}

// repay returns a borrowed block.
func (m *memory) repay(b *scratch) {
	if b.p == nil {
		return
	}
	m.mu.Lock()
	m.lent -= b.size
	m.pool(b.p, b.size)
	m.mu.Unlock()
	*b = scratch{}
}

func (m *memory) hand(p unsafe.Pointer, n, size int64) *buffer {
	m.allocs++
	m.live += size
	m.peak = max(m.peak, m.live)
	return &buffer{p: p, bytes: n, block: size}
}

// Free returns a buffer to the pool. Freeing it again does nothing.
func (d *device) Free(b runtime.Buffer) {
	x, ok := b.(*buffer)
	if !ok || d.enter() != nil {
		return
	}
	defer d.life.RUnlock()
	d.mem.give(x)
}

// give returns a buffer to the pool.
func (m *memory) give(x *buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x.freed {
		return
	}
	x.freed = true
	m.release(x)
}

func (m *memory) release(b *buffer) {
	m.live -= b.block
	if b.shared != nil { // freed by the garbage collector once no slice of it is left
		m.shared.Add(-1)
		return
	}
	m.pool(b.p, b.block)
}

// pool keeps a block.
func (m *memory) pool(p unsafe.Pointer, size int64) {
	m.free[size] = append(m.free[size], p)
	m.pooled += size
	if m.pooled > m.keep {
		m.trim(m.keep)
	}
}

// trim returns pooled blocks to the system until at most keep bytes are left. It begins with the
// largest blocks, which reduce the sum fastest.
func (m *memory) trim(keep int64) {
	for m.pooled > max(keep, 0) {
		var largest int64
		for size, list := range m.free {
			if len(list) > 0 {
				largest = max(largest, size)
			}
		}
		m.system.give(m.take(largest))
	}
}

// take removes a pooled block of a size that has one. For a size class the empty list stays, so
// that pooling a block again allocates nothing. Other sizes occur near the limit only; their empty
// lists are deleted.
func (m *memory) take(size int64) unsafe.Pointer {
	list := m.free[size]
	p := list[len(list)-1]
	if list = list[:len(list)-1]; len(list) > 0 || size == sizeClass(size) {
		m.free[size] = list
	} else {
		delete(m.free, size)
	}
	m.pooled -= size
	return p
}

func (m *memory) stats(s *runtime.Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Allocs, s.AllocBytes, s.PeakBytes, s.PoolBytes, s.PoolHits = m.allocs, m.live, m.peak, m.pooled, m.hits
}

// ResetPeak restarts PeakBytes from the bytes that are live now.
func (d *device) ResetPeak() {
	m := d.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peak = m.live
}

func (m *memory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.system.close()
	clear(m.free)
}

// Write copies elements into a buffer; off counts elements.
func (d *device) Write(dst runtime.Buffer, dt ir.DType, off int64, src []byte) error {
	return d.transfer(dst, dt, off, src, true)
}

// Read copies elements out of a buffer; off counts elements.
func (d *device) Read(dst []byte, dt ir.DType, src runtime.Buffer, off int64) error {
	return d.transfer(src, dt, off, dst, false)
}

// parallelCopy is the size from which a copy is worth several threads.
const parallelCopy = 1 << 20

func (d *device) transfer(b runtime.Buffer, dt ir.DType, off int64, host []byte, write bool) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.life.RUnlock()
	x, ok := b.(*buffer)
	n, size := int64(len(host)), int64(dt.Size())
	if !ok || size == 0 || x.freed || off < 0 || off > x.bytes/size || n > x.bytes-off*size {
		return fmt.Errorf("cpu: %d bytes of %v at element %d do not fit the buffer", n, dt, off)
	}
	if n == 0 {
		return nil
	}
	device := unsafe.Slice((*byte)(unsafe.Add(x.p, off*size)), n)
	dst, src := host, device
	if write {
		dst, src = device, host
	}
	if n < parallelCopy {
		copy(dst, src)
		return nil
	}
	w := d.wide.tryLend()
	if w == nil { // all crews are in use
		copy(dst, src)
		return nil
	}
	w.exec.copyBytes(dst, src)
	d.wide.giveBack(w)
	return nil
}
