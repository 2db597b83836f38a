package memory

import (
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/lane"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/runtime"
)

// Block is one device buffer and who reads it. Readers are handles, recipes
// and queued ops; when the last one goes the buffer returns to the pool. A
// block whose readers were dropped without a word is found by the collector.
type Block struct {
	Mem    *Pool
	Buf    runtime.Buffer
	Bytes  int64
	Refs   atomic.Int32
	Held   atomic.Int64                  // how many of the readers are handles, and how many recipes
	pinned bool                          // recipes hold it and no handle does; under the pool's lock
	Fault  atomic.Pointer[operror.Error] // the job that should have written it failed
	uses   atomic.Int32                  // one while it has readers, and one for each job that is not done
	abroad atomic.Int32                  // of these jobs, those of other streams than home
	Home   *lane.Lane                    // of the stream it was made on
	writer atomic.Pointer[lane.Lane]     // of the stream whose job writes it; nil where the host did
	seq    atomic.Uint64                 // that job's number
	tok    atomic.Pointer[token]         // set once the collector watches it, see young.go
	place  uint32                        // in the list of young ones
	reads  atomic.Uint64                 // by the host, that are done: see ReleaseRead
	bound  atomic.Int32                  // of the readers, those that Bind made, for one lane
	binder *lane.Lane                    // that lane; under the pool's lock
	Dense  Storage                       // the whole block, row-major

	By Maker // nil for host data
	ID int32 // relative id it had there
}

// Maker is what computed a block, for whoever asks how.
type Maker interface {
	// Explain tells how the result of that relative id came to be.
	Explain(id int32) string
}

// Storage is memory seen through a layout. The view of a dense tensor is nil.
type Storage struct {
	*Block
	View *fusion.View
}

// Retain adds a reader.
func (b *Block) Retain() { b.Refs.Add(1) }

// Written is when the job that writes the block has run.
func (b *Block) Written() lane.Moment { return lane.After(b.writer.Load(), b.seq.Load()) }

// WrittenNext notes that the lane's next job writes the block, and uses it. The lane's
// stream's lock is held until that is submitted.
func (b *Block) WrittenNext(by *lane.Lane) {
	b.Hold(by)
	b.writer.Store(by)
	b.seq.Store(by.Next + 1)
}

// Failed is why the block was not written, as far as anybody knows: while a job is to
// write it, what it says is of an operand that lay there.
func (b *Block) Failed() *operror.Error {
	if e := b.Fault.Load(); e != nil && b.Written().Passed() {
		return e
	}
	return nil
}

// Hold keeps the buffer from the pool while a job of a lane uses it.
func (b *Block) Hold(by *lane.Lane) {
	b.uses.Add(1)
	if by != b.Home {
		b.abroad.Add(1)
	}
}

// Unhold is the end of that. The last use gives the buffer back.
func (b *Block) Unhold(by *lane.Lane) {
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

// Quiet reports that no job but those of a lane, which come before the next one
// there, uses the block.
func (b *Block) Quiet(by *lane.Lane) bool {
	if by == b.Home {
		return b.abroad.Load() == 0
	}
	return b.uses.Load() <= 1
}

// RetainLive adds a reader unless the last one is gone, as it may be while a job
// that was started before still runs: the buffer then stays until the job ends.
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

// ReleaseRead drops a reader that copied elements to the host itself. A weak
// pointer that has turned nil orders nothing in Go's memory model: the token
// tells whoever gives the buffer back then that the copy is done.
func (b *Block) ReleaseRead() {
	b.reads.Add(1) // before the token is looked for: who makes one looks afterwards
	if t := b.token(); t != nil {
		t.reads.Add(1)
	}
	b.Release()
}

// token is nil where the collector does not watch the block.
func (b *Block) token() *token {
	if t := b.tok.Load(); t != isYoung && t != isGone {
		return t
	}
	return nil
}

// What Block.Held counts.
const (
	Recipes = 1
	Handles = 1 << 32
)

// Count notes that handles or recipes came to read the block, or went.
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
