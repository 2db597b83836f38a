package memory

import (
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/runtime"
)

// Block is one device buffer with a count of its readers: handles, recipes and queued ops. The
// buffer returns to the pool when the last reader is released. If readers are dropped without a
// release, the garbage collector finds the block.
type Block struct {
	Mem    *Pool
	Buf    runtime.Buffer
	Bytes  int64
	Refs   atomic.Int32
	Held   atomic.Int64                  // number of readers that are handles (high 32 bits) and that are recipes (low 32 bits)
	pinned bool                          // held by recipes and by no handle; under the pool's lock
	Fault  atomic.Pointer[operror.Error] // set if the job that should have written the block failed
	uses   atomic.Int32                  // one while the block has readers, plus one for each unfinished job
	abroad atomic.Int32                  // unfinished jobs of streams other than Home
	Home   *jobqueue.Lane                // lane of the stream that made the block
	writer atomic.Pointer[jobqueue.Lane] // lane of the job that writes the block; nil if the host wrote it
	seq    atomic.Uint64                 // number of that job in its lane
	tok    atomic.Pointer[token]         // set once the collector watches the block, see Watch
	place  uint32                        // index in the list of recent blocks
	reads  atomic.Uint64                 // finished reads by the host: see ReleaseRead
	bound  atomic.Int32                  // readers added by Bind, all for one lane
	binder *jobqueue.Lane                // that lane; under the pool's lock
	Dense  Storage                       // view of the whole block, row-major

	By Maker // nil for host data
	ID int32 // relative id of the block in By

	unasked atomic.Bool // By wrote it although nothing asked for it, and nothing has used it yet
}

// Maker computed a block and can explain how.
type Maker interface {
	// Explain tells how the result with that relative id was computed.
	Explain(id int32) string
}

// Storage is a block seen through a layout. View is nil for a dense tensor.
type Storage struct {
	*Block
	View *fusion.View
	Lent bool // the value may give the memory up: reading it needs the stream's lock
}

// Retain adds a reader.
func (b *Block) Retain() { b.Refs.Add(1) }

// Written is the moment at which the job that writes the block has run.
func (b *Block) Written() jobqueue.Moment { return jobqueue.After(b.writer.Load(), b.seq.Load()) }

// WrittenNext notes that the next job of the lane writes the block, and counts that job as a user.
// The caller holds the lock of the lane's stream until it has submitted the job.
func (b *Block) WrittenNext(by *jobqueue.Lane) { b.WrittenIn(by, 1) }

// WrittenIn is WrittenNext where the lane's n-th next job is the last one that writes the block.
func (b *Block) WrittenIn(by *jobqueue.Lane, n int) {
	b.Hold(by)
	b.writer.Store(by)
	b.seq.Store(by.Next + uint64(n))
}

// Failed returns the known reason why the block was not written. While a job still has to write the
// block, Fault belongs to the block's previous contents, and Failed returns nil.
func (b *Block) Failed() *operror.Error {
	if e := b.Fault.Load(); e != nil && b.Written().Passed() {
		return e
	}
	return nil
}

// Hold counts a job of the lane as a user, which keeps the buffer out of the pool.
func (b *Block) Hold(by *jobqueue.Lane) {
	b.uses.Add(1)
	if by != b.Home {
		b.abroad.Add(1)
	}
}

// Unhold ends one Hold. The last use returns the buffer to the pool.
func (b *Block) Unhold(by *jobqueue.Lane) {
	if by != b.Home {
		b.abroad.Add(-1)
	}
	b.unuse()
}

func (b *Block) unuse() {
	if b.uses.Add(-1) == 0 {
		b.Mem.Driver.Free(b.Buf)
	}
}

// Quiet reports whether no job uses the block except those of the lane, all of which run before
// that lane's next job.
func (b *Block) Quiet(by *jobqueue.Lane) bool {
	if by == b.Home {
		return b.abroad.Load() == 0
	}
	return b.uses.Load() <= 1
}

// RetainLive adds a reader unless the last reader is gone. That can happen while an earlier job
// still runs; the buffer then stays until that job ends.
func (b *Block) RetainLive() bool {
	for {
		n := b.Refs.Load()
		if n == 0 {
			return false
		}
		if b.Refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release drops one reader.
func (b *Block) Release() {
	if n := b.Refs.Add(-1); n == 0 {
		b.Mem.free(b)
	} else if n < 0 {
		panic("millrace/stream: block released more often than retained")
	}
}

// ReleaseRead drops a reader that copied elements to the host itself. In Go's memory model, a weak
// pointer that has turned nil orders nothing. The atomic counter in the token therefore tells the
// goroutine that frees the buffer that the copy is done.
func (b *Block) ReleaseRead() {
	b.reads.Add(1) // before the load of the token: the goroutine that makes a token reads this counter afterwards
	if t := b.token(); t != nil {
		t.reads.Add(1)
	}
	b.Release()
}

// token returns the token of a block that the collector watches, else nil.
func (b *Block) token() *token {
	if t := b.tok.Load(); t != isRecent && t != isGone {
		return t
	}
	return nil
}

// Units of Block.Held.
const (
	Recipes = 1
	Handles = 1 << 32
)

// Count adds change to Held when handles or recipes are added or removed.
func (b *Block) Count(change int64) {
	now := b.Held.Load()
	for !b.Held.CompareAndSwap(now, now+change) {
		now = b.Held.Load()
	}
	if isPinned(now) != isPinned(now+change) {
		b.Mem.recount(b)
	}
}

func isPinned(held int64) bool { return held > 0 && held < Handles }

// RetainAs adds a reader that is a handle or a recipe.
func (b *Block) RetainAs(kind int64) {
	b.Retain()
	b.Count(kind)
}

// ReleaseAs drops a reader that is a handle or a recipe.
func (b *Block) ReleaseAs(kind int64) {
	b.Count(-kind)
	b.Release()
}
