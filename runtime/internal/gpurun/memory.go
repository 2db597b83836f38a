package gpurun

import (
	"container/heap"
	"errors"
	"maps"
	"math/bits"
	"slices"
	"sync"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// chunk is memory of the device. Chunks are numbered in the order in which they were made.
type chunk struct {
	mem    Buffer
	number int64
}

// buffer is an allocation: bytes is the requested size, its memory may be larger.
type buffer struct {
	owner *memory
	chunk
	bytes int64
	freed bool
}

// Bytes is the usable size.
func (b *buffer) Bytes() int64 { return b.bytes }

// memory is a pool by size class. WebGPU fills new memory with zeros at its first use, which costs
// hundreds of times as much as reuse, so freed buffers are kept. All work goes through one queue. A
// buffer may therefore be reused while submitted work still uses it: later work runs later. Of the
// free chunks of a size the oldest is used first. A loop therefore meets the same memory again,
// however the order differs in which its tensors are freed.
type memory struct {
	api
	gpu   Device
	limit int64 // bytes, live and pooled; 0: none

	mu     sync.Mutex
	pool   map[int64]*oldest // by size
	homes  map[Buffer]*home  // of memory that returns to the same result
	made   int64             // chunks
	closed bool

	allocs, hits, live, peak, pooled int64

	most  int64 // largest number of live bytes so far
	words int64 // bytes of buffers that hold no tensors
}

// poolFloor bounds the pool together with the live bytes' peak: it holds at most twice that peak,
// or poolFloor. A program of constant sizes thus finds its buffers again, and one with ever new
// sizes does not fill the device.
const poolFloor = 256 << 20

// class rounds a size up to one of eight steps per power of two. Tensors of similar sizes then
// share buffers, and at most an eighth is wasted.
func class(n, largest int64) int64 {
	if n <= 256 {
		return 256
	}
	step := int64(1) << max(bits.Len64(uint64(n-1))-4, 8)
	c := (n + step - 1) &^ (step - 1)
	if c > largest {
		return (n + 15) &^ 15
	}
	return c
}

func (m *memory) alloc(n int64) (*buffer, error) { return m.allocAt(nil, n) }

// allocAt allocates memory, in a home if there is one.
func (m *memory) allocAt(h *home, n int64) (*buffer, error) {
	if err := fault.Hit(fault.Alloc); err != nil {
		return nil, m.errorf("%w: %w", runtime.ErrOutOfMemory, err)
	}
	largest := m.gpu.Info().Limits.Buffer
	if n < 0 || n > largest {
		return nil, m.errorf("%w: a buffer of %d bytes was requested, the adapter's limit is %d", runtime.ErrOutOfMemory, n, largest)
	}
	size := class(n, largest)
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := h.take(size)
	if !ok && m.pool[size] != nil {
		c, ok = m.take(size), true
		h.settle(c.mem)
	}
	if ok {
		m.hits++
		return m.hand(c, n), nil
	}
	mem, err := m.make(size, Storage, m.limit)
	if err != nil {
		return nil, err
	}
	h.settle(mem)
	m.made++
	return m.hand(chunk{mem, m.made}, n), nil
}

// make makes a buffer. If memory lacks, it releases pooled buffers first. A nonzero limit bounds
// the live bytes. The caller holds the lock.
func (m *memory) make(size int64, use Use, limit int64) (Buffer, error) {
	if m.limit > 0 && m.live+m.pooled+m.words+size > m.limit {
		m.trim(0)
		if limit > 0 && m.live+size > limit {
			return nil, m.errorf("%w: %d bytes were requested, %d are in use, the limit is %d", runtime.ErrOutOfMemory, size, m.live, m.limit)
		}
	}
	mem, err := m.gpu.NewBuffer(size, use)
	if errors.Is(err, ErrMemory) && m.giveWay() {
		mem, err = m.gpu.NewBuffer(size, use)
	}
	return mem, m.deviceError(err)
}

// giveWay releases all pooled buffers, and reports whether there were any. The driver frees them
// after submitted work is done. The caller holds the lock.
func (m *memory) giveWay() bool {
	if m.pooled == 0 {
		return false
	}
	m.trim(0)
	return m.gpu.Wait() == nil
}

// makeWords makes a buffer without tensors: for run-time words or reports of faults. The limit does
// not apply: nothing runs without these buffers, and they are few. dropWords releases one.
func (m *memory) makeWords(size int64, use Use) (Buffer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, err := m.make(size, use, 0)
	if err == nil {
		m.words += b.Size()
	}
	return b, err
}

func (m *memory) dropWords(b Buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.words -= b.Size()
		b.Release()
	}
}

// again makes a repeatable call of the device, and repeats it if memory was lacking and the pool
// had some.
func (m *memory) again(call func() error) error {
	err := call()
	if m.relieve(err) {
		err = call()
	}
	return m.deviceError(err)
}

// relieve releases the pool if err says that the device lacked memory, and reports whether it
// released any.
func (m *memory) relieve(err error) bool {
	if !errors.Is(err, ErrMemory) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.giveWay()
}

// hand counts a buffer as live. The caller holds the lock.
func (m *memory) hand(c chunk, n int64) *buffer {
	m.allocs++
	m.live += c.mem.Size()
	m.peak, m.most = max(m.peak, m.live), max(m.most, m.live)
	return &buffer{owner: m, chunk: c, bytes: n}
}

// trim releases pooled buffers, the largest first, until keep bytes are left. The caller holds the
// lock.
func (m *memory) trim(keep int64) {
	for m.pooled > keep {
		if len(m.pool) == 0 {
			m.leaveHomes()
		}
		size := slices.Max(slices.Collect(maps.Keys(m.pool)))
		m.take(size).mem.Release()
	}
}

// put puts free memory into the pool. The caller holds the lock.
func (m *memory) put(c chunk) {
	size := c.mem.Size()
	if m.pool[size] == nil {
		m.pool[size] = new(oldest)
	}
	heap.Push(m.pool[size], c)
}

// take removes the oldest chunk of a size from the pool, which must have one. The caller holds the
// lock.
func (m *memory) take(size int64) chunk {
	free := m.pool[size]
	c := heap.Pop(free).(chunk)
	if free.Len() == 0 {
		delete(m.pool, size)
	}
	m.pooled -= size
	return c
}

// oldest is a heap of chunks.
type oldest []chunk

func (x oldest) Len() int           { return len(x) }
func (x oldest) Less(i, j int) bool { return x[i].number < x[j].number }
func (x oldest) Swap(i, j int)      { x[i], x[j] = x[j], x[i] }
func (x *oldest) Push(c any)        { *x = append(*x, c.(chunk)) }

func (x *oldest) Pop() any {
	last := len(*x) - 1
	c := (*x)[last]
	(*x)[last] = chunk{}
	*x = (*x)[:last]
	return c
}

func (m *memory) free(b *buffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.freed || m.closed {
		return
	}
	b.freed = true
	size := b.mem.Size()
	m.live -= size
	if h := m.homes[b.mem]; h != nil {
		h.free = append(h.free, b.chunk)
	} else {
		m.put(b.chunk)
	}
	m.pooled += size
	m.trim(max(poolFloor, 2*m.most))
}

// own returns the buffer behind b, if it is live and of this device.
func (m *memory) own(b runtime.Buffer) (*buffer, error) {
	x, ok := b.(*buffer)
	if !ok || x.owner != m {
		return nil, m.errorf("the buffer belongs to another device")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if x.freed {
		return nil, m.errorf("the buffer was freed")
	}
	return x, nil
}

// Lend returns the Device's memory behind a buffer, after all writes to it are done.
func (d *Runner) Lend(b runtime.Buffer) (Buffer, error) {
	x, err := d.memory.own(b)
	if err == nil {
		err = d.Wait(false)
	}
	if err != nil {
		return nil, err
	}
	return x.mem, nil
}

func (m *memory) stats(s *runtime.Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.Allocs, s.PoolHits, s.AllocBytes, s.PeakBytes, s.PoolBytes = m.allocs, m.hits, m.live, m.peak, m.pooled+m.words
}

// ResetPeak restarts PeakBytes from the live bytes.
func (d *Runner) ResetPeak() {
	m := &d.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peak = m.live
}

// close drops the pool: the device has freed the memory.
func (m *memory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.pool, m.homes, m.pooled, m.words = true, nil, nil, 0, 0
}

// Alloc returns memory with undefined contents.
func (d *Runner) Alloc(n int64) (runtime.Buffer, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	b, err := d.memory.alloc(n)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Free gives a buffer to the pool. Freeing it twice does nothing.
func (d *Runner) Free(b runtime.Buffer) {
	if x, ok := b.(*buffer); ok && x.owner == &d.memory {
		d.memory.free(x)
	}
}
