package memory

import (
	"errors"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/runtime"
)

// token is the part of a watched block that outlives the block.
type token struct {
	buf   runtime.Buffer
	bytes int64
	freed atomic.Bool
	reads atomic.Uint64 // finished reads by the host: see ReleaseRead
	index int           // in Pool.table

	pinned bool // copy of Block.pinned; under the pool's lock
}

// Pool tracks the live buffers of one device.
type Pool struct {
	*device.Base
	yield func() bool // makes other parts give up memory that they can do without; reports whether any did
	drain func()      // returns when all jobs submitted before the call have run

	mu     sync.Mutex
	table  []watched
	open   []int // free places in table
	recent recentList
	noted  []weak.Pointer[Block] // all live blocks, for a profile
	swept  atomic.Bool           // no collection since the table was swept

	Live    atomic.Int64
	Pinned  atomic.Int64
	Collect atomic.Int64 // number of forced collections

	// threshold is the number of live bytes that forces a collection.
	threshold atomic.Int64
	spent     time.Duration
	since     time.Time
}

type watched struct {
	tok *token
	blk weak.Pointer[Block]
}

const firstThreshold = 1 << 30

// Init prepares the pool of an open device.
func (m *Pool) Init(d *device.Base, yield func() bool, drain func()) {
	m.Base, m.yield, m.drain = d, yield, drain
	m.threshold.Store(firstThreshold)
	m.since = time.Now()
}

// Alloc makes a block with one reader. If collect is set, Alloc may collect garbage and wait for
// jobs to find room; a running job must not set it.
func (m *Pool) Alloc(bytes int64, collect bool) (*Block, error) {
	return m.Take(m.Driver.Alloc, bytes, collect)
}

// Take is Alloc with another source of device memory.
func (m *Pool) Take(from func(int64) (runtime.Buffer, error), bytes int64, collect bool) (*Block, error) {
	m.Boundary()
	if collect && m.Live.Load()+bytes > m.threshold.Load() {
		m.Reclaim(false)
	}
	buf, err := from(bytes)
	if errors.Is(err, runtime.ErrOutOfMemory) && m.yield() {
		buf, err = from(bytes)
	}
	if collect && errors.Is(err, runtime.ErrOutOfMemory) {
		m.Reclaim(true)
		buf, err = from(bytes)
	}
	if collect && errors.Is(err, runtime.ErrOutOfMemory) {
		m.drain() // queued jobs hold the blocks they use
		m.Reclaim(true)
		buf, err = from(bytes)
	}
	if err != nil {
		return nil, err
	}
	b := &Block{Mem: m, Buf: buf, Bytes: bytes}
	b.Dense.Block = b
	b.Refs.Store(1)
	b.uses.Store(1)
	m.Live.Add(bytes)
	if m.Profile != nil {
		m.note(b)
	}
	return b, nil
}

func (m *Pool) free(b *Block) {
	switch t := b.tok.Swap(isGone); t {
	case nil:
	case isGone:
		return
	case isRecent:
		m.recent.leave(b)
	default:
		if t.freed.Swap(true) {
			return
		}
		m.forget(t)
	}
	m.Live.Add(-b.Bytes)
	b.unuse() // jobs may still use it
}

// canary is an unreachable object whose cleanup tells that a collection has run. The pool needs to
// know no more. One cleanup per collection replaces one per buffer, whose cost would show in small
// ops.
type canary struct{ _ *byte }

// listen arranges for the next collection to be noticed. The cleanup only sets a mark, and the next
// Boundary acts on it. The timing of the collector therefore never changes what a stream records.
func (m *Pool) listen() {
	m.swept.Store(true)
	goruntime.AddCleanup(new(canary), func(m *Pool) { m.swept.Store(false) }, m)
}

// Boundary frees the watched blocks that a collection since the last Boundary found dead.
func (m *Pool) Boundary() {
	if m.swept.Load() {
		return
	}
	m.listen()
	for _, t := range m.Sweep() {
		m.FreeToken(t)
	}
}

// Sweep returns the tokens of dead watched blocks, after it has handed all recent blocks to the
// collector.
func (m *Pool) Sweep() (gone []*token) {
	m.age()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.table {
		if w.tok != nil && w.blk.Value() == nil {
			gone = append(gone, w.tok)
		}
	}
	return gone
}

// recount updates pinned, which is set while only recipes hold the block. Of several concurrent
// changes the last call finds the lasting state.
func (m *Pool) recount(b *Block) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := isPinned(b.Held.Load())
	if now == b.pinned {
		return
	}
	b.pinned = now
	if t := b.token(); t != nil {
		t.pinned = now
	}
	if now {
		m.Pinned.Add(b.Bytes)
	} else {
		m.Pinned.Add(-b.Bytes)
	}
}

// FreeToken frees the buffer of a dead block.
func (m *Pool) FreeToken(t *token) {
	if t.freed.Swap(true) {
		return
	}
	t.reads.Load()
	m.Live.Add(-t.bytes)
	m.forget(t)
	m.Driver.Free(t.buf) // no job uses it, or the block would be reachable
}

func (m *Pool) forget(t *token) {
	m.mu.Lock()
	if t.pinned { // pinned by a recipe that was dropped without a release
		t.pinned = false
		m.Pinned.Add(-t.bytes)
	}
	m.table[t.index] = watched{}
	m.open = append(m.open, t.index)
	m.mu.Unlock()
}

// Reclaim forces a collection and frees unreachable blocks. Unless must is set, Reclaim keeps
// forced collections below 5 % of wall time: above that it only raises the threshold.
func (m *Pool) Reclaim(must bool) {
	now := time.Now()
	m.mu.Lock()
	tooCostly := m.spent*20 > now.Sub(m.since)
	m.mu.Unlock()
	if tooCostly && !must {
		m.threshold.Store(m.Live.Load() * 2)
		return
	}
	m.age()
	goruntime.GC()
	m.Collect.Add(1)
	gone := m.Sweep() // weak pointers are nil right after a collection
	m.mu.Lock()
	m.spent += time.Since(now)
	m.mu.Unlock()
	for _, t := range gone {
		m.FreeToken(t)
	}
	m.threshold.Store(max(firstThreshold, m.Live.Load()*2))
}
