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
	bytes  int64  // asked for
	block  int64  // taken from the pool
	shared []byte // p as memory of Go's heap, see AllocShared; nil where it is the pool's
	freed  bool
}

// Bytes is the usable size.
func (b *buffer) Bytes() int64 { return b.bytes }

// memory keeps freed blocks by size class, because touching fresh pages costs
// more than most kernels: up to half of what it may have, so that the rest of the
// machine's memory is there for others and for blocks of sizes that nobody freed.
type memory struct {
	mu     sync.Mutex
	asked  int64 // the limit that the program wants, 0 for none of its own
	looked bool  // limit is what it will be
	limit  int64 // bytes of live and pooled blocks together
	keep   int64 // bytes of pooled blocks
	free   map[int64][]unsafe.Pointer
	system regions
	shared atomic.Int64 // live buffers of Go's heap

	allocs, hits, live, peak, pooled int64
	lent                             int64        // to launches, see borrow
	refused                          atomic.Int64 // launches that were lent nothing, and took longer
}

// pageAligned is the size from which blocks come in whole huge pages.
const pageAligned = 4 << 20

// unlooked bytes may be had without looking at what the system grants: to read the
// files of control groups takes as long as all else of opening a device.
const unlooked = 64 << 20

func newMemory(limit int64) *memory {
	return &memory{asked: limit, limit: unlooked, keep: unlooked, free: map[int64][]unsafe.Pointer{}, system: newRegions()}
}

// look finds the limits out.
func (m *memory) look() {
	if m.looked {
		return
	}
	m.looked = true
	m.limit = hostmem.Limit(1 << 46) // more than any has: allocation itself then finds the end
	if m.asked > 0 {
		m.limit = min(m.limit, m.asked)
	}
	m.keep = m.limit / 2
}

// sizeClass rounds up to four steps per power of two, whole huge pages from
// pageAligned on.
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

// grant reports a size that nobody gets.
func (m *memory) grant(n int64) error {
	if err := fault.Hit(fault.Alloc); err != nil {
		return fmt.Errorf("cpu: %w: %w", runtime.ErrOutOfMemory, err)
	}
	if m.asked > 0 || n > (m.limit-m.used()-m.pooled)/2 { // a block is less than twice as large
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

// used are the bytes that the pool does not have.
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

// block is one of at least n bytes, from the pool if it has one; nil where it is refused.
func (m *memory) block(n int64) (p unsafe.Pointer, size int64, pooled bool) {
	size = sizeClass(n)
	if size > m.limit-m.used() { // the class does not fit, the bytes may
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

// scratch is a block that a launch borrows; none where p is nil.
type scratch struct {
	p    unsafe.Pointer
	size int64
}

// borrow has a block for a launch, of at least n bytes. It counts towards the limit, and
// is none of the program's allocations.
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

// repay takes what was borrowed back.
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

// Free gives a buffer back. Freeing one twice does nothing.
func (d *device) Free(b runtime.Buffer) {
	x, ok := b.(*buffer)
	if !ok || d.enter() != nil {
		return
	}
	defer d.life.RUnlock()
	d.mem.give(x)
}

// give takes a buffer back.
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
	if b.shared != nil { // the collector's, once nobody holds a slice of it
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

// trim gives pooled blocks back to the system until at most keep bytes are left,
// the largest first: they are what brings the sum down.
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

// take takes a pooled block of a size that there is one of. A size without any is
// remembered, so that to pool a block again takes no memory, if it is that of a class:
// near the limit blocks have any.
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

// ResetPeak makes PeakBytes start again from what is live.
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
	if w == nil { // all are busy
		copy(dst, src)
		return nil
	}
	w.exec.copyBytes(dst, src)
	d.wide.giveBack(w)
	return nil
}
