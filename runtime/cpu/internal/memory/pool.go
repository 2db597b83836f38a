package memory

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/hostmem"
	"github.com/millrace-go/millrace/runtime"
)

// Pool keeps freed blocks by size class, because touching fresh pages costs more than most
// kernels. It keeps at most half of its limit, to leave memory for other processes and for blocks
// of other sizes.
type Pool struct {
	mu     sync.Mutex
	asked  int64 // the program's limit, 0 for none
	looked bool  // limit is final
	limit  int64 // most bytes of live and pooled blocks together
	keep   int64 // most bytes of pooled blocks
	free   map[int64][]unsafe.Pointer
	system regions
	shared atomic.Int64 // number of live buffers of AllocShared

	allocs, hits, live, peak, pooled int64
	lent                             int64        // bytes lent to launches, see Borrow
	refused                          atomic.Int64 // launches that got no memory and took a slower way
}

// Lent returns the bytes that launches have borrowed.
func (m *Pool) Lent() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lent
}

// NoteRefused counts a launch that got no memory and took a slower way.
func (m *Pool) NoteRefused() { m.refused.Add(1) }

// Refused returns the count of NoteRefused.
func (m *Pool) Refused() int64 { return m.refused.Load() }

// HasShared reports that there are buffers of AllocShared.
func (m *Pool) HasShared() bool { return m.shared.Load() > 0 }

// pageAligned is the size from which blocks are whole huge pages.
const pageAligned = 4 << 20

// unlooked is the number of bytes that can be allocated before the system's limit is read: reading
// the files of control groups takes as long as all other work of opening a device.
const unlooked = 64 << 20

// New returns a pool of at most limit bytes, or of as many as the system has if limit is 0.
func New(limit int64) *Pool {
	return &Pool{asked: limit, limit: unlooked, keep: unlooked, free: map[int64][]unsafe.Pointer{}, system: newRegions()}
}

// look finds the limits.
func (m *Pool) look() {
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

// SizeClass rounds up to one of four steps per power of two; from pageAligned on to whole huge
// pages.
func SizeClass(n int64) int64 {
	if n <= 256 {
		return (max(n, 1) + 63) &^ 63
	}
	step := int64(1) << (bits.Len64(uint64(n-1)) - 3)
	if n >= pageAligned {
		step = max(step/2, 2<<20)
	}
	return (n + step - 1) / step * step
}

// grant returns an error for a size that can never be allocated.
func (m *Pool) grant(n int64) error {
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

// refuse returns the error of an allocation that does not fit.
func (m *Pool) refuse(n int64) error {
	return fmt.Errorf("cpu: %w: %d bytes with %d of %d in use", runtime.ErrOutOfMemory, n, m.used(), m.limit)
}

// used returns the bytes of blocks outside the pool.
func (m *Pool) used() int64 { return m.live + m.lent }

// Alloc returns a buffer of n bytes, with undefined contents.
func (m *Pool) Alloc(n int64) (runtime.Buffer, error) {
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
func (m *Pool) block(n int64) (p unsafe.Pointer, size int64, pooled bool) {
	size = SizeClass(n)
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

// Scratch is a block that a launch borrows; P is nil if there is none.
type Scratch struct {
	P    unsafe.Pointer
	Size int64
}

// Borrow allocates a block of at least n bytes for a launch. The block counts towards the limit,
// but not as one of the program's allocations.
func (m *Pool) Borrow(n int64) (Scratch, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked > 0 || n > (m.limit-m.used()-m.pooled)/2 {
		m.look()
	}
	p, size, _ := m.block(n)
	if p == nil {
		return Scratch{}, false
	}
	m.lent += size
	return Scratch{p, size}, true
}

// Repay returns a borrowed block.
func (m *Pool) Repay(b *Scratch) {
	if b.P == nil {
		return
	}
	m.mu.Lock()
	m.lent -= b.Size
	m.put(b.P, b.Size)
	m.mu.Unlock()
	*b = Scratch{}
}

// hand returns a block as a buffer of n bytes, and counts it.
func (m *Pool) hand(p unsafe.Pointer, n, size int64) *Buffer {
	m.allocs++
	m.live += size
	m.peak = max(m.peak, m.live)
	return &Buffer{P: p, bytes: n, block: size}
}

// Free returns a buffer to the pool.
func (m *Pool) Free(x *Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x.freed {
		return
	}
	x.freed = true
	if !x.lost {
		m.release(x)
	}
}

// Abandon keeps the memory of a buffer for ever: it stays mapped, and counts as live. Memory of Go's
// heap stays while anything refers to it.
func (m *Pool) Abandon(x *Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if x.freed || x.shared != nil {
		return
	}
	x.lost = true
	m.system.lose(x.P)
}

// release ends the life of a buffer.
func (m *Pool) release(b *Buffer) {
	m.live -= b.block
	if b.shared != nil { // freed by the garbage collector once no slice of it is left
		m.shared.Add(-1)
		return
	}
	m.put(b.P, b.block)
}

// put keeps a block.
func (m *Pool) put(p unsafe.Pointer, size int64) {
	m.free[size] = append(m.free[size], p)
	m.pooled += size
	if m.pooled > m.keep {
		m.trim(m.keep)
	}
}

// trim returns pooled blocks to the system until at most keep bytes are left. It begins with the
// largest blocks, which reduce the sum fastest.
func (m *Pool) trim(keep int64) {
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
func (m *Pool) take(size int64) unsafe.Pointer {
	list := m.free[size]
	p := list[len(list)-1]
	if list = list[:len(list)-1]; len(list) > 0 || size == SizeClass(size) {
		m.free[size] = list
	} else {
		delete(m.free, size)
	}
	m.pooled -= size
	return p
}

// Stats sets the part of the statistics that is about memory.
func (m *Pool) Stats(s *runtime.Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Allocs, s.AllocBytes, s.PeakBytes, s.PoolBytes, s.PoolHits = m.allocs, m.live, m.peak, m.pooled, m.hits
}

// ResetPeak restarts the peak from the bytes that are live now.
func (m *Pool) ResetPeak() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peak = m.live
}

// Close frees all memory.
func (m *Pool) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.system.close()
	clear(m.free)
}
