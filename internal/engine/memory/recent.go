package memory

import (
	"sync/atomic"
	"weak"
)

// Small programs release most results within a few calls. Watching a result by the collector costs
// as much as a small op. The pool therefore keeps the last few small blocks reachable in a list,
// and the collector watches only blocks that leave the list with readers. Each noticed collection
// empties the list. A block that was dropped without a release is thus found by the second
// collection.

const (
	// recentCount exceeds the results of one call together with those of other streams that run in
	// between.
	recentCount = 64
	// recentBytes limits the size of a listed block; dropped blocks hold at most 4 MiB (recentCount
	// times recentBytes) until the next collection.
	recentBytes = 64 << 10
)

// States of Block.tok besides nil and a token of its own. nil means a block of a scope or a job,
// which the collector does not watch.
var (
	isRecent = new(token) // the block is in the pool's list of recent blocks
	isGone   = new(token) // its last reader is gone
)

type recentList struct {
	places [recentCount]atomic.Pointer[Block]
	next   atomic.Uint32
}

// Watch makes the collector report the block's death. It is called for blocks that no scope
// releases; blocks of scopes and temporaries do not need the collector. The caller holds a reader.
func (b *Block) Watch() {
	if b.Bytes > recentBytes {
		if b.tok.Load() == nil {
			b.watch(nil)
		}
		return
	}
	if b.tok.Load() != nil || !b.tok.CompareAndSwap(nil, isRecent) {
		return
	}
	l := &b.Mem.recent
	b.place = l.next.Add(1) % recentCount
	if old := l.places[b.place].Swap(b); old != nil {
		old.watch(isRecent)
	}
}

// leave removes a block without readers from the list.
func (l *recentList) leave(b *Block) { l.places[b.place].CompareAndSwap(b, nil) }

// age makes the collector watch all recent blocks.
func (m *Pool) age() {
	for i := range m.recent.places {
		if b := m.recent.places[i].Swap(nil); b != nil {
			b.watch(isRecent)
		}
	}
}

// watch makes the collector watch a block if its state is from.
func (b *Block) watch(from *token) {
	if b.tok.Load() != from {
		return
	}
	t := &token{buf: b.Buf, bytes: b.Bytes}
	w := watched{t, weak.Make(b)}
	m := b.Mem
	m.mu.Lock()
	defer m.mu.Unlock() // free finds the place in the table, or this code sees the change that free made
	if !b.tok.CompareAndSwap(from, t) {
		return
	}
	t.reads.Store(b.reads.Load())
	t.pinned = b.pinned
	if n := len(m.open); n > 0 {
		t.index = m.open[n-1]
		m.open = m.open[:n-1]
		m.table[t.index] = w
	} else {
		t.index = len(m.table)
		m.table = append(m.table, w)
	}
}
