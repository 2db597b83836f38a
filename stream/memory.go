package stream

import (
	"errors"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/runtime"
)

// block is one device buffer and who reads it. Readers are handles, recipes
// and queued ops; when the last one goes the buffer returns to the pool. A
// block whose readers were dropped without a word is found by the collector.
type block struct {
	dev    *Device
	buf    runtime.Buffer
	bytes  int64
	refs   atomic.Int32
	held   atomic.Int64            // how many of the readers are handles, and how many recipes
	pinned bool                    // recipes hold it and no handle does; under memory.mu
	fault  atomic.Pointer[OpError] // the job that should have written it failed
	uses   atomic.Int32            // one while it has readers, and one for each job that is not done
	abroad atomic.Int32            // of these jobs, those of other streams than home
	home   *lane                   // of the stream it was made on
	writer atomic.Pointer[lane]    // of the stream whose job writes it; nil where the host did
	seq    atomic.Uint64           // that job's number
	tok    atomic.Pointer[token]   // set once the collector watches it
	dense  storage                 // the whole block, row-major

	entry *entry // plan that wrote it, for Explain; nil for host data
	id    int32  // relative id it had there
}

// storage is memory seen through a layout. The view of a dense tensor is nil.
type storage struct {
	*block
	view *fusion.View
}

func (b *block) retain() { b.refs.Add(1) }

// written is when the job that writes the block has run.
func (b *block) written() moment { return moment{b.writer.Load(), b.seq.Load()} }

// failed is why the block was not written, as far as anybody knows: while a job is to
// write it, what it says is of an operand that lay there.
func (b *block) failed() *OpError {
	if e := b.fault.Load(); e != nil && b.written().passed() {
		return e
	}
	return nil
}

// hold keeps the buffer from the pool while a job of a lane uses it.
func (b *block) hold(by *lane) {
	b.uses.Add(1)
	if by != b.home {
		b.abroad.Add(1)
	}
}

// unhold is the end of that. The last use gives the buffer back.
func (b *block) unhold(by *lane) {
	if by != b.home {
		b.abroad.Add(-1)
	}
	b.unuse()
}

func (b *block) unuse() {
	if b.uses.Add(-1) == 0 {
		b.dev.drv.Free(b.buf)
	}
}

// quiet reports that no job but those of a lane, which come before the next one
// there, uses the block.
func (b *block) quiet(by *lane) bool {
	if by == b.home {
		return b.abroad.Load() == 0
	}
	return b.uses.Load() <= 1
}

// retainLive adds a reader unless the last one is gone, as it may be while a job
// that was started before still runs: the buffer then stays until the job ends.
func (b *block) retainLive() bool {
	for {
		n := b.refs.Load()
		if n == 0 {
			return false
		}
		if b.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release drops one reader.
func (b *block) release() {
	if n := b.refs.Add(-1); n == 0 {
		b.dev.mem.free(b)
	} else if n < 0 {
		panic("millrace/stream: block released more often than retained")
	}
}

// releaseRead drops a reader that copied elements to the host itself. A weak
// pointer that has turned nil orders nothing in Go's memory model: the token
// tells whoever gives the buffer back then that the copy is done.
func (b *block) releaseRead() {
	if t := b.tok.Load(); t != nil {
		t.reads.Add(1)
	}
	b.release()
}

// What block.held counts.
const (
	recipes = 1
	handles = 1 << 32
)

// count notes that handles or recipes came to read the block, or went.
func (b *block) count(change int64) {
	now := b.held.Load()
	for !b.held.CompareAndSwap(now, now+change) {
		now = b.held.Load()
	}
	if isPinned(now) != isPinned(now+change) {
		b.dev.mem.recount(b)
	}
}

func isPinned(held int64) bool { return held > 0 && held < handles }

// retainAs adds a reader that is a handle or a recipe, releaseAs drops one.
func (b *block) retainAs(kind int64) {
	b.retain()
	b.count(kind)
}

func (b *block) releaseAs(kind int64) {
	b.count(-kind)
	b.release()
}

// token is the part of a watched block that outlives it.
type token struct {
	buf   runtime.Buffer
	bytes int64
	freed atomic.Bool
	reads atomic.Uint64 // by the host, that are done: see releaseRead
	index int           // in the device's table

	pinned bool // as the block's; under memory.mu
}

// memory is the device's view of its live buffers.
type memory struct {
	dev *Device

	mu    sync.Mutex
	table []watched
	open  []int       // free places in table
	swept atomic.Bool // no collection since the table was swept

	live    atomic.Int64
	pinned  atomic.Int64
	collect atomic.Int64 // forced collections

	// threshold is the live bytes at which a collection is forced.
	threshold atomic.Int64
	spent     time.Duration
	since     time.Time
}

type watched struct {
	tok *token
	blk weak.Pointer[block]
}

const firstThreshold = 1 << 30

func (m *memory) init(d *Device) {
	m.dev = d
	m.threshold.Store(firstThreshold)
	m.since = time.Now()
}

// alloc makes a block with one reader. Where collect is set it may collect
// garbage to find room, and wait for jobs; a running job must not.
func (m *memory) alloc(bytes int64, collect bool) (*block, error) {
	return m.take(m.dev.drv.Alloc, bytes, collect)
}

// take is alloc from where the device has it.
func (m *memory) take(from func(int64) (runtime.Buffer, error), bytes int64, collect bool) (*block, error) {
	m.boundary()
	if collect && m.live.Load()+bytes > m.threshold.Load() {
		m.reclaim(false)
	}
	buf, err := from(bytes)
	if errors.Is(err, runtime.ErrOutOfMemory) && m.dev.tune.yield() {
		buf, err = from(bytes)
	}
	if collect && errors.Is(err, runtime.ErrOutOfMemory) {
		m.reclaim(true)
		buf, err = from(bytes)
	}
	if collect && errors.Is(err, runtime.ErrOutOfMemory) {
		m.dev.exec.drain() // queued jobs keep what they use
		m.reclaim(true)
		buf, err = from(bytes)
	}
	if err != nil {
		return nil, err
	}
	b := &block{dev: m.dev, buf: buf, bytes: bytes}
	b.dense.block = b
	b.refs.Store(1)
	b.uses.Store(1)
	m.live.Add(bytes)
	return b, nil
}

func (m *memory) free(b *block) {
	if t := b.tok.Load(); t != nil {
		if t.freed.Swap(true) {
			return
		}
		m.forget(t)
	}
	m.live.Add(-b.bytes)
	b.unuse() // jobs may still be at it
}

// watch lets the collector tell of the block's death. It is called for blocks
// that no scope will release; scopes and temporaries need no collector.
func (b *block) watch() {
	if b.tok.Load() != nil {
		return
	}
	t := &token{buf: b.buf, bytes: b.bytes}
	if !b.tok.CompareAndSwap(nil, t) {
		return
	}
	m := &b.dev.mem
	w := watched{t, weak.Make(b)}
	m.mu.Lock()
	t.pinned = b.pinned
	if n := len(m.open); n > 0 {
		t.index = m.open[n-1]
		m.open = m.open[:n-1]
		m.table[t.index] = w
	} else {
		t.index = len(m.table)
		m.table = append(m.table, w)
	}
	m.mu.Unlock()
}

// canary is an object nobody holds: its cleanup tells that a collection has
// been, which is all that buffers need to know. One cleanup per collection
// instead of one per buffer, whose cost a small op would feel.
type canary struct{ _ *byte }

// listen has the next collection noticed. A cleanup only marks: what is done
// about it happens at the next boundary, so that the collector's timing never
// changes what a stream records.
func (m *memory) listen() {
	m.swept.Store(true)
	goruntime.AddCleanup(new(canary), func(m *memory) { m.swept.Store(false) }, m)
}

// boundary frees the watched blocks that a collection since the last boundary
// has found dead.
func (m *memory) boundary() {
	if m.swept.Load() {
		return
	}
	m.listen()
	for _, t := range m.sweep() {
		m.freeToken(t)
	}
}

// sweep lists the watched blocks that are gone.
func (m *memory) sweep() (gone []*token) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.table {
		if w.tok != nil && w.blk.Value() == nil {
			gone = append(gone, w.tok)
		}
	}
	return gone
}

// recount notes a block that recipes alone hold, or do no longer. The last of
// several changes at a time finds the state that lasts.
func (m *memory) recount(b *block) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := isPinned(b.held.Load())
	if now == b.pinned {
		return
	}
	b.pinned = now
	if t := b.tok.Load(); t != nil {
		t.pinned = now
	}
	if now {
		m.pinned.Add(b.bytes)
	} else {
		m.pinned.Add(-b.bytes)
	}
}

// freeToken frees a block that is gone.
func (m *memory) freeToken(t *token) {
	if t.freed.Swap(true) {
		return
	}
	t.reads.Load()
	m.live.Add(-t.bytes)
	m.forget(t)
	m.dev.drv.Free(t.buf) // no job has it, or the block would be reachable
}

func (m *memory) forget(t *token) {
	m.mu.Lock()
	if t.pinned { // by a recipe that was dropped without a word, too
		t.pinned = false
		m.pinned.Add(-t.bytes)
	}
	m.table[t.index] = watched{}
	m.open = append(m.open, t.index)
	m.mu.Unlock()
}

// reclaim forces a collection and frees what nothing reaches any more. Unless
// must is set, collections are held under 5 % of wall time by raising the
// threshold.
func (m *memory) reclaim(must bool) {
	now := time.Now()
	m.mu.Lock()
	tooDear := m.spent*20 > now.Sub(m.since)
	m.mu.Unlock()
	if tooDear && !must {
		m.threshold.Store(m.live.Load() * 2)
		return
	}
	goruntime.GC()
	m.collect.Add(1)
	gone := m.sweep() // weak pointers are nil right after a collection
	m.mu.Lock()
	m.spent += time.Since(now)
	m.mu.Unlock()
	for _, t := range gone {
		m.freeToken(t)
	}
	m.threshold.Store(max(firstThreshold, m.live.Load()*2))
}
