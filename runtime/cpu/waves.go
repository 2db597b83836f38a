package cpu

import (
	"cmp"
	"slices"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// Threads share a launch that is worth several threads, and wait for each other at its end. For
// smaller launches that would leave all threads but one idle, for example for an optimiser's
// updates of a hundred small parameters, or the products of a few heads. So the small launches of
// a list that do not depend on each other form a wave: threads take whole launches of it, one
// after another, and wait for each other once.
//
// Launches are sorted by their dependencies. A launch that may meet an index out of range keeps
// its place among all others: later launches must not have run if it fails. The bits of a launch
// do not depend on its thread.

// waveWork is the work, in nanoseconds by workOf, from which a wave pays: threads may have to be
// woken. workOf overestimates cached data.
const waveWork = 32e3

// waveShare decides about a launch that is worth several threads: it joins a wave if it is at most
// 1/waveShare of each thread's work there.
const waveShare = 4

// turn is a launch in the order in which a list runs.
type turn struct {
	at    int   // index in the list
	level int32 // a launch has a higher level than those it depends on
	wave  int32 // 0: it gets all threads
	nanos int64
	large bool // worth several threads
}

// ordering is the memory for finding turns; it is reused.
type ordering struct {
	turns []turn
	uses  []use // a hash table with open addressing; a map would take several times as long
}

var orderings = sync.Pool{New: func() any { return new(ordering) }}

// use records how the launches of a list use a buffer: one more than the level of the last launch
// that writes it, and of the last that touches it. Launches that write pieces of one tensor into
// it do not wait for each other; they are recorded separately until another launch touches the
// buffer.
type use struct {
	of               *memory.Buffer // nil: the entry is free
	written, touched int32
	piece            int32 // of the last launches that write pieces: see runtime.Access
	pieces           int32 // one more than the highest level of these launches
}

// before returns the least level of a launch that uses the buffer next: above every launch that it
// depends on. The launch writes the buffer, as the piece of that number if piece is not 0, or
// reads it.
func (u *use) before(writes bool, piece int32) int32 {
	switch {
	case !writes:
		return max(u.written, u.pieces)
	case piece != 0 && piece == u.piece:
		return u.touched
	}
	return max(u.touched, u.pieces)
}

// note records a launch of level at.
func (u *use) note(at int32, writes bool, piece int32) {
	if writes && piece != 0 {
		if piece != u.piece {
			u.touched, u.written = max(u.touched, u.pieces), max(u.written, u.pieces)
			u.piece, u.pieces = piece, 0
		}
		u.pieces = max(u.pieces, at+1)
		return
	}
	if u.touched = max(u.touched, at+1); writes {
		u.written = at + 1
	}
}

// use returns the entry of a buffer.
func (o *ordering) use(b *memory.Buffer) *use {
	last := uintptr(len(o.uses) - 1)
	for at := uintptr(unsafe.Pointer(b)) * 0x9e3779b1 >> 8; ; at++ {
		if u := &o.uses[at&last]; u.of == b || u.of == nil {
			u.of = b
			return u
		}
	}
}

// open empties the table and makes room for n buffers.
func (o *ordering) open(n int) {
	size := 64
	for size < 2*n {
		size *= 2
	}
	if cap(o.uses) < size {
		o.uses = make([]use, size)
	}
	o.uses = o.uses[:size]
	clear(o.uses)
}

// release returns o, which may be nil, for reuse.
func (o *ordering) release() {
	if o != nil {
		clear(o.uses) // do not keep memory alive
		orderings.Put(o)
	}
}

// order finds the waves of a list; it returns nil if no wave pays.
func order(list []runtime.Launch, threads int64) *ordering {
	if threads < 2 || len(list) < 2 {
		return nil
	}
	o := orderings.Get().(*ordering)
	if o.find(list, threads) {
		return o
	}
	o.release()
	return nil
}

// find is order, with the memory of o.
func (o *ordering) find(list []runtime.Launch, threads int64) bool {
	may := int64(0)
	o.turns = o.turns[:0]
	for i := range list {
		t := turn{at: i}
		t.nanos, t.large = workOf(&list[i])
		if o.turns = append(o.turns, t); !t.large || len(list) > waveShare {
			may += t.nanos
		}
	}
	if may < waveWork || !o.levels(list) {
		return false
	}
	ts := o.turns
	slices.SortStableFunc(ts, func(a, b turn) int { return cmp.Compare(a.level, b.level) })
	waves := int32(0)
	for rest := ts; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].level == rest[0].level {
			n++
		}
		if group(rest[:n], threads, waves+1) {
			waves++
		}
		rest = rest[n:]
	}
	return waves > 0
}

// levels gives every launch a level above the launches that must run before it. It returns false
// if all levels differ.
func (o *ordering) levels(list []runtime.Launch) bool {
	operands := 0
	for i := range list {
		operands += len(list[i].Args)
	}
	o.open(operands)
	floor, top := int32(0), int32(0)
	for i := range list {
		p, ok := list[i].Prog.(*program)
		if !ok || len(list[i].Args) != len(p.kernel.Operands) || len(list[i].Args) > maxOperands {
			return false // an error that prepareFor reports
		}
		at := floor
		var uses [maxOperands]*use
		for j := range list[i].Args {
			b, ok := list[i].Args[j].Buf.(*memory.Buffer)
			if !ok {
				continue // an index operand
			}
			uses[j] = o.use(b)
			at = max(at, uses[j].before(p.writes[j], list[i].Args[j].Piece))
		}
		if p.faults {
			at = top
			floor = at + 1
		}
		for j, u := range uses[:len(list[i].Args)] {
			if u == nil {
				continue
			}
			u.note(at, p.writes[j], list[i].Args[j].Piece)
		}
		o.turns[i].level, top = at, max(top, at+1)
	}
	return int(top) < len(list)
}

// group makes a wave of the launches of a level that qualify. It sorts them last, largest first,
// so that threads end at about the same time.
func group(level []turn, threads int64, wave int32) bool {
	all, n, work := int64(0), 0, int64(0)
	for i := range level {
		all += level[i].nanos
	}
	for i := range level {
		if t := &level[i]; !t.large || t.nanos*threads*waveShare <= all {
			t.wave = wave
			work += t.nanos
			n++
		}
	}
	if n < 2 || work < waveWork {
		for i := range level {
			level[i].wave = 0
		}
		return false
	}
	slices.SortStableFunc(level, func(a, b turn) int {
		if a.wave == 0 || b.wave == 0 {
			return cmp.Compare(a.wave, b.wave)
		}
		return cmp.Compare(b.nanos, a.nanos)
	})
	return true
}

// inWave returns the number of launches in the wave at the start of a list; 1 if the first launch
// gets all threads.
func inWave(list []ready) int {
	n := 1
	for n < len(list) && list[0].wave > 0 && list[n].wave == list[0].wave {
		n++
	}
	return n
}
