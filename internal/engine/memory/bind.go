package memory

import "github.com/millrace-go/millrace/internal/engine/jobqueue"

// A bound recording reads the memory of its stream's handles and overwrites some of it in every
// run. It therefore counts as a reader of those blocks, and the other users of its stream know of
// this reader.

// Bind adds a bound recording as a reader of b; l is the lane on which the recording runs. It
// reports whether other bound recordings of l may overwrite the block nevertheless. For bound
// recordings of other lanes the new reader counts like any reader.
func (b *Block) Bind(l *jobqueue.Lane) (known bool) {
	b.Retain()
	b.Mem.mu.Lock()
	defer b.Mem.mu.Unlock()
	if b.binder != nil && b.binder != l {
		return false
	}
	b.binder = l
	b.bound.Add(1)
	return true
}

// Unbind removes the reader that Bind added. known is the result of that Bind.
func (b *Block) Unbind(known bool) {
	if known {
		b.Mem.mu.Lock()
		if b.bound.Add(-1) == 0 {
			b.binder = nil
		}
		b.Mem.mu.Unlock()
	}
	b.Release()
}

// Alone reports whether the block has no readers except its value and bound recordings of the lane,
// and no job of another lane uses it.
func (b *Block) Alone(by *jobqueue.Lane) bool {
	return b.Refs.Load() == 1+b.bound.Load() && b.Quiet(by)
}

// BoundOnce reports whether exactly one bound recording has the block.
func (b *Block) BoundOnce() bool { return b.bound.Load() == 1 }
