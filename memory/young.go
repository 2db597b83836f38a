package memory

import (
	"sync/atomic"
	"weak"
)

// Most results of small programs are released a few calls after they were made, and
// to have the collector watch one costs as much as a small op. So the last few small
// ones are kept reachable instead, and only who leaves this list with readers is
// watched. The list is emptied whenever a collection was noticed: a block that was
// dropped without a word is found by the next but one.

const (
	// youngCount is more than the results that a call, and those of other streams that
	// come between, have at a time.
	youngCount = 64
	// youngBytes bounds what dropped blocks hold for a collection longer: 4 MiB.
	youngBytes = 64 << 10
)

// States of Block.tok besides a token of its own and nil, which is a block of a scope
// or of a job that nobody watches.
var (
	isYoung = new(token) // in Pool.young
	isGone  = new(token) // its last reader is
)

type youngList struct {
	places [youngCount]atomic.Pointer[Block]
	next   atomic.Uint32
}

// Watch lets the collector tell of the block's death. It is called for blocks
// that no scope will release; scopes and temporaries need no collector. The caller
// has a reader.
func (b *Block) Watch() {
	if b.Bytes > youngBytes {
		if b.tok.Load() == nil {
			b.watch(nil)
		}
		return
	}
	if b.tok.Load() != nil || !b.tok.CompareAndSwap(nil, isYoung) {
		return
	}
	l := &b.Mem.young
	b.place = l.next.Add(1) % youngCount
	if old := l.places[b.place].Swap(b); old != nil {
		old.watch(isYoung)
	}
}

// leave takes a block that nobody reads from the list.
func (l *youngList) leave(b *Block) { l.places[b.place].CompareAndSwap(b, nil) }

// age has all that is young watched.
func (m *Pool) age() {
	for i := range m.young.places {
		if b := m.young.places[i].Swap(nil); b != nil {
			b.watch(isYoung)
		}
	}
}

// watch has the collector watch a block in the state from.
func (b *Block) watch(from *token) {
	if b.tok.Load() != from {
		return
	}
	t := &token{buf: b.Buf, bytes: b.Bytes}
	w := watched{t, weak.Make(b)}
	m := b.Mem
	m.mu.Lock()
	defer m.mu.Unlock() // free finds the place in the table, or what it did is seen here
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
